"""What each client needs in its configuration to start the server, as text. Pure: no file is read or written."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SERVER = "squirrel"
_INPUT = "squirrel-passphrase"
_KEY_INPUT = "squirrel-api-key"

PassphraseFrom = Literal["keyring", "file", "command", "variable"]


@dataclass(frozen=True, slots=True)
class Launch:
    """How the server is started.

    passphrase_from: where it finds the passphrase. `variable` puts a placeholder into the snippet, which the server
    refuses until it is filled in; the passphrase itself never gets here. passphrase_file: its path, or "".
    environment: other variables. has_api_key: whether there is a server that takes one; api_key: the key itself, for
    the one time that it is shown, or None for a placeholder, which the server refuses too.
    """

    command: str = "uvx"
    args: tuple[str, ...] = ("squirrel-mcp",)
    passphrase_from: PassphraseFrom = "file"
    passphrase_file: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    has_api_key: bool = False
    api_key: str | None = field(default=None, repr=False)

    def variables(
        self, placeholder: str = "${SQUIRREL_PASSPHRASE}", key_placeholder: str = "${SQUIRREL_API_KEY}"
    ) -> dict[str, str]:
        variables = dict(self.environment)
        if self.has_api_key:
            variables["SQUIRREL_API_KEY"] = self.api_key or key_placeholder
        if self.passphrase_from == "file":
            variables["SQUIRREL_PASSPHRASE_FILE"] = self.passphrase_file or "/path/to/a/file/only/you/can/read"
        elif self.passphrase_from == "command":
            # The command itself is not printed: people put secrets into command lines.
            variables["SQUIRREL_PASSPHRASE_COMMAND"] = "the command that prints your passphrase"
        elif self.passphrase_from == "variable":
            variables["SQUIRREL_PASSPHRASE"] = placeholder
        return variables


@dataclass(frozen=True, slots=True)
class Snippet:
    """`where` is a file to put `content` into, or "" for a command to run."""

    client: str
    where: str
    kind: Literal["json", "toml", "command"]
    content: str


def snippet(client: str, launch: Launch, platform: str) -> Snippet:
    """What `client`, one of `CLIENTS`, needs; `platform` is a value of `sys.platform`."""
    return _MAKERS[client](client, launch, platform)


def _mcp_servers(client: str, launch: Launch, platform: str) -> Snippet:
    return Snippet(client, _where(client, platform), "json", _json({"mcpServers": {SERVER: _server(launch)}}))


def _claude_code(client: str, launch: Launch, platform: str) -> Snippet:
    words = ["claude", "mcp", "add", "--scope", "user", SERVER]
    for name, value in launch.variables().items():
        words += ["--env", f"{name}={value}"]
    return Snippet(client, "", "command", shlex.join([*words, "--", launch.command, *launch.args]) + "\n")


def _vscode(client: str, launch: Launch, platform: str) -> Snippet:
    content: dict[str, Any] = {}
    asked = {}
    if launch.passphrase_from == "variable":
        asked[_INPUT] = "Passphrase of your memories"
    if launch.has_api_key and launch.api_key is None:
        asked[_KEY_INPUT] = "API key of your memories"
    if asked:
        content["inputs"] = [
            {"type": "promptString", "id": name, "description": what, "password": True} for name, what in asked.items()
        ]
    server = {"type": "stdio", **_server(launch, f"${{input:{_INPUT}}}", f"${{input:{_KEY_INPUT}}}")}
    return Snippet(client, _where(client, platform), "json", _json({**content, "servers": {SERVER: server}}))


def _codex(client: str, launch: Launch, platform: str) -> Snippet:
    lines = [
        f"[mcp_servers.{SERVER}]",
        f"command = {_toml(launch.command)}",
        f"args = [{', '.join(map(_toml, launch.args))}]",
        # The first start may download the program.
        "startup_timeout_sec = 60",
    ]
    if variables := launch.variables():
        lines += ["", f"[mcp_servers.{SERVER}.env]"]
        lines += [f"{name} = {_toml(value)}" for name, value in variables.items()]
    return Snippet(client, _where(client, platform), "toml", "\n".join(lines) + "\n")


def _zed(client: str, launch: Launch, platform: str) -> Snippet:
    return Snippet(client, _where(client, platform), "json", _json({"context_servers": {SERVER: _server(launch)}}))


_MAKERS: dict[str, Callable[[str, Launch, str], Snippet]] = {
    "claude-desktop": _mcp_servers,
    "claude-code": _claude_code,
    "cursor": _mcp_servers,
    "vscode": _vscode,
    "codex": _codex,
    "gemini": _mcp_servers,
    "zed": _zed,
}
CLIENTS = tuple(_MAKERS)

# (macOS, Windows, elsewhere) where the three differ.
_PLACES: dict[str, tuple[str, str, str]] = {
    "claude-desktop": (
        "~/Library/Application Support/Claude/claude_desktop_config.json",
        r"%APPDATA%\Claude\claude_desktop_config.json",
        "~/.config/Claude/claude_desktop_config.json",
    ),
    "cursor": ("~/.cursor/mcp.json",) * 3,
    "vscode": (".vscode/mcp.json",) * 3,
    "codex": ("~/.codex/config.toml",) * 3,
    "gemini": ("~/.gemini/settings.json",) * 3,
    "zed": ("~/.config/zed/settings.json", r"%APPDATA%\Zed\settings.json", "~/.config/zed/settings.json"),
}


def _where(client: str, platform: str) -> str:
    return _PLACES[client][{"darwin": 0, "win32": 1}.get(platform, 2)]


def _server(launch: Launch, *placeholders: str) -> dict[str, Any]:
    server: dict[str, Any] = {"command": launch.command, "args": list(launch.args)}
    variables = launch.variables(*placeholders)
    return {**server, "env": variables} if variables else server


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _toml(value: str) -> str:
    """A basic string: the escapes of JSON are those of TOML, but for DEL, which JSON leaves as it is."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
