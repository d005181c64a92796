"""API keys: listing, making and revoking those of the account."""

from __future__ import annotations

import os
from datetime import date, timedelta
from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from squirrel_server.api_keys import Scope, make_key
from squirrel_server.http.gate import Call, Gate
from squirrel_server.http.openapi import APPEND_KEY, WITH_BODY, WITH_KEY, described, parameter
from squirrel_server.http.problems import malformed
from squirrel_server.http.replies import reply
from squirrel_server.http.shapes import Keys, MadeKey, NewKey
from squirrel_server.store.server_store import SECONDS_OF_DAY, KeyRecord

_EPOCH = date(1970, 1, 1)
_ID = parameter("id", "path", {"type": "string", "pattern": "^[0-9A-Za-z]{12}$"}, required=True)


def router(gate: Gate) -> APIRouter:
    """The routes, for one process's gate."""
    routes = APIRouter()

    @routes.get("/v1/keys", **described("The account's API keys, without their secrets", Keys, WITH_KEY))
    async def list_keys(request: Request) -> Response:
        return await gate.call(request, Scope.ADMIN, _list)

    @routes.post(
        "/v1/keys",
        **described(
            "Make an API key; it is shown here and never again",
            MadeKey, (507, *WITH_KEY, *WITH_BODY), status=201, body=NewKey, parameters=[APPEND_KEY],
        ),
    )  # fmt: skip
    async def add_key(request: Request) -> Response:
        return await gate.call(request, Scope.ADMIN, _add, NewKey)

    @routes.delete(
        "/v1/keys/{id}",
        **described("Revoke an API key, at once", None, (507, *WITH_KEY), status=204, parameters=[_ID, APPEND_KEY]),
    )
    async def revoke_key(request: Request) -> Response:
        return await gate.call(request, Scope.ADMIN, _revoke)

    return routes


def _list(call: Call) -> Response:
    return reply({"keys": [_shown(record) for record in call.store.keys(call.account_id)]})


def _add(call: Call) -> Response:
    asked: NewKey = call.body
    if asked.expiresAt is not None and asked.expiresAt <= call.now:
        raise malformed("The key would have expired already: expiresAt is in seconds since 1970.")
    key = make_key(os.urandom)
    call.store.add_key(call.account_id, call.append_key, key.key_id, key.digest, asked.scope, call.now, asked.expiresAt)
    record = KeyRecord(key.key_id, asked.scope, call.now // SECONDS_OF_DAY, None, asked.expiresAt)
    return reply({**_shown(record), "apiKey": key.text}, 201)


def _revoke(call: Call) -> Response:
    call.store.drop_key(call.account_id, call.append_key, call.request.path_params["id"])
    return Response(status_code=204)


def _shown(record: KeyRecord) -> dict[str, Any]:
    return {
        "id": record.key_id,
        "scope": record.scope,
        "created": _day(record.created_day),
        "lastUsed": None if record.last_used_day is None else _day(record.last_used_day),
        "expiresAt": record.expires,
    }


def _day(number: int) -> str:
    return (_EPOCH + timedelta(days=number)).isoformat()
