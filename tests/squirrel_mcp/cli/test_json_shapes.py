"""The keys of --json are a promise: docs/cli.md lists them, and here each command keeps it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
    assert len(rows) == 18
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
