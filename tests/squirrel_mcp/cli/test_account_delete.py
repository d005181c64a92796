"""The end of an account on a server: also when the answer is lost, and with all that was kept for it alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from squirrel_mcp import deleting, passphrase
from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync import transport
from squirrel_mcp.sync.transport import Reply, Transport
from tests.e2e.account_server import AccountServer, account_server

from ..conftest import PASSPHRASE
from ..test_passphrase import MemoryKeyring
from .devices import Device, NewDevice, account, files, joined, texts
from .test_init import own_keyring

__all__ = ["own_keyring"]


def lose(patch: pytest.MonkeyPatch, times: int, *, arrives: bool = True) -> None:
    """The connection breaks at as many requests to erase the account, after or before the server has done it."""
    real, left = Transport._once, iter(range(times))

    def once(self: Transport, method: str, path: str, *more: Any) -> Reply:
        if method != "DELETE" or next(left, None) is None:
            return real(self, method, path, *more)
        if arrives:
            real(self, method, path, *more)
        raise httpx.ReadError("the line is down")

    patch.setattr(Transport, "_once", once)
    patch.setattr(transport, "sleep", lambda seconds: None)


def test_an_answer_that_is_lost_once_ends_well(
    with_account: Device, device: NewDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_account("add", "one")
    phone = joined(with_account, device("phone"))
    with monkeypatch.context() as patch:
        lose(patch, 1)
        ran = with_account("account", "delete", "--yes", "--json")
    assert ran.code == Exit.OK and ran.json["status"] == "forgotten"
    assert files(with_account) == set()
    assert phone("list").code == Exit.STORE


def test_an_answer_that_never_came_is_made_up_for_by_running_it_again(
    with_account: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_account("add", "one")
    before = files(with_account)
    with monkeypatch.context() as patch:
        lose(patch, 3)
        ran = with_account("account", "delete", "--yes")
    assert ran.code == Exit.STORE and files(with_account) > before
    again = with_account("account", "delete", "--yes", passphrase="by now another one")
    assert again.code == Exit.OK and "no longer knows this API key" in again.out and "revoked" in again.err
    assert files(with_account) == set()
    assert with_account("account", "delete", "--yes").code == Exit.STORE


def test_what_was_stopped_before_this_device_forgot_is_finished_too(
    with_account: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> bool:
        raise KeyboardInterrupt

    with_account("add", "one")
    with monkeypatch.context() as patch:
        patch.setattr(deleting, "_forget", stopped)
        assert with_account("account", "delete", "--yes").code == Exit.INTERRUPTED
    assert with_account("account", "delete", "--yes", "--json").json["status"] == "forgotten"
    assert files(with_account) == set()


def test_a_request_that_never_arrived_is_sent_again(with_account: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    with_account("add", "one")
    with monkeypatch.context() as patch:
        lose(patch, 3, arrives=False)
        assert with_account("account", "delete", "--yes").code == Exit.STORE
    assert with_account("list", "--json").json["total"] == 1
    assert with_account("account", "delete", "--yes", "--json").json["status"] == "deleted"
    assert files(with_account) == set()


def test_a_key_that_was_only_revoked_is_no_end_of_the_account(with_account: Device, device: NewDevice) -> None:
    phone = joined(with_account, device("phone"), "--scope", "admin")
    before = files(phone)
    with_account("keys", "revoke", phone.variables["SQUIRREL_API_KEY"].split("_")[1])
    ran = phone("account", "delete", "--yes")
    assert ran.code == Exit.STORE and "revoked" in ran.err
    assert files(phone) == before and with_account("status").code == Exit.OK


def test_what_was_kept_for_an_account_goes_with_it_and_what_is_shared_with_the_last(
    device: NewDevice, tmp_path: Path, own_keyring: MemoryKeyring
) -> None:
    with account_server(tmp_path / "server", tls=True) as server:
        accounts = [_over_tls(device("laptop"), server) for _ in range(2)]
        for number, account in enumerate(accounts):
            assert account("add", f"of account {number}").code == Exit.OK
            assert account("export", str(tmp_path / f"export-{number}")).code == Exit.OK
            (account.folder / f"before-rollback-{number}-00000000.squirrel").write_bytes(
                (tmp_path / f"export-{number}").read_bytes()
            )
        (folder,) = {account.folder for account in accounts}
        (folder / "before-rollback-9-00000000.squirrel").write_bytes(b"no export")
        settings = Settings(data_dir=folder)
        assert passphrase.keep_in_keyring(settings, PASSPHRASE)

        first = accounts[0]("account", "delete", "--yes", "--json")
        assert first.json["status"] == "deleted" and first.json["keyringRemoved"] is False
        left = {name for name in files(accounts[1]) if name.startswith(("before-rollback-", "certificate-"))}
        certificate = Path(accounts[1].variables["SQUIRREL_CA_FILE"]).name
        assert left == {certificate, "before-rollback-1-00000000.squirrel", "before-rollback-9-00000000.squirrel"}
        assert passphrase.is_in_keyring(settings) and accounts[1]("list").code == Exit.OK

        second = accounts[1]("account", "delete", "--yes")
        assert second.code == Exit.OK and "no longer in this machine's keyring" in second.err
        assert files(accounts[1]) == {"before-rollback-9-00000000.squirrel"}
        assert own_keyring.entries == {}


def test_a_vault_in_the_same_folder_keeps_its_passphrase(
    vault_dir: Path, own_keyring: MemoryKeyring, device: NewDevice, with_account: Device
) -> None:
    assert passphrase.keep_in_keyring(Settings(data_dir=vault_dir), PASSPHRASE)
    beside = joined(with_account, device(vault_dir.name), "--scope", "admin")
    assert beside.folder == vault_dir
    assert beside("account", "delete", "--yes", "--json").json["keyringRemoved"] is False
    beside.variables = {}
    assert list(own_keyring.entries.values()) == [PASSPHRASE] and beside("status").code == Exit.OK
    assert beside("account", "delete", "--yes", "--json").json["keyringRemoved"] is True
    assert own_keyring.entries == {}


def _over_tls(made: Device, server: AccountServer) -> Device:
    """With a new account and the server's own certificate."""
    options = ("--invite", server.invite(), "--certificate", server.certificate, "--no-recovery", "--json")
    made.use(made("init", "--api", server.origin, *options).json)
    return made


def test_deleting_an_account_leaves_other_accounts_alone(
    device: NewDevice, server: AccountServer, with_account: Device
) -> None:
    laptop = with_account
    laptop("add", "one")
    before = files(laptop)
    other = account(replace(laptop), server)  # another account in the same folder
    other("add", "of another account")
    of_other = files(other) - before
    assert other("list").code == Exit.OK and len(of_other) == 3  # pin, its lock, cache
    phone = joined(laptop, device("phone"), "--scope", "admin")
    assert laptop("account", "delete").code == Exit.USAGE
    deleted = laptop("account", "delete", "--yes", "--json")
    assert deleted.json == {
        "status": "deleted",
        "place": f"server {server.origin}",
        "memories": 1,
        "keyringRemoved": False,
    }
    assert files(laptop) == of_other and texts(other) == ["of another account"]
    assert laptop("list").code == phone("list").code == Exit.STORE


def test_deleting_takes_an_admin_key(with_account: Device, device: NewDevice) -> None:
    phone = joined(with_account, device("phone"))
    before = files(phone)
    refused = phone("account", "delete", "--yes")
    assert refused.code == Exit.STORE and "more rights" in refused.err
    assert files(phone) == before and with_account("status").code == Exit.OK


def test_deleting_a_moved_account_deletes_the_old_file(local: Device, server: AccountServer) -> None:
    local.use(local("move", "--to", server.origin, "--invite", server.invite(), "--yes", "--json").json)
    assert local("account", "delete", "--yes").code == Exit.OK
    assert not {name for name in files(local) if name.endswith((".db", ".bin"))}
    local.variables = {}
    assert local("add", "a new vault").code == Exit.OK


def test_deleting_the_local_vault_makes_room_for_a_new_one(local: Device) -> None:
    local("export", str(local.folder.parent / "x"))
    ran = local("account", "delete", "--yes")
    assert ran.code == Exit.OK and "2 memories" in ran.out
    assert files(local) == {"vault.lock"}
    assert local("list").code == Exit.STORE
    assert local("add", "a new vault").code == Exit.OK and texts(local) == ["a new vault"]


def test_a_key_that_is_dead_brings_nothing_back(with_account: Device) -> None:
    with_account("add", "one")
    assert with_account("account", "delete", "--yes").code == Exit.OK
    for command in ("list", "status", "search x", "add one", "account delete --yes", "accept-rollback --yes"):
        assert with_account(*command.split()).code == Exit.STORE
        assert files(with_account) == set()
