"""The OpenAPI document: what each route takes and says, put together from the shapes."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from sqmd.api.shapes import REPLIES, REQUESTS, Error, Nothing, Shape

PREFIX = "/api/v1"  # of every route but the page's
_REFERENCE = "#/components/schemas/{model}"
_ANYWHERE = (400, 401, 403, 404, 405, 409, 422, 500, 503)
_WITH_BODY = (408, 413, 415)
_JSON = "application/json"


def described(
    summary: str,
    reply: type[Shape] | str,
    *,
    status: int = 200,
    query: type[Shape] = Nothing,
    body: type[Shape] | None = None,
    body_needed: bool = True,
    path: tuple[str, int] | None = None,
    also: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """The arguments that make a FastAPI route say all this.

    reply: its shape, or the media type of a text. path: the parameter in it, and its hexadecimal digits. also: more
    of the reply's content, by media type.
    """
    extra: dict[str, Any] = {"parameters": [*_path(path), *_parameters(query)], "security": [{}, {"apiKey": []}]}
    if body is not None:
        extra["requestBody"] = {"required": body_needed, "content": _content(body)}
    content = {reply: {"schema": {"type": "string"}}} if isinstance(reply, str) else _content(reply)
    responses: dict[int, Any] = {status: {"description": summary, "content": {**content, **(also or {})}}}
    for each in sorted({*_ANYWHERE, *(_WITH_BODY if body else ())}):
        responses[each] = {"description": "A problem", "content": _content(Error)}
    return {
        "summary": summary,
        "status_code": status,
        "responses": responses,
        "openapi_extra": extra,
        "response_model": None,
    }


def document(app: FastAPI) -> dict[str, Any]:
    """The whole of it."""
    found = get_openapi(title=app.title, version=app.version, routes=app.routes)
    _, definitions = models_json_schema(
        [(shape, "validation") for shape in (*REQUESTS, *REPLIES)], ref_template=_REFERENCE
    )
    components = found.setdefault("components", {})
    components["schemas"] = definitions["$defs"]
    components["securitySchemes"] = {
        "apiKey": {"type": "http", "scheme": "bearer", "description": "where api.api_key is set"}
    }
    return found


def _content(shape: type[Shape]) -> dict[str, Any]:
    return {_JSON: {"schema": {"$ref": _REFERENCE.format(model=shape.__name__)}}}


def _path(parameter: tuple[str, int] | None) -> list[dict[str, Any]]:
    if parameter is None:
        return []
    name, digits = parameter
    schema = {"type": "string", "pattern": f"^[0-9a-f]{{{digits}}}$"}
    return [{"name": name, "in": "path", "required": True, "schema": schema}]


def _parameters(shape: type[Shape]) -> list[dict[str, Any]]:
    schema = shape.model_json_schema()
    found = []
    for name, each in schema.get("properties", {}).items():
        each = {key: value for key, value in each.items() if key != "title"}
        about = {"description": each.pop("description")} if "description" in each else {}
        found.append({"name": name, "in": "query", "required": False, **about, "schema": each})
    return found
