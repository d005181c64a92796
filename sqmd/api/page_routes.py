"""The page for people: four files that are sent as they are."""

from __future__ import annotations

from importlib.resources import files

from fastapi import APIRouter
from starlette.responses import Response

from sqmd.api.admission import PAGE_POLICY

_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/script.js": ("script.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}


def router() -> APIRouter:
    """Each file under its path."""
    routes = APIRouter()
    for path, (name, media_type) in _FILES.items():
        _add(routes, path, (files("sqmd.api") / "page" / name).read_bytes(), media_type)
    return routes


def _add(routes: APIRouter, path: str, content: bytes, media_type: str) -> None:
    headers = {"Content-Security-Policy": PAGE_POLICY, "Content-Type": media_type, "Cache-Control": "no-cache"}

    async def sent() -> Response:
        return Response(content, headers=headers)

    routes.add_api_route(path, sent, include_in_schema=False, response_model=None)
