"""The application: routes, and replies to what went wrong."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version

from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from sqmd.api import document_routes, index_routes, page_routes, search_routes, state_routes
from sqmd.api.admission import Admission
from sqmd.api.gate import Gate, reply
from sqmd.api.health import LastAnswer
from sqmd.api.hosts import Hosts
from sqmd.api.metrics import Metrics
from sqmd.api.openapi import PREFIX, document
from sqmd.api.problems import ROUTING, Problem
from sqmd.service import Service


def create_app(service: Service, host: str) -> FastAPI:
    """What answers over HTTP for `service`, when listening at `host`, which decides about the Host headers."""
    gate, metrics, embedder = Gate(), Metrics(), LastAnswer()
    app = FastAPI(
        title="sqmd",
        version=_version(),
        # Its pages load scripts from elsewhere.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        # It would send queries and paths to whatever the process's environment names.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )
    app.add_middleware(Admission, hosts=Hosts(host), api_key=service.config.api.api_key, metrics=metrics)
    app.add_exception_handler(Problem, _answer_problem)
    app.add_exception_handler(HTTPException, _answer_http)
    for routes in (
        search_routes.router(service, Gate(), metrics, embedder),
        document_routes.router(service, gate),
        index_routes.router(service, gate, metrics),
        state_routes.router(service, gate, metrics, embedder),
    ):
        app.include_router(routes)
    app.include_router(page_routes.router())

    @app.get(f"{PREFIX}/openapi.json", include_in_schema=False)
    async def description() -> Response:
        return reply(app.openapi())

    described_routes = cache(lambda: document(app))
    # FastAPI's own way to another document is to put a method in place of its own.
    app.openapi = described_routes  # type: ignore[method-assign]
    return app


@cache
def _version() -> str:
    try:
        return version("sqmd")
    except PackageNotFoundError:
        return "0+unknown"


async def _answer_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _answer_http(request: Request, error: Exception) -> Response:
    """What the router itself says: 404 and 405."""
    assert isinstance(error, HTTPException)
    code, message = ROUTING.get(error.status_code, ("refused", "The request cannot be answered."))
    headers = {}
    if error.status_code == 405:
        # The router knows the methods of the one route it stopped at; a path may have several.
        path = getattr(request.scope.get("route"), "path", "")
        headers["Allow"] = ", ".join(method.upper() for method in request.app.openapi()["paths"].get(path, ["get"]))
    return Problem(error.status_code, code, message, headers).response()
