"""Real processes: how they start and end, at a terminal and without one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sqmd.cli.exits import MEANINGS, Exit
from tests.squirrel_mcp.cli.terminal import Terminal

from .conftest import Run

COMMAND = [sys.executable, "-m", "tests.sqmd.faked"]


def test_help_loads_nothing_heavy_and_lists_the_exit_codes(environment: dict[str, str]) -> None:
    code = "import sys; from sqmd.cli.app import run; run(['--help']); run(['index', '--help']); print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    out, _, modules = ran.stdout.rstrip().rpartition("\n")
    loaded = {name.partition(".")[0] for name in modules.split()}
    heavy = "lancedb pyarrow numpy onnxruntime tokenizers fastapi mcp markdown_it watchfiles rich yaml httpx pydantic"
    assert not loaded & set(heavy.split())
    assert all(f"{int(code)} " in out and meaning[:20] in out for code, meaning in MEANINGS.items())


def test_the_program_starts_as_a_module_and_tells_its_version(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "sqmd", "--version"]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith("sqmd ") and ran.stdout.count("\n") == 1


def test_on_a_terminal_matches_are_highlighted_and_what_is_in_documents_does_not_act(
    environment: dict[str, str], run: Run, notes: Path
) -> None:
    (notes / "evil.md").write_text("# Evil\n\nThe zebra \x1b]0;owned\x07 \u202etxt [bold]x[/bold]\n", "utf-8")
    assert run("index").code == 0
    terminal = Terminal("search", "zebra", environment=environment, module="tests.sqmd.faked")
    try:
        assert terminal.end() == 0
        assert (
            "\x1b]0;" not in terminal.screen
            and "\\u{1b}]0;owned" in terminal.screen
            and "[bold]x[/bold]" in (terminal.screen)
        )
        assert "\x1b[1;33mzebra\x1b[0m" in terminal.screen
    finally:
        terminal.kill()


def test_on_a_terminal_a_context_does_not_act_either(environment: dict[str, str], run: Run, notes: Path) -> None:
    (notes / "evil.md").write_text("# Evil\n\nThe zebra \x1b]0;owned\x07\n", "utf-8")
    assert run("index").code == 0
    terminal = Terminal("context", "zebra", environment=environment, module="tests.sqmd.faked")
    try:
        assert terminal.end() == 0 and "\x1b]0;" not in terminal.screen and "\\u{1b}]0;owned" in terminal.screen
    finally:
        terminal.kill()
    assert "\x1b]0;owned" in run("context", "zebra").out  # a pipe gets what is in the file


def test_an_index_on_a_terminal_shows_how_far_it_is_and_when_text_can_be_searched(
    environment: dict[str, str], notes: Path
) -> None:
    terminal = Terminal("index", environment=environment, module="tests.sqmd.faked")
    try:
        assert terminal.end() == 0
        assert "The text can be searched; vectors follow." in terminal.screen
        assert "2/2" in terminal.screen and "2 indexed" in terminal.screen
    finally:
        terminal.kill()


def test_watching_indexes_what_changes_until_ctrl_c(environment: dict[str, str], notes: Path) -> None:
    environment |= {"SQMD_WATCHER__DEBOUNCE_MS": "100"}
    terminal = Terminal("index", "--watch", environment=environment, module="tests.sqmd.faked")
    try:
        terminal.wait_for("Watching")
        (notes / "new.md").write_text("# New\n\nA new one.\n", "utf-8")
        terminal.wait_for("1 indexed")
        assert terminal.end_with_ctrl_c() == Exit.INTERRUPTED and "Traceback" not in terminal.screen
    finally:
        terminal.kill()


def test_a_reader_that_stops_reading_is_no_error(environment: dict[str, str], run: Run, indexed: Path) -> None:
    with subprocess.Popen(
        [*COMMAND, "search", "tea"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == Exit.BROKEN_PIPE


@pytest.mark.parametrize("args", [("--help",), ("--version",), ("search", "--help")])
def test_it_is_none_for_help_either(environment: dict[str, str], args: tuple[str, ...]) -> None:
    read, written = os.pipe()
    os.close(read)
    ran = subprocess.run([*COMMAND, *args], env=environment, stdout=written, stderr=subprocess.PIPE, check=False)
    os.close(written)
    assert (ran.returncode, ran.stderr) == (Exit.BROKEN_PIPE, b"")


@pytest.mark.skipif(sys.platform == "win32", reason="it is a shell's way of saying it")
def test_closed_streams_harm_no_file_of_the_index(environment: dict[str, str], run: Run, notes: Path) -> None:
    closed = ["sh", "-c", 'exec "$@" >&- 2>&-', "sh", *COMMAND]
    for args in (("index",), ("search", "tea")):
        assert subprocess.run([*closed, *args], env=environment, check=False).returncode == 0
    assert "tea.md" in run("search", "tea").out


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals there")
@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("mcp", "--transport", "http", "--port", "0")])
def test_ctrl_c_while_a_server_starts_ends_it_without_a_traceback(
    environment: dict[str, str], notes: Path, command: tuple[str, ...]
) -> None:
    begun = [sys.executable, "-c", "from sqmd.cli import main; print(flush=True); main()", *command]
    pipe = subprocess.PIPE
    for moment in range(8):
        with subprocess.Popen(begun, env=environment, stdout=pipe, stderr=pipe) as process:
            assert process.stdout is not None and process.stdout.readline() == b"\n"
            time.sleep(0.1 + 0.15 * moment)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
        assert process.returncode in (0, Exit.INTERRUPTED) and b"Traceback" not in said, (moment, said)


@pytest.mark.parametrize(
    "command", [("serve", "--port", "0"), ("mcp", "--transport", "http", "--port", "0"), ("index",)]
)
def test_a_bug_that_ends_a_thread_is_told_by_kind_and_place(
    environment: dict[str, str], notes: Path, command: tuple[str, ...]
) -> None:
    program = (
        "import threading; from sqmd.cli import main; from sqmd.service import Service\n"
        "def broken(): raise ZeroDivisionError('canary')\n"
        "made = Service.__init__\n"
        "def make(*args, **options):\n"
        "    threading.Thread(target=broken).start()\n"
        "    made(*args, **options)\n"
        "Service.__init__ = make\nmain()\n"
    )
    begun = [sys.executable, "-c", program, *command]
    with subprocess.Popen(begun, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = ""
        while "ZeroDivisionError" not in said:
            line = process.stderr.readline()
            assert line, said
            said += line
        process.kill()
        said += process.stderr.read()
    assert "ZeroDivisionError at <string>:2" in said and "canary" not in said and "Traceback" not in said


def test_an_old_console_sees_escapes_and_nothing_crashes(environment: dict[str, str], run: Run, notes: Path) -> None:
    (notes / "cafe.md").write_text("# Café ☕\n\nThe zebra drinks.\n", "utf-8")
    assert run("index").code == 0
    environment |= {"PYTHONIOENCODING": "cp1252"}
    ran = subprocess.run([*COMMAND, "search", "zebra"], env=environment, capture_output=True, check=True)
    assert b"\\u2615" in ran.stdout and b"\r" not in ran.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals there")
def test_a_server_serves_follows_the_folder_and_ends_at_once(environment: dict[str, str], notes: Path) -> None:
    import httpx

    environment |= {"SQMD_WATCHER__DEBOUNCE_MS": "100"}
    with subprocess.Popen([*COMMAND, "serve", "--port", "0"], env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        address = process.stderr.readline().decode().strip()
        try:
            with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:

                def found(query: str) -> bool:
                    answer = client.get("/api/v1/search", params={"q": query, "mode": "fts"})
                    return answer.status_code == 200 and answer.json()["total"] > 0

                _until(lambda: found("degrees"))
                assert client.get("/api/v1/index/status").json()["watcherRunning"] is True
                (notes / "new.md").write_text("# New\n\nThe zebra arrived.\n", "utf-8")
                _until(lambda: found("zebra"))
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 0 and process.stderr.read() == b""
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals there")
def test_what_another_process_indexes_is_found_by_a_server_at_once(
    environment: dict[str, str], run: Run, indexed: Path
) -> None:
    import httpx

    environment |= {"SQMD_WATCHER__ENABLED": "false", "SQMD_API_PORT": "0"}
    with subprocess.Popen([*COMMAND, "serve"], env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        address = process.stderr.readline().decode().strip()
        try:
            with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
                for word in ("zebra", "giraffe"):
                    query = {"q": word, "mode": "fts"}
                    assert client.get("/api/v1/search", params=query).json()["total"] == 0
                    (indexed / f"{word}.md").write_text(f"# New\n\nThe {word} arrived by ship.\n", "utf-8")
                    subprocess.run([*COMMAND, "index"], env=environment, check=True, capture_output=True)
                    assert client.get("/api/v1/search", params=query).json()["total"] == 1
        finally:
            process.terminate()
            process.wait(60)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals there")
def test_transport_and_port_of_the_configuration_count_without_a_flag(
    environment: dict[str, str], indexed: Path
) -> None:
    environment |= {"SQMD_MCP__TRANSPORT": "sse", "SQMD_MCP__SSE_PORT": "0"}
    with subprocess.Popen([*COMMAND, "mcp"], env=environment, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        said = process.stderr.readline().decode()
        process.terminate()
        process.communicate(timeout=60)
    assert said.startswith("sqmd: serving MCP at http://127.0.0.1:") and said.endswith("/sse\n")
    assert ":7833/" not in said


def test_a_port_that_is_taken_is_one_line(environment: dict[str, str], notes: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for command in (("serve", "--port", port), ("mcp", "--transport", "http", "--port", port)):
            ran = subprocess.run([*COMMAND, *command], env=environment, capture_output=True, check=False)
            assert ran.returncode == Exit.BUSY and ran.stderr.count(b"\n") == 1 and port.encode() in ran.stderr
    assert not Path(environment["HOME"], ".sqmd").exists()  # nothing was begun before


def _until(happened: object) -> None:
    assert callable(happened)
    while not happened():  # the run's own time limit ends what never happens
        time.sleep(0.05)
