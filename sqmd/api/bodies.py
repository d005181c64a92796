"""The body of a request, read up to a cap whatever its length is said to be."""

from __future__ import annotations

import anyio
from starlette.requests import ClientDisconnect, Request

from sqmd.api.problems import Problem

# A query of 10,000 characters is up to 120,000 bytes where JSON escapes them.
MAX_BODY_BYTES = 256 * 1024
_SECONDS = 30.0
_CLOSE = {"Connection": "close"}  # what is left of such a body is not read


async def read_body(request: Request) -> bytes:
    """The whole body, empty if there is none. `Problem` 413, 415, or 408 for one that takes half a minute."""
    headers = request.headers
    length = headers.get("content-length", "0")
    if len(length) > len(str(MAX_BODY_BYTES)) or int(length) > MAX_BODY_BYTES:
        raise _too_large()
    body = b""
    try:
        with anyio.fail_after(_SECONDS):
            more = True
            while more:
                message = await request.receive()
                if message["type"] != "http.request":
                    raise ClientDisconnect
                body += message.get("body", b"")
                if len(body) > MAX_BODY_BYTES:
                    raise _too_large()
                more = message.get("more_body", False)
    except TimeoutError:
        raise Problem(408, "too_slow", "The body did not arrive in time.", _CLOSE) from None
    if body or "content-type" in headers:
        _check_type(request)
    return body


def _check_type(request: Request) -> None:
    # Also against other sites' pages: they may send plain text and forms unasked, JSON only after asking.
    if "content-encoding" in request.headers:
        raise Problem(415, "unsupported_encoding", "Bodies are taken as they are, without Content-Encoding.")
    kind, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.strip().lower().replace('"', "")
    if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
        raise Problem(415, "unsupported_type", "The body is application/json in UTF-8.")


def _too_large() -> Problem:
    return Problem(413, "too_large", f"The body has more than {MAX_BODY_BYTES:,} bytes.", _CLOSE)
