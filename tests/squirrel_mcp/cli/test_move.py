"""`move`: the vault of a machine on a server, with its history, also after it was stopped at any point."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from squirrel_mcp import moving
from squirrel_mcp.cli import move as move_command
from squirrel_mcp.cli.exits import Exit
from tests.e2e.account_server import AccountServer
from tests.e2e.server_process import ROOT

from ..conftest import PASSPHRASE
from .devices import VARIABLES, Device, NewDevice, files, invite, joined, texts


def test_a_vault_moves_with_ids_and_history(local: Device, device: NewDevice, server: AccountServer) -> None:
    before = local("list", "--all", "--json").json["memories"]
    head = local("status", "--json").json["fingerprint"]
    assert local("move", "--to", server.origin, "--invite", server.invite()).code == Exit.USAGE  # nobody to ask
    moved = local("move", "--to", server.origin, "--invite", server.invite(), "--yes", "--json")
    assert moved.code == Exit.OK and moved.json["fingerprint"] == head
    assert moved.json["apiKey"] in moved.err  # shown before the first batch
    alone = local("list")
    assert alone.code == Exit.STORE and server.origin in alone.err and "moved" in alone.err
    assert local("add", "no").code == local("init", "--no-recovery").code == Exit.STORE
    local.use(moved.json)
    assert local("list", "--all", "--json").json["memories"] == before
    phone = joined(local, device("phone"))
    assert phone("list", "--all", "--json").json["memories"] == before
    (corrected,) = [memory["id"] for memory in before if memory["revision"] == 2]
    shown = phone("show", corrected, "--history", "--json").json
    assert shown["reason"] == "more of it" and [old["text"] for old in shown["history"]] == ["one"]
    assert {"vault-moved.db"} <= files(local) and "vault.db" not in files(local)


@contextmanager
def _stop_after_one(label: str) -> Iterator[Callable[[int, int], None]]:
    """In the place of a progress bar: Ctrl-C after the first batch."""

    def tell(done: int, total: int) -> None:
        raise KeyboardInterrupt

    yield tell


def test_a_move_that_was_interrupted_goes_on_with_the_key(
    local: Device, server: AccountServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "_BATCH_ENTRIES", 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(move_command, "progress", _stop_after_one)
        ran = local("move", "--to", server.origin, "--invite", server.invite(), "--yes")
    assert ran.code == Exit.INTERRUPTED
    (key,) = [word for word in ran.err.split() if word.startswith("sqn_")]
    before = local("list", "--all", "--json").json["memories"]  # the vault is what it was
    local.variables = {"SQUIRREL_API_BASE_URL": server.origin, "SQUIRREL_API_KEY": key}
    early = local("list")
    assert early.code == Exit.STORE and "moved" in early.err
    assert local("move", "--to", "http://127.0.0.1:9", "--yes").code == Exit.USAGE
    assert local("move", "--to", server.origin, "--yes").code == Exit.OK
    assert local("list", "--all", "--json").json["memories"] == before


def test_a_move_that_cannot_go_on_is_started_over(
    local: Device, device: NewDevice, server: AccountServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(moving, "_BATCH_ENTRIES", 2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(move_command, "progress", _stop_after_one)
        ran = local("move", "--to", server.origin, "--invite", server.invite(), "--yes")
    (key,) = [word for word in ran.err.split() if word.startswith("sqn_")]
    (tmp_path / "new").write_text("another passphrase")
    assert local("passphrase", "change", "--new-passphrase-file", str(tmp_path / "new")).code == Exit.OK
    again = ("move", "--to", server.origin, "--yes", "--json")
    early = local(*again, "--start-over", "--invite", "x", passphrase="another passphrase")
    assert early.code == Exit.USAGE and "SQUIRREL_API_KEY" in early.err
    local.variables = {"SQUIRREL_API_BASE_URL": server.origin, "SQUIRREL_API_KEY": key}
    stuck = local(*again, passphrase="another passphrase")
    assert stuck.code == Exit.CONFLICT and "--start-over" in stuck.err
    moved = local(*again, "--start-over", "--invite", server.invite(), passphrase="another passphrase")
    assert moved.code == Exit.OK and moved.json["apiKey"] != key
    local.use(moved.json)
    assert len(local("list", "--json", passphrase="another passphrase").json["memories"]) == 2
    assert "vault-moved.db" in files(local)


def test_a_move_does_not_run_over_what_an_earlier_one_left(local: Device) -> None:
    (local.folder / "vault-moved.db").write_bytes(b"older")
    ran = local("move", "--to", "http://127.0.0.1:9", "--invite", "x", "--yes")
    assert ran.code == Exit.CONFLICT and "vault-moved.db" in ran.err


_KILLED = {
    "before the file is set aside": "LocalStore.retire = die",
    "before the file is renamed": "os.rename = lambda *of: die() if of[1].endswith('-moved.db') else rename(*of)",
    "after the file was set aside": "LocalStore.retire = lambda *each: retire(*each) and die()",
}


def _killed_move(desk: Device, server: AccountServer, folder: Path, point: str) -> str:
    """Run `move` in a process that is killed there; the API key that it showed."""
    (folder / "sitecustomize.py").write_text(
        "import os, signal\n"
        "from squirrel_mcp.sync.local import LocalStore\n"
        "rename, retire = os.rename, LocalStore.retire\n"
        "def die(*_): os.kill(os.getpid(), signal.SIGKILL)\n"
        f"{_KILLED[point]}\n"
    )
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES} | {
        "PYTHONPATH": os.pathsep.join((str(folder), str(ROOT))),
        "SQUIRREL_DATA_DIR": str(desk.folder),
        "SQUIRREL_PASSPHRASE": PASSPHRASE,
    }
    arguments = ("move", "--to", server.origin, "--invite", server.invite(), "--yes")
    ran = subprocess.run(
        [sys.executable, "-m", "squirrel_mcp", *arguments],
        env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    (key,) = [word for word in ran.stderr.split() if word.startswith("sqn_")]
    return key


@pytest.mark.skipif(sys.platform == "win32", reason="there is no such signal there")
@pytest.mark.parametrize("saved_by", ["nobody", "this device", "another device"])
@pytest.mark.parametrize("point", list(_KILLED))
def test_a_move_that_was_killed_at_its_end_is_finished_by_running_it_again(
    local: Device, device: NewDevice, server: AccountServer, tmp_path: Path, point: str, saved_by: str
) -> None:
    before = sorted(texts(local))
    key = _killed_move(local, server, tmp_path, point)
    there = {"SQUIRREL_API_BASE_URL": server.origin, "SQUIRREL_API_KEY": key}
    is_left = (local.folder / "vault.db").exists()
    assert is_left == point.startswith("before")
    if saved_by != "nobody":
        local.variables = there
        writer = local if saved_by == "this device" else joined(local, device("phone"))
        assert writer("add", "saved on the server").code == Exit.OK
        before = sorted([*before, "saved on the server"])
        assert sorted(texts(local)) == before
        local.variables = {}
        for refused in (
            local("list"), local("add", "no"), local("accept-rollback", "--yes"), local("account", "delete", "--yes"),
            local("init", "--no-recovery"), local("move", "--to", server.origin, "--invite", server.invite(), "--yes"),
        ):  # fmt: skip
            assert refused.code == Exit.STORE and server.origin in refused.err
            assert "accept-rollback" not in refused.err and ("squirrel-mcp move" in refused.err) == is_left
    local.variables = there
    again = local("move", "--to", server.origin, "--yes", "--json")
    if is_left:
        assert again.code == Exit.OK, again.err
        assert again.json["apiKey"] == key and again.json["fingerprint"]
    else:
        assert again.code == Exit.STORE and "were moved to" in again.err
    assert "vault-moved.db" in files(local) and "vault.db" not in files(local)
    assert sorted(texts(local)) == before
    assert local("accept-rollback", "--json").json == {"status": "nothing_to_accept"}
    local.variables = {}
    assert "were moved to" in local("list").err


def test_a_vault_and_an_account_that_went_on_apart_are_both_left_as_they_are(
    local: Device, device: NewDevice, server: AccountServer, tmp_path: Path
) -> None:
    key = _killed_move(local, server, tmp_path, "before the file is set aside")
    phone = device("phone")
    phone.variables = {"SQUIRREL_API_BASE_URL": server.origin, "SQUIRREL_API_KEY": key}
    assert phone("add", "only on the server").code == phone("add", "this too").code == Exit.OK
    assert local("add", "only here").code == Exit.OK
    local.variables = phone.variables
    ran = local("move", "--to", server.origin, "--yes")
    assert ran.code == Exit.CONFLICT and "squirrel-mcp export" in ran.err
    local.variables = {}
    assert local("export", str(tmp_path / "here.squirrel")).code == Exit.OK
    assert phone("import", str(tmp_path / "here.squirrel"), "--json").json["new"] == 1
    assert {"only on the server", "this too", "only here"} <= set(texts(phone))


def test_a_vault_that_was_put_back_from_a_backup_is_still_accepted_when_no_server_has_it(
    local: Device, tmp_path: Path
) -> None:
    (tmp_path / "backup").write_bytes((local.folder / "vault.db").read_bytes())
    local("add", "after the backup")
    (local.folder / "vault.db").write_bytes((tmp_path / "backup").read_bytes())
    assert "accept-rollback" in local("list").err
    assert local("accept-rollback", "--yes").code == Exit.OK


def test_a_move_that_was_started_over_leaves_no_trace_of_the_first_in_the_pin(
    local: Device, server: AccountServer, tmp_path: Path
) -> None:
    key = _killed_move(local, server, tmp_path, "before the file is set aside")
    local.variables = {"SQUIRREL_API_BASE_URL": server.origin, "SQUIRREL_API_KEY": key}
    again = local("move", "--to", server.origin, "--start-over", "--invite", invite("refused"), "--yes")
    assert again.code == Exit.STORE
    local.variables = {}
    (backup := tmp_path / "backup").write_bytes((local.folder / "vault.db").read_bytes())
    local("add", "after the backup")
    (local.folder / "vault.db").write_bytes(backup.read_bytes())
    assert local("accept-rollback", "--yes").code == Exit.OK
