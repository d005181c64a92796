"""A full disk, or a folder that may not be written: the server says so, loses nothing, and goes on afterwards."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from squirrel_mcp import opening
from squirrel_mcp.settings import Settings

from .conftest import PASSPHRASE, Start
from .server_process import SERVE

if sys.platform != "linux":
    pytest.skip("limits of another process, and capabilities", allow_module_level=True)

import resource

LONG = "The lighthouse keeper counts every ship. " * 300
# With a limit of 0 no file grows by a byte; with the other one the first page or two of a commit still fit.
LIMITS = (0, 6_000)
FULL_FROM_THE_START = f"""
import resource
most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (0, most))
{SERVE}
"""
# Modes do not bind root, unless it gives up CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: bits 1 and 2 of the first word.
BOUND_BY_MODES = f"""
import ctypes
libc = ctypes.CDLL(None)
header, words = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capget(header, words) == 0
words[0] &= ~0b110
assert libc.capset(header, words) == 0
{SERVE}
"""


def limit_files(pid: int, most: int | None) -> None:
    """How long files may get that the process writes; None: as long as they may at all."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard if most is None else most, hard))


def memories(data_dir: Path) -> list[str]:
    """The texts in a vault, read by this process."""
    settings = Settings(data_dir=data_dir, passphrase=PASSPHRASE)
    vault = opening.open_vault(settings, opening.from_settings(settings))
    try:
        assert vault.verdict is None and not vault.damaged
        return sorted(memory.text for memory in vault.memories)
    finally:
        vault.close()


@pytest.mark.parametrize("most", LIMITS)
def test_a_full_disk_refuses_what_is_new_keeps_what_is_there_and_is_forgotten(
    start: Start, data_dir: Path, most: int
) -> None:
    server = start()
    server.initialize()
    first = server.call("save_memory", text="The router is 10.0.7.1")["id"]
    limit_files(server.process.pid, most)
    for tool, arguments in (
        ("save_memory", {"text": LONG}),
        ("save_memory", {"text": LONG}),
        ("update_memory", {"id": first, "text": LONG}),
        ("forget_memory", {"id": first}),
    ):
        assert server.refused(tool, **arguments).endswith("(store_full)")
    assert [hit["id"] for hit in server.call("search_memory", query="router")["hits"]] == [first]
    assert server.call("get_memory", id=first)["revision"] == 1
    assert server.call("memory_status")["total"] == 1

    limit_files(server.process.pid, None)
    assert server.call("save_memory", text=LONG)["status"] == "saved"
    assert server.call("update_memory", id=first, text="The router is 10.0.9.1")["revision"] == 2
    assert server.end() == 0
    assert memories(data_dir) == sorted([LONG, "The router is 10.0.9.1"])


def test_a_server_that_is_killed_on_a_full_disk_loses_nothing(start: Start, data_dir: Path) -> None:
    server = start()
    server.initialize()
    server.call("save_memory", text="The router is 10.0.7.1")
    limit_files(server.process.pid, 6_000)
    assert server.refused("save_memory", text=LONG).endswith("(store_full)")
    server.process.kill()
    server.process.wait()
    assert memories(data_dir) == ["The router is 10.0.7.1"]


def test_a_vault_that_has_no_room_to_be_made_is_made_once_there_is(start: Start, tmp_path: Path) -> None:
    server = start(folder=tmp_path / "new", code=FULL_FROM_THE_START)
    server.initialize()
    assert server.refused("save_memory", text="tea").endswith("(store_full)")
    assert server.call("memory_status")["unlocked"] is False
    limit_files(server.process.pid, None)
    assert server.call("save_memory", text="tea")["status"] == "saved"
    assert server.end() == 0
    assert memories(tmp_path / "new") == ["tea"]


def test_a_folder_that_may_not_be_written_is_told_and_left_alone(start: Start, data_dir: Path) -> None:
    saving = start()
    saving.initialize()
    saving.call("save_memory", text="The router is 10.0.7.1")
    saving.end()
    files = {path: path.read_bytes() for path in data_dir.iterdir()}
    for path in files:
        path.chmod(0o400)
    data_dir.chmod(0o500)
    server = start(code=BOUND_BY_MODES if os.geteuid() == 0 else None)
    server.initialize()
    for tool, arguments in (("save_memory", {"text": "tea"}), ("get_context", {})):
        assert server.refused(tool, **arguments).endswith("(store_unavailable)")
    status = server.call("memory_status")
    assert (status["unlocked"], status["problem"]["code"]) == (False, "store_unavailable")
    assert {path: path.read_bytes() for path in data_dir.iterdir()} == files

    data_dir.chmod(0o700)
    for path in files:
        path.chmod(0o600)
    assert server.call("save_memory", text="tea")["status"] == "saved"
    assert server.end() == 0
    assert memories(data_dir) == ["The router is 10.0.7.1", "tea"]
