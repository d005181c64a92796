"""Commands that bring a device to a server, and all others with one: against a real server process on this machine."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from squirrel_mcp import moving, opening, remote_vault
from squirrel_mcp.cli import connecting, keys
from squirrel_mcp.cli import move as move_command
from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.errors import BadReply
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync import certificate
from tests.e2e.account_server import AccountServer, account_server

from ..conftest import CHEAP, PASSPHRASE
from .conftest import Ran, Run

VARIABLES = ("SQUIRREL_API_BASE_URL", "SQUIRREL_API_KEY", "SQUIRREL_CA_FILE")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountServer]:
    """Plain http on loopback, for all tests of this file; nobody stops it."""
    with account_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[AccountServer]:
    """One that the test may stop."""
    with account_server(tmp_path / "server") as running:
        yield running


@dataclass
class Device:
    """A folder and the variables of an account; `run` runs a command there."""

    folder: Path
    variables: dict[str, str]
    _run: Run
    _patch: pytest.MonkeyPatch

    def __call__(self, *args: str, stdin: bytes = b"", passphrase: str = PASSPHRASE) -> Ran:
        for name in VARIABLES:
            self._patch.delenv(name, raising=False)
        for name, value in self.variables.items():
            self._patch.setenv(name, value)
        self._patch.setenv("SQUIRREL_DATA_DIR", str(self.folder))
        self._patch.setenv("SQUIRREL_PASSPHRASE", passphrase)
        return self._run(*args, stdin=stdin)

    def use(self, made: Any) -> None:
        """Take the variables of the snippet that a command printed."""
        (launch,) = json.loads(made["clientConfig"]["content"])["mcpServers"].values()
        self.variables = {name: value for name, value in launch["env"].items() if name in VARIABLES}


NewDevice = Callable[[str], Device]


@pytest.fixture
def device(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> NewDevice:
    """A device without anything."""
    return lambda name: Device(tmp_path / name, {}, run, monkeypatch)


@pytest.fixture
def with_account(device: NewDevice, server: AccountServer) -> Device:
    """A device with an empty account on the server."""
    return _account(device("laptop"), server)


def _account(made: Device, server: AccountServer) -> Device:
    settings = Settings(data_dir=made.folder, api_base_url=server.origin)
    transport = remote_vault.transport(settings)
    key = remote_vault.create(transport, server.invite(), PASSPHRASE, parameters=CHEAP)
    transport.close()
    made.variables = {"SQUIRREL_API_BASE_URL": server.origin, "SQUIRREL_API_KEY": key.secret()}
    return made


def _joined(first: Device, made: Device, *options: str) -> Device:
    code = first("keys", "create", "--join", *options, "--json").json["joinCode"]
    made.use(made("join", "-", "--json", stdin=code.encode()).json)
    return made


def _texts(made: Device) -> list[str]:
    return [memory["text"] for memory in made("list", "--all", "--json").json["memories"]]


def _files(made: Device) -> set[str]:
    return {path.name for path in made.folder.iterdir()} if made.folder.exists() else set()


def test_init_makes_an_account_and_its_snippet_is_enough(device: NewDevice, server: AccountServer) -> None:
    laptop = device("laptop")
    made = laptop("init", "--api", f"{server.origin}/", "--invite", server.invite(), "--no-recovery", "--json")
    assert made.code == Exit.OK
    laptop.use(made.json)
    assert laptop.variables == {
        "SQUIRREL_API_BASE_URL": server.origin,
        "SQUIRREL_API_KEY": made.json["apiKey"],
    }
    assert PASSPHRASE not in made.out + made.err
    status = laptop("status", "--json").json
    assert (status["unlocked"], status["total"], status["stale"], status["recoveryCode"]) == (True, 0, False, False)
    assert status["place"] == f"server {server.origin}" and status["keyId"] == made.json["apiKey"].split("_")[1]
    assert status["fingerprint"] == made.json["fingerprint"]
    assert laptop("status").out.count(made.json["apiKey"]) == 0


def test_init_over_tls_keeps_the_certificate_that_was_named(device: NewDevice, tmp_path: Path) -> None:
    with account_server(tmp_path / "server", tls=True) as server:
        laptop, phone = device("laptop"), device("phone")
        wrong = laptop("init", "--api", server.origin, "--invite", "x", "--certificate", "0" * 64, "--no-recovery")
        assert wrong.code == Exit.STORE and "fingerprint" in wrong.err and not _files(laptop)
        none = laptop("init", "--api", server.origin, "--invite", server.invite(), "--no-recovery")
        assert none.code == Exit.STORE and "not trusted" in none.err and not _files(laptop)
        colons = ":".join(server.certificate[n : n + 2].upper() for n in range(0, 64, 2))
        made = laptop(
            "init", "--api", server.origin, "--invite", "-", "--certificate", colons, "--no-recovery", "--json",
            stdin=server.invite().encode() + b"\n",
        )  # fmt: skip
        laptop.use(made.json)
        kept = Path(laptop.variables["SQUIRREL_CA_FILE"])
        assert kept.parent == laptop.folder and kept.stat().st_mode & 0o777 == 0o600
        assert laptop("add", "one").code == Exit.OK
        _joined(laptop, phone)
        assert Path(phone.variables["SQUIRREL_CA_FILE"]).parent == phone.folder
        assert _texts(phone) == ["one"]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (("--invite", "x"), Exit.USAGE, "--api"),
        (("--api", "http://example.org", "--invite", "x"), Exit.USAGE, "https://"),
        (("--api", "https://127.0.0.1:9/path", "--invite", "x"), Exit.USAGE, "without a path"),
        (("--api", "https://127.0.0.1:9", "--invite", "x", "--certificate", "12"), Exit.USAGE, "64 hex digits"),
        (("--api", "http://127.0.0.1:9", "--invite", "x", "--certificate", "0" * 64), Exit.USAGE, "no certificate"),
        (("--api", "http://127.0.0.1:9"), Exit.USAGE, "invite is missing"),
        (("--api", "http://127.0.0.1:9", "--invite", "-"), Exit.USAGE, "invite is empty"),
        (("--api", "http://127.0.0.1:9", "--invite", "x"), Exit.STORE, "cannot be reached"),
    ],
)
def test_what_cannot_become_an_account_leaves_nothing(
    device: NewDevice, options: tuple[str, ...], code: Exit, said: str
) -> None:
    laptop = device("laptop")
    ran = laptop("init", *options, "--no-recovery")
    assert ran.code == code and said in ran.err and not _files(laptop)


def test_an_invite_is_good_for_one_account(device: NewDevice, server: AccountServer) -> None:
    invite = server.invite()
    first = device("laptop")("init", "--api", server.origin, "--invite", invite, "--no-recovery")
    second = device("phone")("init", "--api", server.origin, "--invite", invite, "--no-recovery")
    assert (first.code, second.code) == (Exit.OK, Exit.STORE) and "invite" in second.err


def test_init_beside_what_is_there_is_refused(run: Run, vault_dir: Path, with_account: Device) -> None:
    ran = run("init", "--api", "http://127.0.0.1:9", "--invite", "x", "--no-recovery")
    assert ran.code == Exit.CONFLICT and "squirrel-mcp move" in ran.err
    ran = with_account("init", "--api", "http://127.0.0.1:9", "--invite", "x", "--no-recovery")
    assert ran.code == Exit.CONFLICT and "SQUIRREL_API_KEY" in ran.err
    del with_account.variables["SQUIRREL_API_KEY"]
    assert with_account("init", "--no-recovery").code == Exit.USAGE


def test_a_second_device_joins_with_one_line(with_account: Device, device: NewDevice) -> None:
    with_account("add", "the router is 10.0.7.1")
    made = with_account("keys", "create", "--join")
    (code,) = made.out.splitlines()
    assert code.startswith("sqj1_") and made.code == Exit.OK
    phone = device("phone")
    joined = phone("join", "-", stdin=f"{code[:40]}\n".encode())
    assert joined.code == Exit.USAGE and code[:20] not in joined.err and not _files(phone)
    locked = phone("join", code, passphrase="another passphrase")
    assert locked.code == Exit.LOCKED
    joined = phone("join", code)
    assert joined.code == Exit.OK and "shares 1 memories" in joined.err
    phone.variables = {
        name: value
        for name, value in json.loads(joined.out)["mcpServers"]["squirrel"]["env"].items()
        if name in VARIABLES
    }
    assert phone.variables["SQUIRREL_API_KEY"] != with_account.variables["SQUIRREL_API_KEY"]
    assert _texts(phone) == _texts(with_account)
    both = [each("status", "--json").json["fingerprint"] for each in (phone, with_account)]
    assert both[0] == both[1] and both[0] in joined.err


def test_join_beside_a_local_vault_says_that_it_stays_alone(with_account: Device, device: NewDevice) -> None:
    phone = device("phone")
    phone("add", "only here")
    code = with_account("keys", "create", "--join", "--json").json["joinCode"]
    joined = phone("join", code)
    assert joined.code == Exit.OK and "stay there" in joined.err


def test_keys_are_listed_made_and_revoked(with_account: Device, device: NewDevice) -> None:
    phone = _joined(with_account, device("phone"), "--scope", "read", "--expires", "3")
    (first, second) = sorted(with_account("keys", "list", "--json").json["keys"], key=lambda key: str(key["scope"]))
    assert (first["scope"], first["current"], first["expires"]) == ("admin", True, None)
    assert (second["scope"], second["current"]) == ("read", False) and second["expires"].endswith("Z")
    listed = with_account("keys", "list")
    assert len(listed.out.splitlines()) == 2 and "current" in listed.out and "sqn_" not in listed.out
    refused = phone("add", "no")
    assert refused.code == Exit.STORE and "more rights" in refused.err
    assert phone("keys", "list").code == Exit.STORE
    assert with_account("keys", "revoke", second["id"], "--json").json == {"status": "revoked", "id": second["id"]}
    gone = phone("list")
    assert gone.code == Exit.STORE and "revoked" in gone.err
    assert with_account("keys", "revoke", second["id"]).code == Exit.NOTHING
    assert with_account("keys", "revoke", "../account").code == Exit.USAGE


def test_the_key_in_use_is_revoked_only_when_that_is_meant(with_account: Device) -> None:
    own = with_account.variables["SQUIRREL_API_KEY"].split("_")[1]
    assert with_account("keys", "revoke", own).code == Exit.USAGE
    assert with_account("keys", "revoke", own, "--yes").code == Exit.OK
    assert "revoked" in with_account("keys", "list").err


def test_keys_need_a_server(run: Run, vault_dir: Path) -> None:
    ran = run("keys", "list")
    assert ran.code == Exit.USAGE and "SQUIRREL_API_BASE_URL" in ran.err


_LISTED = {"id": "A" * 12, "scope": "read", "created": "2026-01-01", "lastUsed": None, "expiresAt": None}


@pytest.mark.parametrize(
    "other",
    [
        {"id": "A" * 11}, {"id": None}, {"scope": "root"}, {"scope": ["read"]}, {"created": None},
        {"created": "\x1b[2J"}, {"lastUsed": 5}, {"expiresAt": True}, {"expiresAt": 1 << 40}, {"expiresAt": -1},
    ],
)  # fmt: skip
def test_a_list_of_keys_that_is_none_is_not_shown(other: dict[str, Any]) -> None:
    assert keys._read(_LISTED).id == "A" * 12
    with pytest.raises(BadReply):
        keys._read({**_LISTED, **other})


def test_the_other_commands_work_with_a_server(with_account: Device, device: NewDevice, tmp_path: Path) -> None:
    laptop, phone = with_account, _joined(with_account, device("phone"))
    memory = laptop("add", "the router is 10.0.7.1", "--json").json["id"]
    assert phone("correct", memory[:6], "the router is 10.0.9.1", "--reason", "moved").code == Exit.OK
    assert [hit["text"] for hit in laptop("search", "router", "--json").json["hits"]] == ["the router is 10.0.9.1"]
    assert [old["text"] for old in laptop("show", memory, "--history", "--json").json["history"]] == [
        "the router is 10.0.7.1"
    ]
    stale = phone("correct", memory, "the router is gone", "--expected-revision", "1", "--json")
    assert stale.code == Exit.CONFLICT and stale.json["current"]["revision"] == 2
    assert phone("status", "--at", "2").out == laptop("status", "--at", "2").out

    file = tmp_path / "x.squirrel"
    assert phone("export", str(file), "--json").json["revisions"] == 2
    assert laptop("import", str(file), "--dry-run", "--json").json["present"] == 1
    assert phone("export", str(tmp_path / "x.jsonl"), "--plain", "--yes").code == Exit.OK
    laptop("forget", memory, "--yes")
    assert _texts(phone) == []
    assert phone("import", str(file), "--json").json["forgottenHere"] == 1

    (tmp_path / "new").write_text("another passphrase")
    new = ("--new-passphrase-file", str(tmp_path / "new"))
    assert phone("passphrase", "change", *new).code == Exit.STORE  # takes an admin key
    assert laptop("passphrase", "change", *new).code == Exit.OK
    assert phone("list").code == Exit.LOCKED
    assert laptop("rotate", "--keep-passphrase", "--no-recovery", passphrase="another passphrase").code == Exit.OK
    assert phone("add", "after the rotation", passphrase="another passphrase").code == Exit.OK


def test_client_config_has_placeholders_and_never_the_key(with_account: Device) -> None:
    secret = with_account.variables["SQUIRREL_API_KEY"]
    for client in ("claude-desktop", "claude-code", "vscode", "codex", "zed"):
        ran = with_account("client-config", "--client", client)
        assert ran.code == Exit.OK and secret not in ran.out + ran.err
        assert "SQUIRREL_API_KEY" in ran.out and with_account.variables["SQUIRREL_API_BASE_URL"] in ran.out
    asked = json.loads(with_account("client-config", "--client", "vscode").out)
    assert [each["id"] for each in asked["inputs"]] == ["squirrel-api-key"]


def test_while_the_server_is_away_what_was_seen_is_shown_and_nothing_is_saved(
    device: NewDevice, own_server: AccountServer
) -> None:
    laptop = _account(device("laptop"), own_server)
    memory = laptop("add", "tea", "--json").json["id"]
    own_server.stop()
    listed = laptop("list", "--json")
    assert listed.code == Exit.OK and listed.json["stale"] and listed.json["asOf"]
    assert [each["text"] for each in listed.json["memories"]] == ["tea"]
    assert laptop("show", memory[:5]).code == Exit.OK and laptop("status", "--at", "1").code == Exit.OK
    status = laptop("status", "--json")
    assert status.code == Exit.STORE and (status.json["unlocked"], status.json["stale"]) == (True, True)
    assert status.json["lastSync"] and status.json["problem"]["code"] == "stale"
    for refused in (
        laptop("add", "no"),
        laptop("passphrase", "change"),
        laptop("export", str(laptop.folder.parent / "x")),
    ):
        assert refused.code == Exit.STORE and "cannot be reached" in refused.err
    own_server.start()
    assert _texts(laptop) == ["tea"]
    assert not laptop("status", "--json").json["stale"]


@pytest.fixture
def local(device: NewDevice) -> Device:
    """A vault on this machine with a corrected memory, a forgotten one, and a changed passphrase record."""
    desk = device("desk")
    settings = Settings(data_dir=desk.folder)
    vault = opening.open_vault(settings, Unlocker(lambda: PASSPHRASE), parameters=CHEAP)
    vault.change_passphrase(PASSPHRASE)
    vault.close()
    ids = [desk("add", text, "--json").json["id"] for text in ("one", "two", "three")]
    desk("correct", ids[0], "one and a half", "--reason", "more of it")
    desk("forget", ids[1], "--yes")
    return desk


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
    phone = _joined(local, device("phone"))
    assert phone("list", "--all", "--json").json["memories"] == before
    (corrected,) = [memory["id"] for memory in before if memory["revision"] == 2]
    shown = phone("show", corrected, "--history", "--json").json
    assert shown["reason"] == "more of it" and [old["text"] for old in shown["history"]] == ["one"]
    assert {"vault-moved.db"} <= _files(local) and "vault.db" not in _files(local)


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
    assert "vault-moved.db" in _files(local)


def test_deleting_an_account_leaves_other_accounts_alone(
    device: NewDevice, server: AccountServer, with_account: Device
) -> None:
    laptop = with_account
    laptop("add", "one")
    before = _files(laptop)
    other = _account(replace(laptop), server)  # another account in the same folder
    other("add", "of another account")
    of_other = _files(other) - before
    assert other("list").code == Exit.OK and len(of_other) == 3  # pin, its lock, cache
    phone = _joined(laptop, device("phone"), "--scope", "admin")
    assert laptop("account", "delete").code == Exit.USAGE
    deleted = laptop("account", "delete", "--yes", "--json")
    assert deleted.json == {
        "status": "deleted",
        "place": f"server {server.origin}",
        "memories": 1,
        "keyringRemoved": False,
    }
    assert _files(laptop) == of_other and _texts(other) == ["of another account"]
    assert laptop("list").code == phone("list").code == Exit.STORE


def test_deleting_takes_an_admin_key(with_account: Device, device: NewDevice) -> None:
    phone = _joined(with_account, device("phone"))
    before = _files(phone)
    refused = phone("account", "delete", "--yes")
    assert refused.code == Exit.STORE and "more rights" in refused.err
    assert _files(phone) == before and with_account("status").code == Exit.OK


def test_deleting_a_moved_account_deletes_the_old_file(local: Device, server: AccountServer) -> None:
    local.use(local("move", "--to", server.origin, "--invite", server.invite(), "--yes", "--json").json)
    assert local("account", "delete", "--yes").code == Exit.OK
    assert not {name for name in _files(local) if name.endswith((".db", ".bin"))}
    local.variables = {}
    assert local("add", "a new vault").code == Exit.OK


def test_deleting_the_local_vault_makes_room_for_a_new_one(local: Device) -> None:
    local("export", str(local.folder.parent / "x"))
    ran = local("account", "delete", "--yes")
    assert ran.code == Exit.OK and "2 memories" in ran.out
    assert _files(local) == {"vault.lock"}
    assert local("list").code == Exit.STORE
    assert local("add", "a new vault").code == Exit.OK and _texts(local) == ["a new vault"]


def test_a_restored_server_is_believed_once_a_person_says_so(
    device: NewDevice, own_server: AccountServer, tmp_path: Path
) -> None:
    laptop = _account(device("laptop"), own_server)
    phone = _joined(laptop, device("phone"))
    memory = laptop("add", "tea", "--json").json["id"]
    assert laptop("accept-rollback", "--json").json == {"status": "nothing_to_accept"}
    own_server.backup(tmp_path / "backup")
    for text in ("tea with milk", "tea with oat milk"):
        phone("correct", memory, text)
    phone("add", "saved after the backup")
    assert len(_texts(phone)) == len(_texts(laptop)) == 2
    own_server.stop()
    own_server.restore(tmp_path / "backup")
    own_server.start()
    for refused in (phone("list"), phone("add", "no"), phone("list")):
        assert refused.code == Exit.STORE and "accept-rollback" in refused.err
    assert phone("accept-rollback").code == Exit.USAGE
    accepted = phone("accept-rollback", "--yes", "--json").json
    assert (accepted["pinned"][:2], accepted["served"][:2], accepted["total"]) == ("5:", "2:", 1)
    assert _texts(phone) == ["tea"]
    # What only the devices had is not lost, but for a revision in between, of which a device keeps no copy.
    imported = phone("import", accepted["kept"], "--json").json
    assert (imported["new"], imported["extended"], imported["conflicts"], imported["damaged"]) == (1, 1, [], [memory])
    assert phone("show", memory, "--json").json["text"] == "tea with oat milk"
    # Back under its old number with another log: for the other device that is a fork.
    forked = laptop("list")
    assert forked.code == Exit.STORE
    accepted = laptop("accept-rollback", "--yes")
    assert accepted.code == Exit.OK and "is kept in" in accepted.err
    assert _texts(laptop) == _texts(phone) and len(_texts(laptop)) == 2
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
    laptop = _account(device("laptop"), own_server)
    phone = _joined(laptop, device("phone"), "--scope", "admin")
    laptop("add", "one")
    assert _texts(phone) == ["one"]
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
    assert accepted["status"] == "accepted" and _texts(laptop) == ["one"]
    assert laptop("import", accepted["kept"], "--json").json["new"] == 1
    assert len(_texts(phone)) == 2


def test_an_authority_in_the_ca_file_is_not_taken_for_the_certificate(tmp_path: Path) -> None:
    with account_server(tmp_path / "one", tls=True) as server, account_server(tmp_path / "other", tls=True) as other:
        own = _certificate(server, tmp_path / "own.pem")
        settings = Settings(tmp_path, api_base_url=server.origin, ca_file=own)
        assert connecting.own_certificate(settings) == server.certificate
        bundle = replace(settings, ca_file=_certificate(other, tmp_path / "bundle.pem"))
        assert connecting.own_certificate(bundle) is None
    assert connecting.own_certificate(Settings(tmp_path)) is None


def _certificate(server: AccountServer, path: Path) -> Path:
    path.write_text(certificate.fetch(server.origin, server.certificate))
    return path


def test_a_move_does_not_run_over_what_an_earlier_one_left(local: Device) -> None:
    (local.folder / "vault-moved.db").write_bytes(b"older")
    ran = local("move", "--to", "http://127.0.0.1:9", "--invite", "x", "--yes")
    assert ran.code == Exit.CONFLICT and "vault-moved.db" in ran.err
