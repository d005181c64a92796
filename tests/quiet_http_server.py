"""A server for fakes: clients of a test hang up in the middle of things, which is nothing to print a traceback for."""

from __future__ import annotations

from http.server import ThreadingHTTPServer
from typing import Any


class QuietHTTPServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        pass
