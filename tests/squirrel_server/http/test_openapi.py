"""The OpenAPI document: true, and whatever is drawn from it or against it is answered without a server's error."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from squirrel_server.http.app import create_app
from squirrel_server.http.options import ServerOptions
from tests.squirrel_server.http.member import Member
from tests.squirrel_server.http.running import Running

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
OPERATIONS = [
    "POST /v1/accounts",
    "GET /v1/account",
    "PUT /v1/account/key-set",
    "DELETE /v1/account",
    "GET /v1/log",
    "POST /v1/log",
    "GET /v1/objects/{sha256}",
    "GET /v1/keys",
    "POST /v1/keys",
    "DELETE /v1/keys/{id}",
    "GET /v1/health",
]
NO_MISTAKE = ("GET /v1/health", "negative")


def _operation(server: Running, label: str) -> Any:
    schema = schemathesis.openapi.from_dict(server.app.openapi())
    (found,) = [each.ok() for each in schema.get_all_operations() if each.ok().label == label]
    return found


def test_no_operation_is_left_out_here(file_url: str) -> None:
    document = create_app(ServerOptions(file_url)).openapi()
    labels = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert labels == set(OPERATIONS)


# A route that takes nothing cannot be asked for anything wrong.
DRAWN = [(label, mode) for label in OPERATIONS for mode in GenerationMode if (label, mode.value) != NO_MISTAKE]


@pytest.mark.parametrize(("label", "mode"), DRAWN)
def test_nothing_that_can_be_drawn_is_a_server_error(
    server: Running, member: Member, label: str, mode: GenerationMode, full: bool
) -> None:
    strategy = _operation(server, label).as_strategy(generation_mode=mode)
    invite = server.invite()
    # The key lets it in, the append key lets it through to the store's checks; but nobody deletes the account.
    headers = {"Authorization": member.headers["Authorization"]}
    if label != "DELETE /v1/account":
        headers["Squirrel-Append"] = member.headers["Squirrel-Append"]
    with requests.Session() as session:
        session.trust_env = False

        @given(case=strategy)
        @settings(
            max_examples=400 if full else 12,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        def ask(case: Case) -> None:
            if label.endswith("/accounts") and isinstance(case.body, dict) and "invite" in case.body:
                case.body["invite"] = invite
            response = case.call(base_url=server.address, session=session, headers=headers)
            case.validate_response(response, checks=CHECKS)

        ask()


def test_a_route_says_what_a_route_answers(server: Running, member: Member, web: httpx.Client) -> None:
    document = server.app.openapi()
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            codes = set(operation["responses"])
            assert {"404", "405", "429"} <= codes, path
            assert ("security" in operation) == ({"401", "403"} <= codes) or path == "/v1/accounts", path
            if method in ("post", "put"):
                assert {"413", "415", "422"} <= codes, path
