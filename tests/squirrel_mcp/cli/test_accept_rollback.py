"""`accept-rollback` for an account on a server that was put back from a backup."""

from __future__ import annotations

from pathlib import Path

from squirrel_mcp.cli.exits import Exit
from tests.e2e.account_server import AccountServer

from .devices import Device, NewDevice, account, joined, texts


def test_a_restored_server_is_believed_once_a_person_says_so(
    device: NewDevice, own_server: AccountServer, tmp_path: Path
) -> None:
    laptop = account(device("laptop"), own_server)
    phone = joined(laptop, device("phone"))
    memory = laptop("add", "tea", "--json").json["id"]
    assert laptop("accept-rollback", "--json").json == {"status": "nothing_to_accept"}
    own_server.backup(tmp_path / "backup")
    for text in ("tea with milk", "tea with oat milk"):
        phone("correct", memory, text)
    phone("add", "saved after the backup")
    assert len(texts(phone)) == len(texts(laptop)) == 2
    own_server.stop()
    own_server.restore(tmp_path / "backup")
    own_server.start()
    for refused in (phone("list"), phone("add", "no"), phone("list")):
        assert refused.code == Exit.STORE and "accept-rollback" in refused.err
    assert phone("accept-rollback").code == Exit.USAGE
    accepted = phone("accept-rollback", "--yes", "--json").json
    assert (accepted["pinned"][:2], accepted["served"][:2], accepted["total"]) == ("5:", "2:", 1)
    assert texts(phone) == ["tea"]
    # What only the devices had is not lost, but for a revision in between, of which a device keeps no copy.
    imported = phone("import", accepted["kept"], "--json").json
    assert (imported["new"], imported["extended"], imported["conflicts"], imported["damaged"]) == (1, 1, [], [memory])
    assert phone("show", memory, "--json").json["text"] == "tea with oat milk"
    # Back under its old number with another log: for the other device that is a fork.
    forked = laptop("list")
    assert forked.code == Exit.STORE
    accepted = laptop("accept-rollback", "--yes")
    assert accepted.code == Exit.OK and "is kept in" in accepted.err
    assert texts(laptop) == texts(phone) and len(texts(laptop)) == 2
    assert laptop("status", "--json").json["fingerprint"] == phone("status", "--json").json["fingerprint"]


def test_accepting_keeps_in_mind_where_a_vault_moved(local: Device, own_server: AccountServer, tmp_path: Path) -> None:
    local.use(local("move", "--to", own_server.origin, "--invite", own_server.invite(), "--yes", "--json").json)
    own_server.backup(tmp_path / "backup")
    local("add", "later")
    own_server.stop()
    own_server.restore(tmp_path / "backup")
    own_server.start()
    assert local("accept-rollback", "--yes").code == Exit.OK
    local.variables = {}
    alone = local("add", "no")
    assert alone.code == Exit.STORE and "moved" in alone.err


def test_key_records_that_do_not_follow_can_be_accepted_too(
    device: NewDevice, own_server: AccountServer, tmp_path: Path
) -> None:
    laptop = account(device("laptop"), own_server)
    phone = joined(laptop, device("phone"), "--scope", "admin")
    laptop("add", "one")
    assert texts(phone) == ["one"]
    own_server.backup(tmp_path / "backup")
    rotate = ("rotate", "--keep-passphrase", "--no-recovery", "--json")
    assert laptop(*rotate).code == Exit.OK
    laptop("add", "under a key that nobody else ever saw")
    own_server.stop()
    own_server.restore(tmp_path / "backup")
    own_server.start()
    downgraded = laptop("list", "--json")
    assert downgraded.json["error"]["code"] == "key_record_downgrade"
    for _ in range(2):
        assert phone(*rotate).code == Exit.OK
    assert laptop("list", "--json").json["error"]["code"] == "foreign_key"
    accepted = laptop("accept-rollback", "--yes", "--json").json
    assert accepted["status"] == "accepted" and texts(laptop) == ["one"]
    assert laptop("import", accepted["kept"], "--json").json["new"] == 1
    assert len(texts(phone)) == 2
