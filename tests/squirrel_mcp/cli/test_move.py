"""`move`: the vault of a machine on a server, with its history, also after it was stopped at any point."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from squirrel_mcp import moving
from squirrel_mcp.cli import move as move_command
from squirrel_mcp.cli.exits import Exit
from tests.e2e.account_server import AccountServer

from .devices import Device, NewDevice, files, joined


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
