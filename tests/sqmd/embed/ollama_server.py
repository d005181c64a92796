"""Speaks as much of Ollama's API as is asked of it: POST /api/embed, on a real socket."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.quiet_http_server import QuietHTTPServer


class Ollama:
    """Vectors are [length, 1, 0, ...]. Over `context` characters an input is refused, with its whole batch."""

    def __init__(self) -> None:
        self.dimension = 8
        self.context = 10_000
        self.models = {"small"}
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.reply: Callable[[list[str]], tuple[int, bytes]] | None = None  # instead of all that
        self.base = ""

    @contextmanager
    def running(self) -> Iterator[Ollama]:
        ollama = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                ollama.asked.append(body)
                ollama.headers.append(dict(self.headers))
                status, answer = ollama.answer(self.path, body)
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

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

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, bytes]:
        if path != "/api/embed":
            return 404, b"404 page not found"
        if self.reply is not None:
            return self.reply(body["input"])
        if body["model"] not in self.models:
            return 404, _json({"error": f'model "{body["model"]}" not found, try pulling it first'})
        if any(len(text) > self.context for text in body["input"]):
            return 400, _json({"error": "the input length exceeds the context length"})
        return 200, _json({"model": body["model"], "embeddings": [self.vector(text) for text in body["input"]]})

    def vector(self, text: str) -> list[float]:
        return [float(len(text)), 1.0, *[0.0] * (self.dimension - 2)]

    @property
    def inputs(self) -> list[list[str]]:
        return [body["input"] for body in self.asked]


def _json(value: object) -> bytes:
    return json.dumps(value).encode("utf-8")
