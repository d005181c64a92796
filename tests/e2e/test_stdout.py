"""stdout carries JSON-RPC and nothing else, whatever goes wrong; stderr says each thing once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Start
from .server_process import ServerProcess


def damage(data_dir: Path) -> None:
    """Overwrite the middle of the vault file."""
    file = data_dir / "vault.db"
    content = bytearray(file.read_bytes())
    content[1_000:] = b"\xaa" * (len(content) - 1_000)
    file.write_bytes(content)


def lose(data_dir: Path) -> None:
    for file in data_dir.glob("vault.db*"):
        file.unlink()


def exchange(server: ServerProcess) -> None:
    """A bit of everything, good and bad."""
    server.initialize()
    assert len(server.request("tools/list")["tools"]) == 8
    server.send_line(b"this is no JSON")
    server.send_line(b'{"jsonrpc":"2.0","method":"notifications/unknown"}')
    for request in (
        ("tools/call", {"name": "get_context"}),
        ("tools/call", {"name": "save_memory", "arguments": {"text": "tea\u2028time \u202e"}}),
        ("tools/call", {"name": "save_memory", "arguments": {"tags": [42]}}),
        ("tools/call", {"name": "search_memory", "arguments": {"query": "tea"}}),
        ("tools/call", {"name": "memory_status"}),
        ("tools/call", {"name": "none"}),
        ("prompts/get", {"name": "recall"}),
    ):
        server.request(*request)
    for method in ("resources/read", "prompts/get", "no/such/method"):
        assert "error" in server.answer(server.send(method, {"uri": "memory://none", "name": "none"}))


WRONG = {"SQUIRREL_PASSPHRASE": "another passphrase"}


@pytest.mark.parametrize(
    ("variables", "before", "line", "level"),
    [
        ({}, None, b", search by words", "debug"),
        ({}, None, b", search by words", "critical"),
        (WRONG, None, b"(wrong_passphrase)", "debug"),
        (WRONG, None, b"(wrong_passphrase)", "critical"),
        ({"SQUIRREL_PASSPHRASE": None}, None, b"(passphrase_missing)", "debug"),
        ({"SQUIRREL_PASSPHRASE": "${SQUIRREL_PASSPHRASE}"}, None, b"(passphrase_refused)", "debug"),
        ({}, damage, b"memory: ", "debug"),
        ({}, lose, b"(vault_missing)", "warning"),
        ({"SQUIRREL_DATA_DIR": "not/absolute"}, None, b"(configuration)", "warning"),
        ({"SQUIRREL_API_KEY": "sqn_canary"}, None, b"(configuration)", "warning"),
        ({}, None, b"(configuration)", "no such level"),
    ],
)
def test_every_byte_is_json_rpc_and_the_start_up_line_shows_at_every_level(
    start: Start,
    data_dir: Path,
    variables: dict[str, str | None],
    before: Callable[[Path], None] | None,
    line: bytes,
    level: str,
) -> None:
    if before:
        before(data_dir)
    server = start(**{**variables, "SQUIRREL_LOG_LEVEL": level})
    exchange(server)
    said = server.stderr.wait_for(lambda each: each.startswith(b"memory: "))
    assert server.end() == 0
    lines = server.stderr.all().splitlines()
    assert line in said
    assert len([each for each in lines if each.startswith(b"memory: ")]) == 1
    assert b"canary" not in b"".join(lines)
    if level == "critical":
        assert len(lines) == 1


NOISY = """
import os, subprocess, sys
print("printed before the start")

def noisy_ranker(settings, vault, say):
    print("printed and not flushed")
    sys.__stdout__.write("written to the real stdout")
    sys.__stdout__.flush()
    os.write(1, b"written to descriptor 1\\n")
    subprocess.run([sys.executable, "-c", "print('printed by a child'); print(input())"])
    say("memory: of the companion")
    return BASE.ranker(settings, vault, say)

from dataclasses import replace
from squirrel_mcp.edition import BASE
from squirrel_mcp.mcp_server.lifecycle import main
main(replace(BASE, ranker=noisy_ranker))
"""


def test_what_code_and_children_print_goes_to_stderr_and_nothing_reads_the_clients_pipe(start: Start) -> None:
    server = start(code=NOISY)
    exchange(server)
    server.stderr.wait_for(lambda line: line == b"memory: of the companion\n")
    assert server.end() == 0
    said = server.stderr.all()
    for what in (b"not flushed", b"real stdout", b"descriptor 1", b"by a child", b"EOFError"):
        assert what in said


def test_a_first_start_makes_the_vault_and_says_that_there_is_no_recovery_code(start: Start, tmp_path: Path) -> None:
    server = start(folder=tmp_path / "fresh")
    server.initialize()
    server.stderr.wait_for(lambda line: b"search by words" in line)
    server.stderr.wait_for(lambda line: b"squirrel-mcp recovery new" in line)
    assert "squirrel-mcp recovery new" in server.call("get_context")["note"]
    assert server.call("save_memory", text="tea")["status"] == "saved"
    again = start(folder=tmp_path / "fresh")
    again.initialize()
    again.stderr.wait_for(lambda line: b"search by words" in line)
    assert again.call("search_memory", query="tea")["total"] == 1
    assert again.end() == 0
    assert b"recovery" not in again.stderr.all()


def test_a_server_without_stderr_serves_all_the_same(start: Start) -> None:
    server = start(code="import os; os.close(2)\nfrom squirrel_mcp.cli import main; main()")
    exchange(server)
    assert server.end() == 0
