"""Snippets that clients can read, and that hold no secret."""

from __future__ import annotations

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from squirrel_mcp.cli import client_config
from squirrel_mcp.cli.client_snippets import CLIENTS, Launch, PassphraseFrom, snippet
from squirrel_mcp.cli.exits import Exit

from ..conftest import PASSPHRASE
from .conftest import Run

SOURCES: tuple[PassphraseFrom, ...] = ("keyring", "file", "command", "variable")
AWKWARD = 'D:\\data of Zoë "x"\\p\x7f'


def _server(client: str, launch: Launch) -> dict[str, Any]:
    """The server as the client would read it."""
    found = snippet(client, launch, "linux")
    if found.kind == "toml":
        return tomllib.loads(found.content)["mcp_servers"]["squirrel"]  # type: ignore[no-any-return]
    if found.kind == "command":
        words = shlex.split(found.content)
        at = words.index("--")
        pairs = [words[n + 1].split("=", 1) for n, word in enumerate(words[:at]) if word == "--env"]
        assert words[:3] == ["claude", "mcp", "add"] and "squirrel" in words[:at]
        return {"command": words[at + 1], "args": words[at + 2 :], "env": dict(pairs)}
    key = {"vscode": "servers", "zed": "context_servers"}.get(client, "mcpServers")
    return json.loads(found.content)[key]["squirrel"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("source", SOURCES)
def test_every_client_gets_the_command_and_the_variables(client: str, source: PassphraseFrom) -> None:
    launch = Launch(passphrase_from=source, passphrase_file=AWKWARD, environment={"SQUIRREL_DATA_DIR": AWKWARD})
    server = _server(client, launch)
    assert (server["command"], server["args"]) == ("uvx", ["squirrel-mcp"])
    assert server["env"]["SQUIRREL_DATA_DIR"] == AWKWARD
    assert ("SQUIRREL_PASSPHRASE_FILE" in server["env"]) == (source == "file")
    assert server["env"].get("SQUIRREL_PASSPHRASE_FILE", AWKWARD) == AWKWARD
    assert ("SQUIRREL_PASSPHRASE" in server["env"]) == (source == "variable")


@pytest.mark.parametrize("client", CLIENTS)
def test_a_placeholder_left_as_it_is_would_be_refused(client: str) -> None:
    assert _server(client, Launch(passphrase_from="variable"))["env"]["SQUIRREL_PASSPHRASE"].startswith("${")


@pytest.mark.parametrize("client", CLIENTS)
def test_with_a_keyring_no_variable_is_needed(client: str) -> None:
    assert not _server(client, Launch(passphrase_from="keyring")).get("env")


def test_vs_code_asks_for_the_passphrase_without_showing_it() -> None:
    content = json.loads(snippet("vscode", Launch(passphrase_from="variable"), "linux").content)
    (asked,) = content["inputs"]
    assert (asked["type"], asked["password"]) == ("promptString", True)
    assert content["servers"]["squirrel"]["env"]["SQUIRREL_PASSPHRASE"] == f"${{input:{asked['id']}}}"
    assert "inputs" not in json.loads(snippet("vscode", Launch(passphrase_from="file"), "linux").content)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32", "freebsd14"])
def test_every_client_has_a_place_on_every_platform(platform: str) -> None:
    places = {client: snippet(client, Launch(), platform).where for client in CLIENTS}
    assert [client for client, place in places.items() if not place] == ["claude-code"]
    assert places["claude-desktop"].endswith("claude_desktop_config.json")
    assert places["codex"].endswith("config.toml")


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("source", [None, *SOURCES])
def test_the_command_never_prints_the_passphrase_or_the_command_that_prints_it(
    run: Run, monkeypatch: pytest.MonkeyPatch, client: str, source: str | None
) -> None:
    monkeypatch.setenv("SQUIRREL_PASSPHRASE_COMMAND", f"echo {PASSPHRASE}")
    options = ("--passphrase-from", source) if source else ()
    for ran in (run("client-config", "--client", client, *options), run("client-config", "--client", client, "--json")):
        assert ran.code == Exit.OK and PASSPHRASE not in ran.out + ran.err and "echo" not in ran.out


def test_stdout_is_the_snippet_alone_and_the_vault_is_the_one_in_use(
    run: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("SQUIRREL_PASSPHRASE")
    monkeypatch.setenv("SQUIRREL_PASSPHRASE_FILE", str(tmp_path / "secret"))
    ran = run("client-config", "--client", "cursor")
    server = json.loads(ran.out)["mcpServers"]["squirrel"]
    assert server["env"] == {
        "SQUIRREL_DATA_DIR": str(data_dir),
        "SQUIRREL_PASSPHRASE_FILE": str(tmp_path / "secret"),
    }
    assert "~/.cursor/mcp.json" in ran.err and "chmod 600" in ran.err


def test_local_names_a_program_that_is_there(run: Run) -> None:
    server = json.loads(run("client-config", "--client", "zed", "--local").out)["context_servers"]["squirrel"]
    assert Path(server["command"]).is_absolute() and Path(server["command"]).is_file()
    if "squirrel-mcp" not in Path(server["command"]).name:
        assert server["args"] == ["-m", "squirrel_mcp"]


def test_what_uvx_would_not_find_is_started_by_its_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_config, "_is_elsewhere", lambda: False)
    assert client_config.own_launch() == ("uvx", ("squirrel-mcp",))
    monkeypatch.setattr(client_config, "_is_elsewhere", lambda: True)
    assert Path(client_config.own_launch()[0]).is_absolute()
