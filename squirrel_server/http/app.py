"""The application: routes, replies to what went wrong, and the store's life."""

from __future__ import annotations

import ipaddress
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from anyio import to_thread
from fastapi import FastAPI, Request
from starlette.exceptions import HTTPException
from starlette.responses import Response

from squirrel_server.http import account_routes, key_routes, log_routes
from squirrel_server.http.gate import Gate, Visit
from squirrel_server.http.metrics import CONTENT_TYPE, Metrics
from squirrel_server.http.observation import Observation
from squirrel_server.http.openapi import described, document
from squirrel_server.http.options import ServerOptions
from squirrel_server.http.problems import Problem
from squirrel_server.http.replies import reply
from squirrel_server.http.shapes import Health
from squirrel_server.store.server_store import ServerStore

PROTOCOL = 1


def create_app(
    options: ServerOptions,
    *,
    open_store: Callable[[str], ServerStore] = ServerStore,
    clock: Callable[[], float] = time.time,
) -> FastAPI:
    """A server's application, which opens the store at once and closes it when it shuts down.

    clock: seconds since 1970, for expiry. Raises what opening a store raises.
    """
    store = open_store(options.database)
    gate = Gate(options, store, clock)
    metrics = Metrics()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            await to_thread.run_sync(store.close)

    app = FastAPI(
        title="Squirrel server",
        version=installed_version(),
        lifespan=lifespan,
        # Its pages load scripts from elsewhere, and the document is for tests.
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        # The client follows no redirects, and the contract has none.
        redirect_slashes=False,
        # It would send paths, with ids in them, to whatever the process's environment names.
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
        },
    )
    app.add_middleware(Observation, metrics=metrics)
    app.add_exception_handler(Problem, _answer_problem)
    app.add_exception_handler(HTTPException, _answer_http)
    for routes in (account_routes, log_routes, key_routes):
        app.include_router(routes.router(gate))

    @app.get("/v1/health", **described("Whether the server and its database answer", Health, (503,), key=False))
    async def health(request: Request) -> Response:
        return await gate.visit(request, _health)

    @app.get("/metrics", include_in_schema=False)
    async def show_metrics(request: Request) -> Response:
        if not (options.open_metrics or (_is_local(request) and not options.behind_proxy)):
            raise HTTPException(404)
        return Response(await to_thread.run_sync(metrics.text), headers={"Content-Type": CONTENT_TYPE})

    described_routes = cache(lambda: document(app))
    app.openapi = described_routes  # type: ignore[method-assign]
    return app


@cache
def installed_version() -> str:
    """The version of the distribution this runs from."""
    try:
        return version("squirrel-server")
    except PackageNotFoundError:
        return "0+unknown"


def _health(visit: Visit) -> Response:
    visit.store.check()
    return reply({"status": "ok", "version": installed_version(), "protocol": PROTOCOL})


def _is_local(request: Request) -> bool:
    try:
        return request.client is not None and ipaddress.ip_address(request.client.host).is_loopback
    except ValueError:
        return False


async def _answer_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return error.response()


async def _answer_http(request: Request, error: Exception) -> Response:
    """What the router itself says: 404 and 405."""
    assert isinstance(error, HTTPException)
    code, detail = _ROUTING.get(error.status_code, ("refused", "The request cannot be answered."))
    headers = {}
    if error.status_code == 405:
        # The router knows the methods of the one route it stopped at; a path may have several.
        path = getattr(request.scope.get("route"), "path", "")
        headers["Allow"] = ", ".join(method.upper() for method in request.app.openapi()["paths"].get(path, ["get"]))
    return Problem(error.status_code, code, detail, headers=headers).response()


_ROUTING = {
    404: ("not_found", "There is nothing here."),
    405: ("method_not_allowed", "This method is not for this path."),
}
