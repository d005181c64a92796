"""A real server process and both ends of its pipes. Every line of its stdout has to be JSON-RPC."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

ROOT = Path(__file__).resolve().parents[2]
SERVE = "from squirrel_mcp.cli import main; main()"
PATIENCE = 60  # seconds until a test that waits for an event gives up
CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def environment(data_dir: Path, **variables: str) -> dict[str, str]:
    """What a client starts a server with: little, and nothing that hides unflushed prints."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR") if name in os.environ}
    return {
        **kept,
        "HOME": str(data_dir.parent),
        "PYTHONPATH": str(ROOT),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        "SQUIRREL_DATA_DIR": str(data_dir),
        **variables,
    }


class Lines:
    """What a process wrote to one of its streams, as it comes."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._lines, self._ended = stream, list[bytes](), False
        self._changed = threading.Condition()
        threading.Thread(target=self._read, daemon=True).start()

    def wait_for(self, wanted: Callable[[bytes], bool]) -> bytes:
        """The first line that is wanted; AssertionError if the stream ends without one."""

        def found() -> bytes | None:
            return next((line for line in self._lines if wanted(line)), None)

        with self._changed:
            assert self._changed.wait_for(lambda: found() or self._ended, PATIENCE), self._lines
            line = found()
        assert line is not None, b"".join(self._lines).decode()
        return line

    def all(self) -> bytes:
        """Everything, once the stream has ended."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._ended, PATIENCE)
            return b"".join(self._lines)

    def _read(self) -> None:
        with self._stream:
            for line in self._stream:
                with self._changed:
                    self._lines.append(line)
                    self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()


class ServerProcess:
    """Use as a context: at the end stdin is closed and everything it wrote is checked."""

    def __init__(self, environ: Mapping[str, str], *, code: str = SERVE) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            env=dict(environ),
            cwd=environ["HOME"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self.process.stdout and self.process.stderr
        self.stdout, self.stderr = Lines(self.process.stdout), Lines(self.process.stderr)
        self._next_id = 0

    def __enter__(self) -> ServerProcess:
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.end()
        finally:
            self.process.kill()
            self.process.wait()

    def send_line(self, line: bytes) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, params: Any = None) -> int:
        """Send a request and do not wait."""
        self._next_id += 1
        message = {"jsonrpc": "2.0", "id": self._next_id, "method": method}
        self.send_line(json.dumps(message if params is None else {**message, "params": params}).encode())
        return self._next_id

    def answer(self, request_id: int) -> Any:
        line = self.stdout.wait_for(lambda line: json.loads(line).get("id") == request_id)
        return json.loads(line)

    def request(self, method: str, params: Any = None) -> Any:
        """The result of a request; AssertionError for an error."""
        answer = self.answer(self.send(method, params))
        assert "result" in answer, answer
        return answer["result"]

    def initialize(self) -> Any:
        result = self.request("initialize", CLIENT)
        self.send_line(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return result

    def send_call(self, tool: str, **arguments: Any) -> int:
        return self.send("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, **arguments: Any) -> Any:
        """The structured content of a call that succeeds."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return result["structuredContent"]

    def refused(self, tool: str, **arguments: Any) -> str:
        """The text of a call that is refused."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert result["isError"], result
        return str(result["content"][0]["text"])

    def end(self) -> int:
        """Close stdin, if that is still open, and wait. Gives the exit code."""
        if self.process.stdin and not self.process.stdin.closed:
            with suppress(BrokenPipeError):
                self.process.stdin.close()
        return self.ended()

    def ended(self) -> int:
        """Wait for the end; every byte on stdout was JSON-RPC. Gives the exit code."""
        code = self.process.wait(PATIENCE)
        check_wire(self.stdout.all())
        return code


def check_wire(output: bytes) -> None:
    """Every line is one JSON-RPC 2.0 message, ended by LF alone."""
    assert not output or output.endswith(b"\n"), output[-200:]
    for line in output.split(b"\n")[:-1]:
        assert not set(line.decode()) & set("\r\u2028\u2029"), line
        assert json.loads(line)["jsonrpc"] == "2.0", line
