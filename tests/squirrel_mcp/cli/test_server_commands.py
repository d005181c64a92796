"""Commands that bring a device to a server, and all others with one: against a real server process on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from squirrel_mcp import join_code
from squirrel_mcp.cli import connecting, keys
from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.errors import BadReply
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync import certificate
from tests.e2e.account_server import AccountServer, account_server

from ..conftest import PASSPHRASE
from .conftest import Run
from .devices import VARIABLES, Device, NewDevice, account, files, invite, joined, texts


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
        assert wrong.code == Exit.STORE and "fingerprint" in wrong.err and not files(laptop)
        none = laptop("init", "--api", server.origin, "--invite", server.invite(), "--no-recovery")
        assert none.code == Exit.STORE and "not trusted" in none.err and not files(laptop)
        colons = ":".join(server.certificate[n : n + 2].upper() for n in range(0, 64, 2))
        made = laptop(
            "init", "--api", server.origin, "--invite", "-", "--certificate", colons, "--no-recovery", "--json",
            stdin=server.invite().encode() + b"\n",
        )  # fmt: skip
        laptop.use(made.json)
        kept = Path(laptop.variables["SQUIRREL_CA_FILE"])
        assert kept.parent == laptop.folder and kept.stat().st_mode & 0o777 == 0o600
        assert laptop("add", "one").code == Exit.OK
        joined(laptop, phone)
        assert Path(phone.variables["SQUIRREL_CA_FILE"]).parent == phone.folder
        assert texts(phone) == ["one"]


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
        (("--api", "http://127.0.0.1:9", "--invite", "x"), Exit.USAGE, "typing error"),
        (("--api", "http://127.0.0.1:9", "--invite", invite("a")[:-1]), Exit.USAGE, "typing error"),
        (("--api", "http://127.0.0.1:9", "--invite", invite("a")), Exit.STORE, "cannot be reached"),
    ],
)
def test_what_cannot_become_an_account_leaves_nothing(
    device: NewDevice, options: tuple[str, ...], code: Exit, said: str
) -> None:
    laptop = device("laptop")
    ran = laptop("init", *options, "--no-recovery")
    assert ran.code == code and said in ran.err and not files(laptop)


def test_an_invite_is_good_for_one_account(device: NewDevice, server: AccountServer) -> None:
    invite = server.invite()
    first = device("laptop")("init", "--api", server.origin, "--invite", invite, "--no-recovery")
    second = device("phone")("init", "--api", server.origin, "--invite", invite, "--no-recovery")
    assert (first.code, second.code) == (Exit.OK, Exit.STORE) and "was used, has expired" in second.err
    mistyped = device("phone")("init", "--api", server.origin, "--invite", f"{invite[:-1]}_", "--no-recovery")
    assert mistyped.code == Exit.USAGE and "typing error" in mistyped.err


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
    key_id = join_code.decode(code).api_key.id
    assert "stays valid" in made.err and f"squirrel-mcp keys revoke {key_id}" in made.err
    assert code.startswith("sqj1_") and made.code == Exit.OK
    phone = device("phone")
    joined = phone("join", "-", stdin=f"{code[:40]}\n".encode())
    assert joined.code == Exit.USAGE and code[:20] not in joined.err and not files(phone)
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
    assert texts(phone) == texts(with_account)
    both = [each("status", "--json").json["fingerprint"] for each in (phone, with_account)]
    assert both[0] == both[1] and both[0] in joined.err


def test_join_beside_a_local_vault_says_that_it_stays_alone(with_account: Device, device: NewDevice) -> None:
    phone = device("phone")
    phone("add", "only here")
    code = with_account("keys", "create", "--join", "--json").json["joinCode"]
    joined = phone("join", code)
    assert joined.code == Exit.OK and "stay there" in joined.err


def test_keys_are_listed_made_and_revoked(with_account: Device, device: NewDevice) -> None:
    phone = joined(with_account, device("phone"), "--scope", "read", "--expires", "3")
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
    laptop, phone = with_account, joined(with_account, device("phone"))
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
    assert texts(phone) == []
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
    laptop = account(device("laptop"), own_server)
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
    assert texts(laptop) == ["tea"]
    assert not laptop("status", "--json").json["stale"]


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


def test_a_join_code_is_told_as_the_key_that_it_is(run: Run) -> None:
    for command in (("join", "--help"), ("keys", "create", "--help")):
        said = " ".join(run(*command).out.split())
        assert "key" in said and "once" not in said.replace("show it once", "")
    assert "join [OPTIONS] [-]" in run("join", "--help").out


@pytest.mark.skipif(sys.platform == "win32", reason="about a POSIX shell")
@pytest.mark.parametrize("command", ["init", "join", "move"])
def test_the_lines_for_the_shell_are_enough_for_the_next_command(
    device: NewDevice, with_account: Device, local: Device, server: AccountServer, command: str
) -> None:
    to = ("--invite", server.invite())
    made, ran = {
        "init": lambda: (new := device("new"), new("init", "--api", server.origin, *to, "--no-recovery")),
        "move": lambda: (local, local("move", "--to", server.origin, *to, "--yes")),
        "join": lambda: (new := device("new"), new("join", "-", stdin=_code(with_account))),
    }[command]()
    assert ran.code == Exit.OK, ran.err
    lines = [line for line in ran.err.splitlines() if line.startswith("export ")]
    shell = "; ".join([*lines, 'printf "%s\\n" "$SQUIRREL_API_BASE_URL" "$SQUIRREL_API_KEY"'])
    url, key = subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout.splitlines()
    assert key in ran.out  # nothing that is not shown anyway
    made.variables = {"SQUIRREL_API_BASE_URL": url, "SQUIRREL_API_KEY": key}
    assert made("status").code == Exit.OK


def _code(first: Device) -> bytes:
    code: str = first("keys", "create", "--join", "--json").json["joinCode"]
    return code.encode()


@pytest.mark.skipif(sys.platform == "win32", reason="about a POSIX shell")
def test_a_path_that_a_shell_would_take_apart_is_quoted(tmp_path: Path) -> None:
    awkward = tmp_path / "it's $HOME `here`; ok"
    account = Settings(tmp_path, api_base_url="https://a.example", api_key="sqn_x", ca_file=awkward)
    shell = "; ".join([*connecting.exports(account, "linux"), 'printf %s "$SQUIRREL_CA_FILE"'])
    assert subprocess.run(["sh", "-c", shell], capture_output=True, text=True, check=True).stdout == str(awkward)
    doubled = str(awkward).replace("'", "''")
    assert connecting.exports(account, "win32")[2] == f"$env:SQUIRREL_CA_FILE = '{doubled}'"
