"""After a day of good and bad use, what was said and stored is nowhere in the clear."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from squirrel_mcp import opening
from squirrel_mcp.crypto import kdf
from squirrel_mcp.settings import Settings

from .conftest import Start

PASSPHRASE = "canarypassphrase of several words"
CANARIES = [
    name.encode()
    for name in (
        "canarytext", "canarytag", "canarykeyword", "canaryentity", "canarycategory", "canarysource", "canaryreason",
        "canaryquery", "canarytopic", "canarycorrected", "canaryargument", "canarytool", "canarypassphrase",
        "canaryline", "canarylong", "canarywrong",
    )
]  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "canaries"
    settings = Settings(data_dir=folder, passphrase=PASSPHRASE)
    cheap = kdf.Argon2id(time=2, memory_kib=19_456, lanes=1)
    opening.open_vault(settings, opening.from_settings(settings), parameters=cheap).close()
    return folder


def test_neither_stderr_nor_a_file_holds_what_was_said(start: Start, folder: Path) -> None:
    server = start(folder=folder, SQUIRREL_PASSPHRASE=PASSPHRASE, SQUIRREL_LOG_LEVEL="debug")
    server.initialize()
    saved = server.call(
        "save_memory",
        text="canarytext one",
        entity="canaryentity",
        category="canarycategory",
        tags=["canarytag"],
        keywords=["canarykeyword"],
        source="canarysource",
    )
    server.call("search_memory", query="canaryquery canarytext", tags="canarytag")
    server.call("get_context", topic="canarytopic")
    server.call("update_memory", id=saved["id"], text="canarycorrected two", reason="canaryreason")
    server.call("get_memory", id=saved["id"], history=True)
    server.call("memory_status")
    # And everything that can go wrong on the way in.
    server.refused("save_memory", text="canarylong " * 2_000)
    server.refused("save_memory", text={"canarytext": "canarywrong"})
    server.refused("save_memory", text="canarytext", tags=["canarytag", 42])
    server.call("save_memory", text="canarytext three", canaryargument="canaryargument")
    server.refused("canarytool")
    server.send("resources/read", {"uri": "memory://canaryquery"})
    server.send("prompts/get", {"name": "canarytool", "arguments": {"topic": "canarytopic"}})
    server.send("prompts/get", {"name": "recall", "arguments": {"topic": ["canarytopic"]}})
    server.send("tools/call", {"name": ["canarytool"], "arguments": {"text": "canarytext"}})
    server.send("tools/call", {"name": "save_memory", "arguments": "canarytext"})
    server.send("canarytool/unknown", {"text": "canarytext"})
    server.send_line(b"canaryline that is no JSON")
    server.send_line(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":"canaryline"}}')
    server.send_line(b'{"jsonrpc":"2.0","id":"x","result":{"text":"canaryline"}}')
    half = json.dumps({"name": "save_memory", "arguments": {"text": "canarytext \ud800"}})
    server.send_line(b'{"jsonrpc":"2.0","id":999,"method":"tools/call","params":' + half.encode() + b"}")
    assert server.answer(999)["result"]["isError"]
    # The database and its log are looked at while they are in use.
    assert look_into(folder) >= {"vault.db", "vault.db-wal"}
    assert server.end() == 0
    assert look_into(folder) >= {"vault.db"}
    said = server.stderr.all()
    assert b"save_memory: ok" in said  # it did speak
    assert [canary for canary in CANARIES if canary in said.lower()] == []


def test_a_wrong_passphrase_is_not_repeated(start: Start, folder: Path) -> None:
    server = start(folder=folder, SQUIRREL_PASSPHRASE="canarywrong passphrase", SQUIRREL_LOG_LEVEL="debug")
    server.initialize()
    for _ in range(3):
        assert "canarywrong" not in server.refused("get_context")
        server.call("memory_status")
    server.end()
    assert b"canarywrong" not in server.stderr.all() + server.stdout.all()


def look_into(folder: Path) -> set[str]:
    """The names of the files in a data folder, none of which holds a canary."""
    names = set()
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes().lower()
            assert [canary for canary in CANARIES if canary in content] == [], path.name
            names.add(path.name)
    return names
