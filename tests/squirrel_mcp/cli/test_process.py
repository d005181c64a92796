"""Real processes: how they start, what a closed pipe and an old console do to them, and the demo."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from squirrel_mcp import opening
from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.memory import Draft, from_draft
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.settings import Settings
from squirrel_mcp.vault import utc_now

from ..conftest import CHEAP, PASSPHRASE

COMMAND = [sys.executable, "-m", "squirrel_mcp"]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Of a machine whose vault holds 300 memories."""
    settings = Settings(data_dir=tmp_path / "data")
    now = utc_now()
    vault = opening.open_vault(settings, Unlocker(lambda: PASSPHRASE), parameters=CHEAP)
    vault.put_revisions(
        [from_draft(Draft(f"Zoë {number} ☕ " + "long " * 50), uuid4().hex, now) for number in range(300)]
    )
    vault.close()
    return {**os.environ, "SQUIRREL_DATA_DIR": str(settings.data_dir), "SQUIRREL_PASSPHRASE": PASSPHRASE}


def test_without_arguments_nothing_of_the_command_line_is_loaded() -> None:
    code = (
        "import sys; before = set(sys.modules); sys.argv = ['squirrel-mcp']; import squirrel_mcp.cli; "
        "import squirrel_mcp.mcp_server.lifecycle as l; l.main = lambda edition: print(*set(sys.modules) - before); "
        "squirrel_mcp.cli.main()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.split(".")[0] for name in ran.stdout.split()}
    assert not loaded & {"click", "rich", "sqlalchemy", "keyring", "numpy", "httpx", "cryptography", "mcp"}


def test_without_arguments_it_is_the_stdio_server(environment: dict[str, str]) -> None:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"},
        },
    }
    line = json.dumps(request).encode() + b"\n"
    ran = subprocess.run(COMMAND, env=environment, input=line, stdout=subprocess.PIPE, check=True)
    (answer,) = map(json.loads, ran.stdout.splitlines())
    assert answer["result"]["serverInfo"]["name"] == "squirrel"


def test_a_reader_that_stops_reading_is_no_error(environment: dict[str, str]) -> None:
    with subprocess.Popen(
        [*COMMAND, "list", "--all"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == Exit.BROKEN_PIPE


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no such device there")
@pytest.mark.parametrize(
    ("command", "code"),
    [("list --json", Exit.STORE), ("list --all", Exit.STORE), ("list", Exit.STORE), ("nonsense --json", Exit.USAGE),
     ("--help", Exit.STORE), ("search tea --limit 0", Exit.USAGE)],
)  # fmt: skip
@pytest.mark.parametrize("streams", [">/dev/full", "2>/dev/full >/dev/full"])
def test_an_output_that_is_full_is_told_by_the_exit_code_and_no_traceback(
    environment: dict[str, str], command: str, code: Exit, streams: str
) -> None:
    ran = _in_shell(environment, f"{command} {streams}")
    assert ran.returncode == code and ran.stdout == b""
    assert len(ran.stderr.splitlines()) == (0 if "2>" in streams else 1)


@pytest.mark.skipif(sys.platform == "win32", reason="about the descriptors of a POSIX shell")
@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        ("list >&-", Exit.STORE, b"no standard output"),
        ("list --json >&-", Exit.STORE, b"no standard output"),
        ("status >&-", Exit.STORE, b"no standard output"),
        ("list >&- 2>&- <&-", Exit.STORE, b""),
        ("add - <&-", Exit.USAGE, b"empty"),
        ("join - <&-", Exit.USAGE, b"empty"),
        ("account delete <&-", Exit.USAGE, b"nobody to ask"),
        ("nonsense 2>&-", Exit.USAGE, b""),
        ("status <&-", Exit.OK, b""),
        ("status 2>&- <&-", Exit.OK, b""),
    ],
)
def test_a_stream_that_was_closed_is_a_sentence_and_not_a_bug(
    environment: dict[str, str], command: str, code: Exit, said: bytes
) -> None:
    ran = _in_shell(environment, command)
    assert ran.returncode == code and said in ran.stderr and len(ran.stderr.splitlines()) == (1 if said else 0)


def test_what_is_saved_without_streams_is_whole(environment: dict[str, str]) -> None:
    # A database on the number of a missing stream would be printed into.
    assert _in_shell(environment, "add 'kept whole' 2>&- <&-").returncode == Exit.OK
    listed = _in_shell(environment, "list --limit 1")
    assert listed.returncode == Exit.OK and b"kept whole" in listed.stdout


def _in_shell(environment: dict[str, str], command: str) -> subprocess.CompletedProcess[bytes]:
    line = f"{shlex.join(COMMAND)} {command}"
    return subprocess.run(["sh", "-c", line], env=environment, capture_output=True, check=False)


@pytest.mark.parametrize(("encoding", "args"), [("cp1252", ("list",)), ("cp950", ("search", "long"))])
def test_an_old_console_sees_escapes_and_nothing_crashes(
    environment: dict[str, str], encoding: str, args: tuple[str, ...]
) -> None:
    environment |= {"PYTHONIOENCODING": encoding}
    ran = subprocess.run([*COMMAND, *args], env=environment, capture_output=True, check=True)
    assert b"\\u2615" in ran.stdout and b"\r" not in ran.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals there")
def test_an_interrupted_command_ends_with_130_and_without_traceback(
    environment: dict[str, str], tmp_path: Path
) -> None:
    # It waits for the passphrase: the command that prints it never does.
    os.mkfifo(tmp_path / "fifo")
    del environment["SQUIRREL_PASSPHRASE"]
    environment |= {"SQUIRREL_PASSPHRASE_COMMAND": f"cat {tmp_path / 'fifo'}"}
    with (
        subprocess.Popen(
            [*COMMAND, "list"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process,
        open(tmp_path / "fifo", "wb"),
    ):  # opens once the command waits there
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == Exit.INTERRUPTED and errors.strip() == b"Stopped."


def test_the_demo_does_what_it_says(tmp_path: Path) -> None:
    environment = {**os.environ, "SQUIRREL_PASSPHRASE": "never used here", "TMPDIR": str(tmp_path)}
    ran = subprocess.run([*COMMAND, "demo"], env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == Exit.OK, ran.stderr
    for heading in ("1. Saved", "2. What the store sees", "3. Found", "4. Corrected", "5. Forgotten", "mcpServers"):
        assert heading in ran.stdout
    assert "never used here" not in ran.stdout and not any(line.endswith(" ") for line in ran.stdout.splitlines())
    assert list(tmp_path.iterdir()) == []


def test_the_demo_fails_when_a_step_does_not_do_what_it_says(tmp_path: Path) -> None:
    # A program that takes the search away, then runs the demo, whose server starts it again.
    (tmp_path / "sitecustomize.py").write_text(
        "import squirrel_mcp.search.lexical as l\n"
        "from squirrel_mcp.search.results import Ranking\n"
        "l.WordRanker.search = lambda self, *a, **k: Ranking('lexical', 0, 0, ())\n"
    )
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    ran = subprocess.run(
        [*COMMAND, "demo"], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True, check=False
    )
    assert ran.returncode == Exit.STORE and "Nothing was found" in ran.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals there")
@pytest.mark.parametrize(
    ("module", "args"),
    [
        ("squirrel_mcp.cli.app", ("list",)),
        ("click", ("list",)),
        ("squirrel_mcp.cli.reading", ("list",)),
        ("squirrel_mcp.mcp_server.lifecycle", ()),
        ("squirrel_mcp.mcp_server.logs", ()),
    ],
)
def test_an_interrupt_while_the_program_is_loaded_ends_it_quietly(
    tmp_path: Path, module: str, args: tuple[str, ...]
) -> None:
    # The process interrupts itself where it looks for the module.
    (tmp_path / "sitecustomize.py").write_text(
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == {module!r}: os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
    )
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": path, "SQUIRREL_DATA_DIR": str(tmp_path / "data")}
    ran = subprocess.run([*COMMAND, *args], env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    assert ran.returncode == Exit.INTERRUPTED and ran.stderr.strip() in (b"", b"Stopped.") and ran.stdout == b""
