"""A device: a home of its own, the variables it was given, real processes for its commands and its MCP server."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from mcp import Client, StdioServerParameters
from mcp.types import TextContent

from .server_process import PATIENCE, ROOT, SERVE, environment


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Tools:
    """The tools of one running MCP server."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        """The structured content of a call that succeeds."""
        result = await self._client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        return result.structured_content

    async def refused(self, tool: str, **arguments: Any) -> str:
        """The text of a call that is refused."""
        result = await self._client.call_tool(tool, arguments)
        (block,) = result.content
        assert result.is_error and isinstance(block, TextContent), result.structured_content
        return block.text


class Device:
    """What it prints is kept in `said`, for a search for what should not be there."""

    def __init__(self, home: Path, passphrase: str) -> None:
        home.mkdir()
        self._home, self._passphrase_file = home, home / "passphrase"
        self._account: dict[str, str] = {}
        self.said: list[str] = []
        self.set_passphrase(passphrase)

    @property
    def variables(self) -> dict[str, str]:
        """The environment of all its processes."""
        file = str(self._passphrase_file)
        return environment(self._home / "data", SQUIRREL_PASSPHRASE_FILE=file, **self._account)

    def set_passphrase(self, passphrase: str) -> None:
        """Where running processes look again."""
        self._passphrase_file.write_text(passphrase + "\n", "utf-8")

    def run(self, *args: str, stdin: str = "") -> Ran:
        """A command, as a script would run it."""
        result = subprocess.run(
            [sys.executable, "-m", "squirrel_mcp", *args],
            input=stdin, env=self.variables, cwd=self._home, capture_output=True, encoding="utf-8", timeout=PATIENCE,
        )  # fmt: skip
        self.said.append(result.stderr)
        return Ran(result.returncode, result.stdout, result.stderr)

    def ask(self, *args: str, stdin: str = "") -> Any:
        """The JSON of a command that succeeds."""
        ran = self.run(*args, "--json", stdin=stdin)
        assert ran.code == 0, (args, ran)
        return ran.json

    def configure(self, made: Any) -> None:
        """Do what a person does with the snippet that `init`, `join` or `move` printed."""
        (launch,) = json.loads(made["clientConfig"]["content"])["mcpServers"].values()
        names = ("SQUIRREL_API_BASE_URL", "SQUIRREL_API_KEY", "SQUIRREL_CA_FILE")
        self._account = {name: launch["env"][name] for name in names if name in launch["env"]}

    def join(self, code: str) -> Any:
        """With what another device's `keys create --join` printed."""
        joined = self.ask("join", "-", stdin=code + "\n")
        self.configure(joined)
        return joined

    @asynccontextmanager
    async def tools(self) -> AsyncIterator[Tools]:
        """Its MCP server, started and asked as a client does."""
        server = StdioServerParameters(command=sys.executable, args=["-c", SERVE], env=self.variables, cwd=self._home)
        async with Client(server) as client:
            yield Tools(client)

    def state(self) -> tuple[Any, str]:
        """Every memory in full, and the fingerprint."""
        listed = self.ask("list", "--all")
        assert listed["stale"] is False
        return listed["memories"], self.ask("status")["fingerprint"]

    def file(self, name: str, content: str) -> str:
        """The path of a file in its home."""
        (self._home / name).write_text(content, "utf-8")
        return str(self._home / name)


__all__ = ["ROOT", "Device", "Ran", "Tools"]
