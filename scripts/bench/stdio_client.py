"""The smallest MCP client over stdio, so that what a bench measures is the server."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


def environment(data_dir: Path, **variables: str) -> dict[str, str]:
    """This environment without settings of its user's own server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SQUIRREL_")}
    keyring = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    return {**kept, **keyring, "PYTHONPATH": str(ROOT), "SQUIRREL_DATA_DIR": str(data_dir), **variables}


class StdioClient:
    """One server process. Requests go one after the other."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], stderr: int | None = None) -> None:
        self.process = subprocess.Popen(
            command, env=dict(environ), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr
        )
        self._id = 0

    def __enter__(self) -> StdioClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.communicate()

    def initialize(self) -> None:
        self._request("initialize", _CLIENT)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def call(self, tool: str, **arguments: Any) -> Any:
        """The structured content; RuntimeError for a call that is refused."""
        result = self._request("tools/call", {"name": tool, "arguments": arguments})
        if result.get("isError"):
            raise RuntimeError(result["content"][0]["text"])
        return result["structuredContent"]

    def resident(self) -> tuple[int, int]:
        """Resident bytes now, and at most so far; zeros where the platform does not say."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        except OSError:
            return 0, 0
        fields = dict(line.split(":", 1) for line in status.splitlines())
        now, most = (int(fields[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
        return now, most

    def processor(self) -> float:
        """Processor seconds used so far, which a busy machine changes less than the clock does; 0 where unknown."""
        try:
            fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            return 0.0
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _request(self, method: str, params: Any) -> Any:
        self._id += 1
        self._send({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        assert self.process.stdout
        while True:
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError("the server ended")
            answer = json.loads(line)
            if answer.get("id") == self._id:
                return answer["result"]

    def _send(self, message: Any) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
