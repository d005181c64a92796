"""Searching."""

from __future__ import annotations

from dataclasses import asdict

from fastapi import APIRouter, Request
from starlette.responses import Response

from sqmd.api.gate import Gate, reply
from sqmd.api.health import LastAnswer
from sqmd.api.metrics import Metrics
from sqmd.api.openapi import PREFIX, described
from sqmd.api.shapes import SearchReply, SearchRequest
from sqmd.errors import SqmdError
from sqmd.service import Service


def router(service: Service, gate: Gate, metrics: Metrics, embedder: LastAnswer) -> APIRouter:
    """/search, the same by GET and by POST."""
    routes = APIRouter(prefix=PREFIX)

    def search(asked: SearchRequest) -> Response:
        given = asked.model_fields_set
        try:
            answer = service.search(
                asked.wanted,
                top_k=asked.top_k if "top_k" in given else None,
                mode=asked.mode,
                path=asked.filter_path,
                rerank=asked.rerank if "rerank" in given else None,
            )
        except SqmdError as error:
            embedder.note(error)
            raise
        embedder.note(answer)
        metrics.count_search(answer.mode, len(answer.results), answer.duration_ms / 1e3)
        results = [asdict(each) for each in answer.results]
        if not asked.include_context:
            for each in results:
                del each["text"]
        found = {
            "results": results,
            "query": asked.wanted,
            "total": len(results),
            "duration_ms": round(answer.duration_ms, 3),
        }
        return reply(found | ({"note": answer.note} if answer.note else {}))

    @routes.get("/search", **described("Chunks that answer a query, the best first", SearchReply, query=SearchRequest))
    async def by_get(request: Request) -> Response:
        return await gate.get(request, search, SearchRequest)

    @routes.post("/search", **described("The same, asked in a body", SearchReply, body=SearchRequest))
    async def by_post(request: Request) -> Response:
        return await gate.post(request, search, SearchRequest)

    return routes
