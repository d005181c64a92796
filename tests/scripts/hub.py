"""A hub on a real socket: hands out files by path, redirects, breaks off, lies, as it is told."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler

from tests.quiet_http_server import QuietHTTPServer


class Hub:
    """`files` by path. A path is answered by a redirect to /cdn/<path> if `redirects`, as the real hub does it."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.redirects = False
        self.redirects_for_ever = False
        self.ranges = True
        self.answer: int | None = None  # this status instead of any file
        self.break_after: list[int] = []  # so many bytes of the next bodies, then the connection ends
        self.asked: list[tuple[str, str | None]] = []  # path and Range header
        self.base = ""

    @contextmanager
    def running(self) -> Iterator[Hub]:
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                hub.handle(self)

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        server = QuietHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        self.base = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield self
        finally:
            server.shutdown()
            thread.join()
            server.server_close()

    def handle(self, request: BaseHTTPRequestHandler) -> None:
        wanted = request.headers.get("Range")
        self.asked.append((request.path, wanted))
        # A proxy is asked for a whole address.
        path = re.sub("^http://[^/]+", "", request.path)
        if self.redirects_for_ever:
            return self._send(request, 302, b"", {"Location": path})
        if self.redirects and not path.startswith("/cdn/"):
            return self._send(request, 302, b"", {"Location": f"/cdn{path}"})
        content = self.files.get(path.removeprefix("/cdn"))
        if self.answer is not None or content is None:
            return self._send(request, self.answer or 404, b"no")
        if wanted is None or not self.ranges:
            return self._send(request, 200, content)
        found = re.fullmatch(r"bytes=(\d+)-", wanted)
        assert found
        start, size = int(found[1]), len(content)
        if start >= size:
            return self._send(request, 416, b"", {"Content-Range": f"bytes */{size}"})
        self._send(request, 206, content[start:], {"Content-Range": f"bytes {start}-{size - 1}/{size}"})

    def _send(
        self, request: BaseHTTPRequestHandler, status: int, body: bytes, headers: dict[str, str] | None = None
    ) -> None:
        request.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body))}.items():
            request.send_header(name, value)
        request.end_headers()
        if self.break_after and status in (200, 206):
            body = body[: self.break_after.pop(0)]
            request.close_connection = True
        with suppress(ConnectionError):  # whoever asked had enough
            request.wfile.write(body)
