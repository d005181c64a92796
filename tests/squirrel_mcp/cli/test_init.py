"""init without a person; test_prompts.py has the person."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest

from squirrel_mcp.cli.exits import Exit

from ..conftest import PASSPHRASE
from ..test_passphrase import MemoryKeyring
from .conftest import Run


@pytest.fixture
def own_keyring() -> Iterator[MemoryKeyring]:
    before, mine = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(mine)
    yield mine
    keyring.set_keyring(before)


def test_a_script_makes_a_vault_without_a_recovery_code(run: Run, data_dir: Path) -> None:
    ran = run("init", "--no-recovery", "--json")
    made = ran.json
    assert (ran.code, made["vault"], made["recoveryCode"], made["keyring"]) == (
        Exit.OK, str(data_dir / "vault.db"), False, False,
    )  # fmt: skip
    assert made["clientConfig"]["client"] == "claude-desktop"
    assert PASSPHRASE not in ran.out + ran.err
    assert run("status", "--json").json["recoveryCode"] is False


def test_stdout_of_init_is_the_snippet_alone(run: Run) -> None:
    ran = run("init", "--no-recovery", "--client", "gemini")
    assert "squirrel" in json.loads(ran.out)["mcpServers"]
    assert "no recovery code yet" in ran.err


def test_nobody_to_show_a_code_to_means_that_it_has_to_be_declined(run: Run, data_dir: Path) -> None:
    ran = run("init")
    assert ran.code == Exit.USAGE and "--no-recovery" in ran.err and not data_dir.exists()


@pytest.mark.parametrize(
    ("passphrase", "said", "code"),
    [
        ("", "SQUIRREL_PASSPHRASE", Exit.LOCKED),
        ("too short", "12", Exit.USAGE),
        ("${SQUIRREL_PASSPHRASE}", "placeholder", Exit.LOCKED),
    ],
)
def test_without_a_good_passphrase_nothing_is_made(
    run: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch, passphrase: str, said: str, code: Exit
) -> None:
    monkeypatch.setenv("SQUIRREL_PASSPHRASE", passphrase)
    ran = run("init", "--no-recovery")
    assert ran.code == code and said in ran.err and not data_dir.exists()


def test_a_vault_that_is_there_stays_as_it_is(run: Run, vault_dir: Path) -> None:
    before = (vault_dir / "vault.db").read_bytes()
    ran = run("init", "--no-recovery", "--json")
    assert ran.code == Exit.CONFLICT and ran.json["error"]["code"] == "conflict"
    assert (vault_dir / "vault.db").read_bytes() == before


def test_a_vault_that_vanished_is_no_reason_for_a_new_one(run: Run, vault_dir: Path) -> None:
    (vault_dir / "vault.db").unlink()
    ran = run("init", "--no-recovery")
    assert ran.code == Exit.STORE and "backup" in ran.err


def test_the_keyring_keeps_the_passphrase_on_request_and_the_snippet_needs_no_other(
    run: Run, own_keyring: MemoryKeyring, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ran = run("init", "--no-recovery", "--keyring", "--json")
    assert ran.json["keyring"] is True and "SQUIRREL_PASSPHRASE" not in ran.json["clientConfig"]["content"]
    monkeypatch.delenv("SQUIRREL_PASSPHRASE")
    assert run("status").code == Exit.OK
    (tmp_path / "new").write_text("another passphrase")
    ran = run("passphrase", "change", "--new-passphrase-file", str(tmp_path / "new"), "--json")
    assert (ran.json["keyringUpdated"], ran.json["toDo"]) == (True, "")
    assert list(own_keyring.entries.values()) == ["another passphrase"]
    assert run("status").code == Exit.OK


def test_a_machine_without_keyring_says_what_to_do_instead(run: Run) -> None:
    ran = run("init", "--no-recovery", "--keyring")
    assert ran.code == Exit.OK and "SQUIRREL_PASSPHRASE_FILE" in ran.err
