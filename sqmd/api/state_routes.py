"""Whether the server is well, and what it did."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from sqmd.api.gate import Gate, reply
from sqmd.api.health import LastAnswer, states
from sqmd.api.metrics import CONTENT_TYPE, Metrics, prefers_text
from sqmd.api.openapi import PREFIX, described
from sqmd.api.shapes import Health, MetricsReply, Nothing
from sqmd.service import Service


def router(service: Service, gate: Gate, metrics: Metrics, embedder: LastAnswer) -> APIRouter:
    """/health and /metrics."""
    routes = APIRouter(prefix=PREFIX)

    @routes.get("/health", **described("How the parts of the server are", Health))
    async def health(request: Request) -> Response:
        return await gate.get(
            request, lambda _: reply({**states(service, embedder), "uptime_seconds": round(metrics.uptime, 3)}), Nothing
        )

    @routes.get(
        "/metrics",
        **described(
            "What happened since the start; Prometheus's text where Accept prefers text/plain",
            MetricsReply,
            also={"text/plain": {"schema": {"type": "string"}}},
        ),
    )
    async def counted(request: Request) -> Response:
        # Several lines of one header are one list.
        accept = ",".join(request.headers.getlist("accept"))

        def shown(_: Nothing) -> Response:
            if prefers_text(accept):
                return Response(metrics.text(), headers={"Content-Type": CONTENT_TYPE})
            return reply(metrics.json())

        return await gate.get(request, shown, Nothing)

    return routes
