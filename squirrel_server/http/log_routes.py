"""The log: reading it in pages, adding to it, and its objects one by one."""

from __future__ import annotations

import re
from typing import Any, Literal, cast

from fastapi import APIRouter, Request
from starlette.responses import Response

from squirrel_server.api_keys import Scope
from squirrel_server.http.encoding import from_hex, to_base64
from squirrel_server.http.gate import Call, Gate
from squirrel_server.http.openapi import APPEND_KEY, WITH_BODY, WITH_KEY, described, parameter
from squirrel_server.http.problems import malformed
from squirrel_server.http.replies import head_of, page_reply, reply
from squirrel_server.http.shapes import Batch, HeadReply, ObjectReply, Page
from squirrel_server.store import MAX_ENTRIES

_NUMBER = re.compile(r"0|[1-9][0-9]{0,15}")
_COUNT: dict[str, Any] = {"type": "integer", "minimum": 0, "maximum": 2**53 - 1}
_QUESTION = [
    parameter("after", "query", _COUNT),
    parameter("limit", "query", _COUNT),
    parameter("objects", "query", {"type": "string", "enum": ["latest", "all"]}),
]
_HASH = [parameter("sha256", "path", {"type": "string", "pattern": "^[0-9a-f]{64}$"}, required=True)]


def router(gate: Gate) -> APIRouter:
    """The routes, for one process's gate."""
    routes = APIRouter()

    @routes.get("/v1/log", **described("A page of the log", Page, (422, *WITH_KEY), parameters=_QUESTION))
    async def read_log(request: Request) -> Response:
        return await gate.call(request, Scope.READ, _read)

    @routes.post(
        "/v1/log",
        **described(
            "Add entries, all or none",
            HeadReply, (412, 507, *WITH_KEY, *WITH_BODY), body=Batch, parameters=[APPEND_KEY],
        ),
    )  # fmt: skip
    async def append(request: Request) -> Response:
        return await gate.call(request, Scope.WRITE, _append, Batch, while_uploading=True)

    @routes.get(
        "/v1/objects/{sha256}",
        **described("One object, history included", ObjectReply, (422, *WITH_KEY), parameters=_HASH),
    )
    async def one_object(request: Request) -> Response:
        return await gate.call(request, Scope.READ, _object)

    return routes


def _read(call: Call) -> Response:
    asked = dict(call.request.query_params.multi_items())
    if len(asked) != len(call.request.query_params.multi_items()) or asked.keys() - {"after", "limit", "objects"}:
        raise malformed("A page is asked for by after, limit and objects, each once at most.")
    after, limit = _number(asked.get("after", "0")), _number(asked.get("limit", str(MAX_ENTRIES)))
    objects = asked.get("objects", "latest")
    if objects not in ("latest", "all"):
        raise malformed("The objects of a page are latest or all.")
    page = call.store.read_log(call.account_id, after, limit, cast(Literal["latest", "all"], objects))
    return page_reply(page)


def _number(text: str) -> int:
    if not _NUMBER.fullmatch(text) or (number := int(text)) >= 2**53:
        raise malformed("A page is asked for by whole numbers from 0 to 2^53 - 1.")
    return number


def _append(call: Call) -> Response:
    asked: Batch = call.body
    head = call.store.append(call.account_id, call.append_key, [(item.entry, item.object) for item in asked.entries])
    return reply({"head": head_of(head)})


def _object(call: Call) -> Response:
    try:
        sha256 = from_hex(call.request.path_params["sha256"], 32)
    except ValueError:
        raise malformed("An object is named by its SHA-256 in lower-case hex.") from None
    return reply({"object": to_base64(call.store.object(call.account_id, sha256))})
