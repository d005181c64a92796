"""Everything that is answered in place of what was asked for: `{"error": code, "message": sentence}`."""

from __future__ import annotations

import json
from collections.abc import Mapping

from starlette.responses import Response

from sqmd.errors import SqmdError

# By the code of an error. What is not here is 503: it passes, or its owner mends it, and the request may come again.
_STATUSES = {
    "invalid_input": 422,
    "not_in_index": 404,
    "no_such_path": 404,
    "unreadable": 409,
    "not_indexed": 409,
    "index_busy": 409,
    "model_mismatch": 409,
    "newer_format": 409,
}


class Problem(Exception):
    """A reply that is no success."""

    def __init__(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(code)
        self.status, self.code, self.message, self.headers = status, code, message, dict(headers or {})

    def response(self) -> Response:
        """To be sent."""
        body = json.dumps({"error": self.code, "message": self.message})
        return Response(body, self.status, self.headers, "application/json")


def of_service(error: SqmdError) -> Problem:
    """What an error of the service is over HTTP."""
    return Problem(_STATUSES.get(error.code, 503), error.code, str(error))


def invalid(message: str) -> Problem:
    """422: what was sent has not the shape that is taken here."""
    return Problem(422, "invalid_input", message)


def unauthenticated() -> Problem:
    """The one answer to a key that is absent, malformed or wrong."""
    headers = {"WWW-Authenticate": "Bearer"}
    return Problem(401, "unauthenticated", "The API key is needed: Authorization: Bearer KEY.", headers)


def internal() -> Problem:
    """500: a mistake in here."""
    return Problem(500, "internal", "The server made a mistake; its log says where.")


ROUTING = {
    404: ("not_found", "There is nothing here."),
    405: ("method_not_allowed", "This method is not for this path."),
}
