"""The body of a request, read up to a cap whatever its length is said to be."""

from __future__ import annotations

import anyio
from starlette.requests import ClientDisconnect, Request

from squirrel_server.http.options import MAX_BODY_BYTES
from squirrel_server.http.problems import Problem

_SECONDS = 60.0  # for a whole body: 2 MiB over the slowest line that is still of use
_CLOSE = {"Connection": "close"}  # what is left of such a body is not read


class BodyBudget:
    """How many bytes of bodies one process holds at once, so that many slow ones do not add up to its memory."""

    def __init__(self, most: int = 32 * 1024 * 1024) -> None:
        self._left = most

    def take(self, count: int) -> None:
        """Count them in, or raise a `Problem`: the client may come again."""
        if count > self._left:
            raise Problem(503, "busy", "The server is busy; try again.", headers={**_CLOSE, "Retry-After": "1"})
        self._left -= count

    def give_back(self, count: int) -> None:
        """Count them out again."""
        self._left += count


def check_headers(request: Request) -> None:
    """`Problem` 415 for a coding or a type other than plain JSON, 413 for a length over the cap. Reads nothing."""
    headers = request.headers
    if "content-encoding" in headers:
        raise Problem(415, "unsupported_encoding", "Bodies are taken as they are, without Content-Encoding.")
    kind, _, parameters = headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
        raise Problem(415, "unsupported_type", "The body is application/json in UTF-8.")
    # uvicorn has checked that it is a number; the body is counted all the same.
    length = headers.get("content-length", "0")
    if len(length) > len(str(MAX_BODY_BYTES)) or int(length) > MAX_BODY_BYTES:
        raise _too_large()


async def read_body(request: Request, budget: BodyBudget, held: list[int]) -> bytes:
    """The whole body. What it takes of the budget is added to `held`, for the caller to give back."""
    chunks: list[bytes] = []
    size = 0
    try:
        with anyio.fail_after(_SECONDS):
            while True:
                message = await request.receive()
                if message["type"] != "http.request":
                    raise ClientDisconnect
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > MAX_BODY_BYTES:
                    raise _too_large()
                budget.take(len(chunk))
                held.append(len(chunk))
                chunks.append(chunk)
                if not message.get("more_body", False):
                    return b"".join(chunks)
    except TimeoutError:
        raise Problem(408, "too_slow", "The body did not arrive in time.", headers=_CLOSE) from None


def _too_large() -> Problem:
    detail = f"The body has more than {MAX_BODY_BYTES:,} bytes; send less at once."
    return Problem(413, "too_large", detail, headers=_CLOSE)
