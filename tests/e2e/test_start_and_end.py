"""What does not wait for the vault, and how a process ends, whatever it is doing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from squirrel_mcp import opening
from squirrel_mcp.settings import Settings

from .conftest import PASSPHRASE, Start
from .server_process import CLIENT, PATIENCE, SERVE, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="fifos and POSIX signals")

SIGNALS = [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 129)]


class Fifo:
    """A passphrase command that blocks until somebody lets the passphrase through."""

    def __init__(self, path: Path) -> None:
        self._path = path
        os.mkfifo(path, 0o600)

    @property
    def variables(self) -> dict[str, str | None]:
        return {"SQUIRREL_PASSPHRASE": None, "SQUIRREL_PASSPHRASE_COMMAND": f"cat {self._path}"}

    def wait_until_asked(self) -> int:
        """The descriptor to write to; opening it waits for the reader."""
        return os.open(self._path, os.O_WRONLY)


@pytest.fixture
def fifo(tmp_path: Path) -> Iterator[Fifo]:
    yield Fifo(tmp_path / "fifo")


def memories(data_dir: Path) -> set[str]:
    """The texts in a vault, read by this process."""
    settings = Settings(data_dir=data_dir, passphrase=PASSPHRASE)
    vault = opening.open_vault(settings, opening.from_settings(settings))
    try:
        assert vault.verdict is None and not vault.damaged
        return {memory.text for memory in vault.memories}
    finally:
        vault.close()


def test_initialize_and_the_lists_are_answered_before_the_key_is_derived(start: Start, fifo: Fifo) -> None:
    server = start(**fifo.variables)
    server.initialize()
    assert len(server.request("tools/list")["tools"]) == 8
    passphrase = fifo.wait_until_asked()
    call = server.send_call("save_memory", text="tea")
    assert len(server.request("tools/list")["tools"]) == 8
    assert "limit" in server.refused("search_memory", query="x", limit="many")
    os.write(passphrase, PASSPHRASE.encode())
    os.close(passphrase)
    assert server.answer(call)["result"]["structuredContent"]["status"] == "saved"
    assert server.end() == 0


def test_nothing_is_opened_before_the_first_answer(start: Start, data_dir: Path) -> None:
    watched = """
import sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("squirrel_mcp.service", "sqlalchemy", "numpy", "httpx", "keyring", "rich"):
            sys.stderr.write("importing " + name + "\\n")
            sys.stderr.flush()
sys.meta_path.insert(0, Watch())
from squirrel_mcp.cli import main; main()
"""
    idle = start(code=watched)
    assert idle.end() == 0
    assert b"importing" not in idle.stderr.all()
    server = start(code=watched)
    server.initialize()
    server.stderr.wait_for(lambda line: line == b"importing squirrel_mcp.service\n")
    server.stderr.wait_for(lambda line: line.startswith(b"memory: "))
    assert server.end() == 0
    assert b"importing rich" not in server.stderr.all() and b"importing keyring" not in server.stderr.all()


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_an_idle_server(start: Start, data_dir: Path, number: int, code: int) -> None:
    server = start()
    server.initialize()
    server.call("save_memory", text="tea")
    server.process.send_signal(number)
    assert server.ended() == code
    assert memories(data_dir) == {"tea"}


@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_signal_ends_a_server_that_waits_for_its_passphrase(start: Start, fifo: Fifo, number: int, code: int) -> None:
    server = start(**fifo.variables)
    server.initialize()
    server.send_call("get_context")
    passphrase = fifo.wait_until_asked()
    server.process.send_signal(number)
    assert server.ended() == code
    os.close(passphrase)  # only now, so that nothing else can have ended it


def test_stdin_may_end_while_a_request_waits(start: Start, fifo: Fifo) -> None:
    server = start(**fifo.variables)
    server.initialize()
    call = server.send_call("get_context")
    passphrase = fifo.wait_until_asked()
    assert server.end() == 0
    assert "error" in server.answer(call)
    os.close(passphrase)


@pytest.mark.parametrize("ending", ["eof", signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_an_end_in_the_middle_of_saves_loses_nothing_that_was_acknowledged(
    start: Start, data_dir: Path, ending: str | int
) -> None:
    server = start()
    server.initialize()
    server.call("save_memory", text="note 0")
    calls = {server.send_call("save_memory", text=f"note {number}"): f"note {number}" for number in range(1, 200)}
    first = next(iter(calls))
    server.answer(first)
    if isinstance(ending, int):
        server.process.send_signal(ending)
        server.process.wait()
    else:
        server.end()
    answers = [json.loads(line) for line in server.stdout.all().splitlines(keepends=True) if line.endswith(b"\n")]
    saved = {answer["id"] for answer in answers if "result" in answer and not answer["result"].get("isError")}
    acknowledged = {"note 0"} | {text for call, text in calls.items() if call in saved}
    assert acknowledged <= memories(data_dir) <= {f"note {number}" for number in range(200)}


def test_a_piped_session_is_answered_in_full(start: Start) -> None:
    server = start()
    sent = [server.send("initialize", CLIENT), server.send("tools/list"), server.send("ping")]
    assert server.end() == 0
    assert all("result" in server.answer(request) for request in sent)


def test_a_client_that_closes_our_stdout_ends_us(data_dir: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE],
        env=environment(data_dir, SQUIRREL_PASSPHRASE=PASSPHRASE),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin and process.stdout
    with process.stdin as stdin:
        stdin.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        stdin.flush()
        process.stdout.readline()
        process.stdout.close()
        stdin.write(b'{"jsonrpc":"2.0","id":2,"method":"ping"}\n')
        stdin.flush()
        assert process.wait(PATIENCE) == 0
