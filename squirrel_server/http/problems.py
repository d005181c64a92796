"""Everything a server refuses, as RFC 9457 problem documents with a stable `code`.

`detail` is one sentence that holds no key, id or path: what is wrong with the server is told in its own log.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

from squirrel_server.store import Failed, Head, HeadMoved, Refused, StoreError

MEDIA_TYPE = "application/problem+json"

_STATUSES = {
    "malformed": 422,
    "too_large": 413,
    "append_denied": 403,
    "head_moved": 412,
    "forgotten": 409,
    "unknown_memory": 409,
    "account_exists": 409,
    "too_many_keys": 409,
    "invite_refused": 403,
    "unknown_object": 404,
    "unknown_key": 404,
    "full": 507,
}


class Problem(Exception):
    """A reply that is no success. `headers` are added to it; `head` is the log's, where that is the point."""

    def __init__(
        self,
        status: int,
        code: str,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        head: Head | None = None,
    ) -> None:
        super().__init__(code)
        self.status, self.code, self.detail = status, code, detail
        self.headers, self.head = dict(headers or {}), head

    def response(self) -> Response:
        """The document, to be sent."""
        body: dict[str, Any] = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }
        if self.head is not None:
            body["head"] = {"seq": self.head.seq, "mac": self.head.mac.hex()}
        return Response(json.dumps(body), self.status, self.headers, MEDIA_TYPE)


def unauthenticated() -> Problem:
    """The one answer to a key that is absent, malformed, unknown, revoked or expired."""
    return Problem(
        401, "unauthenticated", "A valid API key is needed: Authorization: Bearer sqn_...",
        headers={"WWW-Authenticate": "Bearer"},
    )  # fmt: skip


def malformed(detail: str) -> Problem:
    """422: what was sent has not the shape that is taken here."""
    return Problem(422, "malformed", detail)


def limited(seconds: int) -> Problem:
    """429: too many requests from this key or address; one more may come after so many seconds."""
    return Problem(429, "rate_limited", "Too many requests; wait a little.", headers={"Retry-After": str(seconds)})


def of_store(error: StoreError) -> Problem:
    """What a store's error is over HTTP. A refusal has its own sentence, a failure is told in general."""
    if isinstance(error, HeadMoved):
        return Problem(412, error.code, str(error), head=error.head)
    if error.code == "unknown_account":
        # It was erased after its key was looked up; the key is gone with it.
        return unauthenticated()
    if isinstance(error, Refused):
        return Problem(_STATUSES[error.code], error.code, str(error))
    if error.code == "full":
        return Problem(507, "full", "The server has no space left; nothing was stored.")
    assert isinstance(error, Failed)
    return Problem(
        503, "unavailable", "The server's database cannot be used at the moment.", headers={"Retry-After": "2"}
    )
