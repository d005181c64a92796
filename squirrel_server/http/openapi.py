"""The OpenAPI document: what each route takes and says, put together from the shapes."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from squirrel_server.http.problems import MEDIA_TYPE
from squirrel_server.http.shapes import REPLIES, REQUESTS, ProblemReply, Shape

_REFERENCE = "#/components/schemas/{model}"
ANYWHERE = (404, 405, 429, 500)  # what any route may answer
WITH_KEY = (401, 403, 409, 503)
WITH_BODY = (408, 413, 415, 422)


def described(
    summary: str,
    reply: type[Shape] | None,
    problems: tuple[int, ...],
    *,
    status: int = 200,
    body: type[Shape] | None = None,
    parameters: list[dict[str, Any]] | None = None,
    key: bool = True,
) -> dict[str, Any]:
    """The arguments that make a FastAPI route say all this. key: whether an API key is needed."""
    extra: dict[str, Any] = {"parameters": parameters or []}
    if body is not None:
        extra["requestBody"] = {"required": True, "content": _content("application/json", body)}
    if key:
        extra["security"] = [{"apiKey": []}]
    responses: dict[int, Any] = {status: {"description": summary}}
    if reply is not None:
        responses[status]["content"] = _content("application/json", reply)
    for each in sorted({*problems, *ANYWHERE}):
        responses[each] = {"description": "A problem", "content": _content(MEDIA_TYPE, ProblemReply)}
    return {
        "summary": summary,
        "status_code": status,
        "responses": responses,
        "openapi_extra": extra,
        "response_model": None,
    }


def parameter(name: str, place: str, schema: dict[str, Any], *, required: bool = False) -> dict[str, Any]:
    """One parameter; place: path, query or header."""
    return {"name": name, "in": place, "required": required, "schema": schema}


# Not `required`: without it the answer is a 403 as for a wrong one.
APPEND_KEY = parameter("Squirrel-Append", "header", {"type": "string", "pattern": "^[A-Za-z0-9+/]{43}=$"})


def document(app: FastAPI) -> dict[str, Any]:
    """The whole of it."""
    found = get_openapi(title=app.title, version=app.version, routes=app.routes)
    _, definitions = models_json_schema(
        [(shape, "validation") for shape in (*REQUESTS, *REPLIES)], ref_template=_REFERENCE
    )
    components = found.setdefault("components", {})
    components["schemas"] = definitions["$defs"]
    components["securitySchemes"] = {"apiKey": {"type": "http", "scheme": "bearer"}}
    return found


def _content(media_type: str, shape: type[Shape]) -> dict[str, Any]:
    return {media_type: {"schema": {"$ref": _REFERENCE.format(model=shape.__name__)}}}
