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

from tests.sqmd.api.running import Running

CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
OPERATIONS = [
    "GET /api/v1/search",
    "POST /api/v1/search",
    "GET /api/v1/documents",
    "GET /api/v1/documents/{file_id}",
    "GET /api/v1/documents/{file_id}/raw",
    "POST /api/v1/index/trigger",
    "GET /api/v1/index/status",
    "GET /api/v1/index/jobs",
    "GET /api/v1/index/jobs/{job_id}",
    "GET /api/v1/health",
    "GET /api/v1/metrics",
]
# A route that takes nothing cannot be asked for anything wrong.
TAKES_NOTHING = ("status", "jobs", "health", "metrics")


def _operation(server: Running, label: str) -> Any:
    schema = schemathesis.openapi.from_dict(server.app.openapi())
    (found,) = [each.ok() for each in schema.get_all_operations() if each.ok().label == label]
    return found


def test_no_operation_is_left_out_here(server: Running, web: httpx.Client) -> None:
    document = web.get("/api/v1/openapi.json").json()
    labels = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert labels == set(OPERATIONS)


DRAWN = [
    (label, mode)
    for label in OPERATIONS
    for mode in GenerationMode
    if mode is GenerationMode.POSITIVE or not label.endswith(TAKES_NOTHING)
]


@pytest.mark.parametrize(("label", "mode"), DRAWN)
def test_nothing_that_can_be_drawn_is_a_server_error(
    server: Running, label: str, mode: GenerationMode, full: bool
) -> None:
    strategy = _operation(server, label).as_strategy(generation_mode=mode)
    file_ids = [row.file_id for row in server.service.files_at(server.service.paths())]
    with requests.Session() as session:
        session.trust_env = False

        @given(case=strategy)
        @settings(max_examples=400 if full else 25, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
        def ask(case: Case) -> None:
            if "{file_id}" in label and mode is GenerationMode.POSITIVE:
                # An id that is drawn is never one of a file.
                case.path_parameters = {"file_id": file_ids[len(str(case.path_parameters)) % len(file_ids)]}
            response = case.call(base_url=server.address, session=session)
            case.validate_response(response, checks=CHECKS)

        ask()


def test_a_route_says_what_a_route_answers(server: Running) -> None:
    for path, methods in server.app.openapi()["paths"].items():
        for method, operation in methods.items():
            codes = set(operation["responses"])
            assert {"400", "401", "403", "404", "405", "422", "500", "503"} <= codes, path
            assert {"apiKey": []} in operation["security"], path
            assert (method == "post") == ({"408", "413", "415"} <= codes), path
            for code, answer in operation["responses"].items():
                if code >= "400":
                    assert answer["content"]["application/json"]["schema"]["$ref"].endswith("/Error")
