"""docs/security.md says what a real server's database holds, column by column; and no secret is in it."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from scripts import server_sees
from scripts.server_sees import Seen


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What a real server has after two real devices have been at it."""
    return server_sees.live(tmp_path_factory.mktemp("server-sees"))


@pytest.fixture
def lived(seen: Seen, monkeypatch: pytest.MonkeyPatch) -> Seen:
    """The script finds just that."""
    monkeypatch.setattr(server_sees, "live", lambda folder: seen)
    return seen


def test_the_docs_say_what_the_server_sees(lived: Seen, capsys: pytest.CaptureFixture[str]) -> None:
    assert server_sees.main(["--check"]) == 0, capsys.readouterr().err


def test_no_secret_is_in_any_column_or_in_the_log(seen: Seen) -> None:
    assert {"accounts", "log", "objects", "memories", "api_keys", "invites"} <= seen.tables.keys()
    assert len(seen.secrets) > 12 and len(seen.tables["objects"]["body"]) == 3
    assert server_sees.leaks(seen.tables, seen.secrets) == []
    assert b'"event": "request"' in seen.log
    assert not [each for each in seen.secrets if any(form in seen.log for form in server_sees.forms(each))]


def test_a_stale_block_is_noticed(
    lived: Seen, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "security.md"
    stale.write_text(server_sees.DOCUMENT.read_text("utf-8").replace("| 16 random bytes |", "| a name |", 1), "utf-8")
    monkeypatch.setattr(server_sees, "DOCUMENT", stale)
    assert server_sees.main(["--check"]) == 1
    assert "--write" in capsys.readouterr().err
    assert server_sees.main(["--write"]) == 0
    assert stale.read_text("utf-8") == (server_sees.ROOT / "docs" / "security.md").read_text("utf-8")


def test_a_column_that_nobody_described_is_noticed(seen: Seen) -> None:
    more = {**seen.tables, "api_keys": {**seen.tables["api_keys"], "label": [None, None]}}
    with pytest.raises(SystemExit, match="label"):
        server_sees.render(Seen(more, seen.log, seen.secrets, seen.lengths))


@pytest.mark.parametrize(
    "value",
    ["a canary-secret-1 b", b"\0canary-secret-1\0", b"canary-secret-1".hex(), base64.b64encode(b"x canary-secret-1 y")],
)
def test_a_secret_in_a_column_is_noticed(value: str | bytes) -> None:
    assert server_sees.leaks({"t": {"c": [None, 5, value]}}, ["canary-secret-1"]) == ["t.c: canary-secret-1"]
