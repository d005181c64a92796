"""The keys of --json are a promise: docs/cli.md lists them, and here each command keeps it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.e2e.account_server import account_server

from .conftest import Run

_ROW = re.compile(r"^\| `squirrel-mcp ([^`]+)` \| (?:a memory, )?`([^`]+)`", re.MULTILINE)
_DOCS = Path(__file__).resolve().parents[3] / "docs/cli.md"
MEMORY = {
    "id", "text", "entity", "category", "tags", "keywords", "source", "createdAt", "updatedAt", "revision",
}  # fmt: skip


@pytest.fixture(scope="module")
def promised() -> dict[str, set[str]]:
    """The keys by command, as the docs have them."""
    rows = {command: set(keys.split(", ")) for command, keys in _ROW.findall(_DOCS.read_text("utf-8"))}
    assert len(rows) == 25
    return rows


def test_every_command_prints_the_keys_that_are_promised(
    run: Run, data_dir: Path, tmp_path: Path, promised: dict[str, set[str]]
) -> None:
    (tmp_path / "new").write_text("correct horse battery staple")  # the one it has
    file = str(tmp_path / "x")
    new = ("--new-passphrase-file", str(tmp_path / "new"))
    printed = {
        "init": run("init", "--no-recovery", "--json").json,
        "client-config --client NAME": run("client-config", "--client", "zed", "--json").json,
        "add TEXT": run("add", "one", "--json").json,
        "search QUERY": run("search", "one", "--json").json,
        "list": run("list", "--json").json,
    }
    (memory,) = printed["list"]["memories"]
    (hit,) = printed["search QUERY"]["hits"]
    printed |= {
        "correct ID TEXT": run("correct", memory["id"], "two", "--json").json,
        "status": run("status", "--json").json,
        "status --at SEQ": run("status", "--at", "1", "--json").json,
        "export FILE": run("export", file, "--json").json,
        "import FILE": run("import", file, "--json").json,
        "passphrase change": run("passphrase", "change", *new, "--json").json,
        "rotate": run("rotate", "--keep-passphrase", "--no-recovery", "--json").json,
    }
    shown = run("show", memory["id"], "--history", "--json").json
    (result,) = run("forget", memory["id"], "--yes", "--json").json["results"]
    assert {command: set(fields) for command, fields in printed.items()} == {
        command: promised[command] for command in printed
    }
    assert set(memory) == MEMORY
    assert set(hit) == MEMORY | {"score", "lexicalScore", "semanticScore", "nearMiss"}
    assert set(shown) == MEMORY | promised["show ID --history"]
    assert set(result) == {"status", "id"}


def test_so_does_every_command_that_has_to_do_with_a_server(
    run: Run, data_dir: Path, tmp_path: Path, promised: dict[str, set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    with account_server(tmp_path / "server") as server:
        run("add", "one")
        to = (server.origin, "--invite", server.invite(), "--json")
        moved = run("move", "--to", *to, "--yes").json
        monkeypatch.setenv("SQUIRREL_API_BASE_URL", server.origin)
        monkeypatch.setenv("SQUIRREL_API_KEY", moved["apiKey"])
        made = run("keys", "create", "--join", "--json").json
        listed = run("keys", "list", "--json").json
        printed = {
            "move --to URL --invite TOKEN": moved,
            "join -": run("join", "-", "--json", stdin=made["joinCode"].encode()).json,
            "keys create": made,
            "keys revoke ID": run("keys", "revoke", made["id"], "--json").json,
            "status": run("status", "--json").json,
            "account delete": run("account", "delete", "--yes", "--json").json,
        }
        for name in ("SQUIRREL_API_BASE_URL", "SQUIRREL_API_KEY"):
            monkeypatch.delenv(name)
        to = (server.origin, "--invite", server.invite(), "--json")
        printed["init --api URL --invite TOKEN"] = run("init", "--api", *to, "--no-recovery").json
    assert {command: set(fields) for command, fields in printed.items()} == {
        command: promised[command] for command in printed
    }
    assert {frozenset(key) for key in listed["keys"]} == {
        frozenset(("id", "scope", "created", "lastUsed", "expires", "current"))
    }
