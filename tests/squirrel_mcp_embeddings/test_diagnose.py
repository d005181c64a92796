"""`python -m squirrel_mcp_embeddings.diagnose` as a real process, on a real vault and the real model."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from squirrel_mcp import opening
from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.memory import Draft
from squirrel_mcp.settings import Settings
from tests.real_model import real_model
from tests.squirrel_mcp.conftest import CHEAP, PASSPHRASE

MODULE = "squirrel_mcp_embeddings.diagnose"
ID = r"[0-9a-f]{32}"
DOG = Draft("The quiverdog is afraid of thunder.", entity="Biscuitcanary", tags=("petcanary",))
BILL = Draft("Invoices are sent on the last working day.", entity="Ledgercanary", tags=("workcanary",))
PATIENCE = 60.0  # seconds


@pytest.fixture(autouse=True, scope="module")
def _a_model() -> None:
    with real_model():
        pass


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Folders of this test's own for everything that a process might write to."""
    for name in ("home", "temporary", "cache"):
        (tmp_path / name).mkdir(mode=0o700)
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "PYTHONPATH") if name in os.environ}
    return {
        **kept,
        "HOME": str(tmp_path / "home"),
        "TMPDIR": str(tmp_path / "temporary"),
        "TEMP": str(tmp_path / "temporary"),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        "SQUIRREL_DATA_DIR": str(tmp_path / "data"),
        "SQUIRREL_MEMORY_CACHE_DIR": str(tmp_path / "cache"),
        "SQUIRREL_PASSPHRASE": PASSPHRASE,
    }


@pytest.fixture
def vault(tmp_path: Path) -> Iterator[Any]:
    """An unlocked vault with two memories."""
    settings = Settings(data_dir=tmp_path / "data", passphrase=PASSPHRASE)
    found = opening.open_vault(settings, opening.from_settings(settings), parameters=CHEAP)
    found.save(DOG)
    found.save(BILL)
    yield found
    found.close()


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    path = tmp_path / "queries.json"
    wishes = [
        {"query": "frightened by a storm", "expect": "QUIVERDÓG"},
        {"query": "thunder", "expect": "ledgercanary"},
        {"query": "thunder", "expect": "canary"},
        {"query": "what\tof this", "expect": "no such memory"},
    ]
    path.write_text(json.dumps(wishes), "utf-8")
    return path


def diagnose(*args: object, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", MODULE, *map(str, args)]
    return subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=PATIENCE
    )


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_prints_ids_ranks_and_scores_and_nothing_of_a_memory(
    vault: Any, queries: Path, environment: dict[str, str]
) -> None:
    dog, bill = sorted((each.id, each.entity) for each in vault.memories)
    if dog[1] != DOG.entity:
        dog, bill = bill, dog
    result = diagnose(queries, environment=environment)
    assert result.returncode == Exit.OK, result.stderr
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    assert [row[0] for row in rows] == [dog[0], bill[0], "-", "-"]
    assert [row[1:3] for row in rows[1:]] == [["near miss 1", "2"], ["2 memories fit", "-"], ["no memory fits", "-"]]
    assert rows[0][1:3] == ["match 1", "1"] and float(rows[0][3]) > 0 and rows[0][4] == "-"
    assert float(rows[1][3]) + float(rows[1][4]) == pytest.approx(0.35, abs=0.002)
    assert [row[5] for row in rows] == ["frightened by a storm", "thunder", "thunder", "what of this"]
    said = (result.stdout + result.stderr).lower()
    assert not [word for word in ("canary", "quiverdog", "quiverdóg", "invoices", "afraid") if word in said]


def test_nothing_is_left_behind_and_the_file_of_the_companion_is_as_it_was(
    vault: Any, queries: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    folder = tmp_path / "cache" / "squirrel-notes"
    folder.mkdir(mode=0o700)
    (folder / "memory-vectors-abcdefghijklmnop.bin").write_bytes(b"of another time")
    before = {name: files(tmp_path / name) for name in ("home", "temporary", "cache")}
    assert diagnose(queries, environment=environment).returncode == Exit.OK
    assert {name: files(tmp_path / name) for name in before} == before
    assert not list((tmp_path / "temporary").iterdir())


@pytest.mark.skipif(os.name == "nt", reason="there are no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_the_vectors_are_gone_however_it_is_ended(
    vault: Any, queries: Path, environment: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    for memory in range(250):  # enough for seconds of work behind the first vectors
        vault.save(Draft(f"{memory} " + "a long story about a lighthouse and its keeper, " * 20))
    command = [sys.executable, "-m", MODULE, str(queries)]
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        deadline = time.monotonic() + PATIENCE
        while not list((tmp_path / "temporary").rglob("memory-vectors-*.bin")):
            assert process.poll() is None and time.monotonic() < deadline
            time.sleep(0.01)  # a file says nothing when it appears
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == Exit.INTERRUPTED, err
    assert out == b"" and err.splitlines()[-1] == b"Stopped."
    assert not list((tmp_path / "temporary").iterdir())


def test_a_file_that_is_none_of_queries_ends_it_with_a_sentence(environment: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text('{"query": "secretquery"}', "utf-8")
    result = diagnose(tmp_path / "bad.json", environment=environment)
    assert result.returncode == Exit.USAGE and result.stdout == ""
    assert len(result.stderr.splitlines()) == 1 and "secretquery" not in result.stderr
    missing = diagnose(tmp_path / "missing.json", environment=environment)
    assert missing.returncode != 0 and len(missing.stderr.splitlines()) == 1
    assert f"python -m {MODULE} --help" in diagnose(environment=environment).stderr


def test_where_there_is_no_model_it_says_why(vault: Any, queries: Path, environment: dict[str, str]) -> None:
    result = diagnose(queries, environment={**environment, "SQUIRREL_MEMORY_EMBEDDINGS": "0"})
    assert result.returncode == Exit.STORE and "(off)" in result.stderr
    result = diagnose(queries, environment={**environment, "SQUIRREL_MEMORY_MODEL_DIR": environment["HOME"]})
    assert result.returncode == Exit.STORE and "(missing: " in result.stderr


def test_where_there_is_no_vault_none_is_made(queries: Path, environment: dict[str, str], tmp_path: Path) -> None:
    result = diagnose(queries, environment=environment)
    assert result.returncode == Exit.STORE and "no vault" in result.stderr
    assert not (tmp_path / "data").exists()


def test_passphrase_and_key_are_asked_for_without_echo_where_they_are_not_set(
    vault: Any, queries: Path, environment: dict[str, str]
) -> None:
    pytest.importorskip("pty", reason="there are no pseudo terminals here")
    from tests.squirrel_mcp.cli.terminal import Terminal

    del environment["SQUIRREL_PASSPHRASE"]
    terminal = Terminal(str(queries), environment=environment, module=MODULE)
    try:
        terminal.answer("Passphrase: ", "not this one, surely")
        terminal.wait_for("does not open it")
        terminal.answer("Passphrase: ", PASSPHRASE)
        assert terminal.end() == Exit.OK
        assert PASSPHRASE not in terminal.screen and "match 1" in terminal.screen
    finally:
        terminal.kill()

    environment["SQUIRREL_API_BASE_URL"] = "https://localhost:1"
    terminal = Terminal(str(queries), environment=environment, module=MODULE)
    try:
        terminal.answer("API key of this device: ", "sqn_typed")
        terminal.answer("Passphrase: ", PASSPHRASE)
        assert terminal.end() not in (Exit.OK, Exit.BUG)
        assert PASSPHRASE not in terminal.screen and "sqn_typed" not in terminal.screen
    finally:
        terminal.kill()
