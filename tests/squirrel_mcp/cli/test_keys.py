"""passphrase change, recovery and rotate without a person; test_prompts.py has the person."""

from __future__ import annotations

from pathlib import Path

import pytest

from squirrel_mcp import opening
from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.crypto import recovery
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.settings import Settings

from ..conftest import CHEAP, PASSPHRASE
from .conftest import Run

NEW = "an entirely new passphrase"


@pytest.fixture
def new_file(tmp_path: Path) -> str:
    (tmp_path / "new").write_text(NEW + "\n")
    return str(tmp_path / "new")


@pytest.fixture
def code_file(vault_dir: Path, tmp_path: Path) -> str:
    """The vault has this recovery code."""
    secret = recovery.generate()
    vault = opening.open_vault(Settings(data_dir=vault_dir), Unlocker(lambda: PASSPHRASE), parameters=CHEAP)
    vault.set_recovery(secret)
    vault.close()
    (tmp_path / "code").write_text(recovery.to_code(secret).lower())
    return str(tmp_path / "code")


def test_after_a_change_only_the_new_passphrase_opens(
    run: Run, vault_dir: Path, new_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("add", "one")
    ran = run("passphrase", "change", "--new-passphrase-file", new_file, "--json")
    assert ran.json["status"] == "changed" and ran.json["keyringUpdated"] is False
    assert "SQUIRREL_PASSPHRASE" in ran.json["toDo"] and NEW not in ran.out + ran.err
    assert run("list").code == Exit.LOCKED
    monkeypatch.setenv("SQUIRREL_PASSPHRASE", NEW)
    assert run("list", "--json").json["total"] == 1


@pytest.mark.usefixtures("vault_dir")
@pytest.mark.parametrize("chosen", ["too short", "", "${NEW_PASSPHRASE}"])
@pytest.mark.parametrize("command", [("passphrase", "change"), ("rotate", "--no-recovery")])
def test_a_new_passphrase_that_will_not_do_is_wrong_input_and_changes_nothing(
    run: Run, tmp_path: Path, chosen: str, command: tuple[str, ...]
) -> None:
    (tmp_path / "new").write_text(chosen)
    ran = run(*command, "--new-passphrase-file", str(tmp_path / "new"), "--json")
    assert (ran.code, ran.json["error"]["code"]) == (Exit.USAGE, "passphrase_refused")
    assert run("status").code == Exit.OK


def test_what_is_to_do_afterwards_depends_on_the_source(
    run: Run, vault_dir: Path, new_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SQUIRREL_PASSPHRASE")
    (tmp_path / "old").write_text(PASSPHRASE)
    monkeypatch.setenv("SQUIRREL_PASSPHRASE_FILE", str(tmp_path / "old"))
    ran = run("passphrase", "change", "--new-passphrase-file", new_file)
    assert str(tmp_path / "old") in ran.err
    monkeypatch.delenv("SQUIRREL_PASSPHRASE_FILE")
    monkeypatch.setenv("SQUIRREL_PASSPHRASE_COMMAND", f"cat {new_file}")
    ran = run("passphrase", "change", "--new-passphrase-file", new_file)
    assert ran.code == Exit.OK and "SQUIRREL_PASSPHRASE_COMMAND" in ran.err and "cat" not in ran.err


def test_without_anybody_to_ask_each_command_names_its_option(run: Run, vault_dir: Path) -> None:
    for args, option in (
        (("passphrase", "change"), "--new-passphrase-file"),
        (("recovery", "use"), "--code-file"),
        (("rotate",), "--no-recovery"),
        (("rotate", "--no-recovery"), "--new-passphrase-file"),
    ):
        ran = run(*args)
        assert ran.code == Exit.USAGE and option in ran.err
    ran = run("recovery", "new")
    assert ran.code == Exit.USAGE and "terminal" in ran.err
    assert run("status", "--json").json["recoveryCode"] is False


def test_the_recovery_code_gives_a_new_passphrase_and_stays(
    run: Run, code_file: str, new_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("add", "one")
    monkeypatch.delenv("SQUIRREL_PASSPHRASE")
    ran = run("recovery", "use", "--code-file", code_file, "--new-passphrase-file", new_file, "--json")
    assert (ran.code, ran.json["status"]) == (Exit.OK, "changed")
    monkeypatch.setenv("SQUIRREL_PASSPHRASE", NEW)
    status = run("status", "--json").json
    assert (status["total"], status["recoveryCode"]) == (1, True)


def test_another_vaults_code_is_refused_and_a_typing_error_is_named(
    run: Run, code_file: str, new_file: str, tmp_path: Path
) -> None:
    (tmp_path / "other").write_text(recovery.to_code(recovery.generate()))
    ran = run("recovery", "use", "--code-file", str(tmp_path / "other"), "--new-passphrase-file", new_file)
    assert ran.code == Exit.LOCKED and "not the recovery code" in ran.err
    (tmp_path / "typo").write_text((tmp_path / "other").read_text()[:-1])
    ran = run("recovery", "use", "--code-file", str(tmp_path / "typo"), "--new-passphrase-file", new_file)
    assert ran.code == Exit.USAGE
    assert run("status").code == Exit.OK


def test_a_vault_without_code_says_so(run: Run, vault_dir: Path, new_file: str, tmp_path: Path) -> None:
    (tmp_path / "other").write_text(recovery.to_code(recovery.generate()))
    ran = run("recovery", "use", "--code-file", str(tmp_path / "other"), "--new-passphrase-file", new_file)
    assert ran.code != Exit.OK and "no recovery code" in ran.err


def test_a_rotation_says_what_it_does_not_do_and_ends_the_recovery_code(
    run: Run, code_file: str, new_file: str
) -> None:
    run("add", "before")
    ran = run("rotate", "--keep-passphrase", "--no-recovery")
    assert ran.code == Exit.OK and "copied before" in ran.err
    run("add", "after")
    status = run("status", "--json").json
    assert (status["total"], status["recoveryCode"]) == (2, False)
    used = run("recovery", "use", "--code-file", code_file, "--new-passphrase-file", new_file)
    assert used.code != Exit.OK


def test_a_rotation_may_take_a_new_passphrase(
    run: Run, vault_dir: Path, new_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran = run("rotate", "--no-recovery", "--new-passphrase-file", new_file, "--json")
    assert (ran.json["status"], ran.json["recoveryCode"]) == ("rotated", False) and "SQUIRREL_PASSPHRASE" in ran.json[
        "toDo"
    ]
    assert run("status").code == Exit.LOCKED
    monkeypatch.setenv("SQUIRREL_PASSPHRASE", NEW)
    assert run("status").code == Exit.OK


def test_an_older_copy_is_accepted_only_by_this_command(run: Run, vault_dir: Path, tmp_path: Path) -> None:
    run("add", "one")
    copy = (vault_dir / "vault.db").read_bytes()
    run("add", "two")
    assert run("accept-rollback", "--json").json == {"status": "nothing_to_accept"}
    for extra in vault_dir.glob("vault.db-*"):
        extra.unlink()
    (vault_dir / "vault.db").write_bytes(copy)
    refused = run("list")
    assert refused.code == Exit.STORE and "accept-rollback" in refused.err
    assert run("accept-rollback").code == Exit.USAGE
    ran = run("accept-rollback", "--yes", "--json")
    assert (ran.json["status"], ran.json["total"]) == ("accepted", 1)
    assert ran.json["pinned"].startswith("3:") and ran.json["served"].startswith("2:")
    assert run("list", "--json").json["total"] == 1


def test_a_copy_from_before_a_change_of_keys_needs_the_passphrase_of_then(
    run: Run, vault_dir: Path, new_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = (vault_dir / "vault.db").read_bytes()
    run("rotate", "--no-recovery", "--new-passphrase-file", new_file)
    monkeypatch.setenv("SQUIRREL_PASSPHRASE", NEW)
    for extra in vault_dir.glob("vault.db-*"):
        extra.unlink()
    (vault_dir / "vault.db").write_bytes(copy)
    assert run("status").code == Exit.STORE
    assert run("accept-rollback", "--yes").code == Exit.LOCKED
    assert run("status").code == Exit.STORE  # nothing was accepted
    monkeypatch.setenv("SQUIRREL_PASSPHRASE", PASSPHRASE)
    assert run("accept-rollback", "--yes").code == Exit.OK
    assert run("status").code == Exit.OK


def test_a_damaged_pin_can_be_replaced(run: Run, vault_dir: Path) -> None:
    (pin,) = vault_dir.glob("state-*.bin")
    pin.write_bytes(pin.read_bytes()[:-1])
    assert run("status").code == Exit.STORE
    ran = run("accept-rollback", "--yes", "--json")
    assert (ran.json["status"], ran.json["pinned"]) == ("accepted", None)
    assert run("status").code == Exit.OK


def test_the_fingerprint_of_an_earlier_entry_is_told(run: Run, vault_dir: Path) -> None:
    run("add", "one")
    head = run("status", "--json").json["fingerprint"]
    assert run("status", "--at", "2").out.strip() == head
    assert run("status", "--at", "1", "--json").json["fingerprint"].startswith("1:")
    assert run("status", "--at", "3").code == Exit.NOTHING
