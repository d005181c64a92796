"""Every route's request goes through here: what it takes is read, and the work is done in a worker thread."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any
from urllib.parse import parse_qsl

from anyio import CapacityLimiter, to_thread
from starlette.requests import Request
from starlette.responses import Response

from sqmd.api import strict_json
from sqmd.api.bodies import read_body
from sqmd.api.problems import invalid, of_service
from sqmd.api.shapes import AnyShape, Nothing, Shape, read, read_query
from sqmd.errors import SqmdError

_THREADS = 8  # requests that are worked on at once; more wait
_MOST_PARAMETERS = 50


class Gate:
    """Of some routes. Those that may wait for a model have one of their own, so that they keep no others waiting."""

    def __init__(self) -> None:
        self._threads = CapacityLimiter(_THREADS)

    async def get(self, request: Request, work: Callable[[AnyShape], Response], shape: type[AnyShape]) -> Response:
        """Answer what is asked in the query string."""
        return await self._run(work, read_query(shape, _pairs(request)))

    async def post(self, request: Request, work: Callable[[AnyShape], Response], shape: type[AnyShape]) -> Response:
        """Answer what is asked in the body; no body at all is an empty object."""
        read_query(Nothing, _pairs(request))
        body = await read_body(request)
        return await self._run(work, read(shape, strict_json.parse(body or b"{}")))

    async def _run(self, work: Callable[[AnyShape], Response], asked: AnyShape) -> Response:
        # Not in the event loop: the index waits for the disk, and a model computes.
        return await to_thread.run_sync(partial(_translated, work, asked), limiter=self._threads)


def _translated(work: Callable[[AnyShape], Response], asked: AnyShape) -> Response:
    try:
        return work(asked)
    except SqmdError as error:
        raise of_service(error) from error


def _pairs(request: Request) -> list[tuple[str, str]]:
    raw: bytes = request.scope["query_string"]
    try:
        return parse_qsl(raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=_MOST_PARAMETERS)
    except ValueError:
        raise invalid("The query string is not percent-encoded UTF-8, or has too many parameters.") from None


def reply(value: Mapping[str, Any] | Shape, status: int = 200) -> Response:
    """The value as JSON, compact."""
    if isinstance(value, Shape):
        value = value.model_dump()
    # ASCII, so that a file name that is no UTF-8 is told as well.
    return Response(json.dumps(value, separators=(",", ":")), status, media_type="application/json")
