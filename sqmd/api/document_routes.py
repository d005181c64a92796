"""The files of the index, and no others."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from starlette.responses import Response

from sqmd.api.gate import Gate, reply
from sqmd.api.openapi import PREFIX, described
from sqmd.api.shapes import ChunkShape, DocumentReply, DocumentShape, DocumentsReply, DocumentsRequest, Nothing
from sqmd.service import Service
from sqmd.store.schema import FileRow
from sqmd.times import written


def router(service: Service, gate: Gate) -> APIRouter:
    """/documents and what is below."""
    routes = APIRouter(prefix=PREFIX)

    @routes.get(
        "/documents", **described("Files of the index by path, a page of them", DocumentsReply, query=DocumentsRequest)
    )
    async def documents(request: Request) -> Response:
        return await gate.get(request, listed, DocumentsRequest)

    def listed(asked: DocumentsRequest) -> Response:
        paths = service.paths()
        page = service.files_at(paths[asked.offset : asked.offset + asked.limit])
        return reply(
            {
                "documents": [_file(row) for row in page],
                "total": len(paths),
                "limit": asked.limit,
                "offset": asked.offset,
            }
        )

    @routes.get("/documents/{file_id}", **described("A file and its chunks", DocumentReply, path=("file_id", 64)))
    async def document(request: Request) -> Response:
        file_id = request.path_params["file_id"]

        def shown(_: Nothing) -> Response:
            row, chunks = service.document(file_id)
            kept = [{name: chunk[name] for name in ChunkShape.model_fields} for chunk in chunks]
            return reply({**_file(row), "error": row.error_msg, "chunks": kept})

        return await gate.get(request, shown, Nothing)

    @routes.get(
        "/documents/{file_id}/raw",
        **described("A file's Markdown as it is on disk now, in UTF-8", "text/markdown", path=("file_id", 64)),
    )
    async def raw(request: Request) -> Response:
        file_id = request.path_params["file_id"]
        return await gate.get(request, lambda _: Response(service.raw(file_id), media_type="text/markdown"), Nothing)

    return routes


def _file(row: FileRow) -> dict[str, Any]:
    found = {name: getattr(row, name) for name in DocumentShape.model_fields}
    return {**found, "indexed_at": written(row.indexed_at)}
