"""What a start finds on this machine: nothing, the vault, an older copy, another one, or no vault at all."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from squirrel_mcp import opening
from squirrel_mcp.crypto import kdf
from squirrel_mcp.errors import (
    ForeignAccount,
    ForkDetected,
    KeyRecordDowngrade,
    KeySetDamaged,
    LogDamaged,
    NewerSchema,
    NotUnlocked,
    OmissionDetected,
    PassphraseMissing,
    PassphraseRefused,
    PinDamaged,
    RollbackDetected,
    SquirrelError,
    StoreError,
    UnsafeFile,
    VaultMissing,
    WrongPassphrase,
)
from squirrel_mcp.memory import Changes, Draft
from squirrel_mcp.settings import Settings
from squirrel_mcp.vault import Vault

from .conftest import CHEAP, PASSPHRASE, Clock, OpenVault


def copy_vault(settings: Settings, to: Path) -> None:
    """As a backup program would: every file of the vault, without the pins."""
    to.mkdir(exist_ok=True)
    for path in settings.data_dir.glob("vault.db*"):
        shutil.copy(path, to / path.name)


def restore_vault(settings: Settings, source: Path) -> None:
    for path in settings.data_dir.glob("vault.db*"):
        path.unlink()
    for path in source.iterdir():
        shutil.copy(path, settings.data_dir / path.name)
        (settings.data_dir / path.name).chmod(0o600)


def edit_vault(settings: Settings, statement: str, *parameters: object) -> int:
    with sqlite3.connect(settings.vault_path) as connection:
        count = connection.execute(statement, parameters).rowcount
    connection.close()
    return count


@pytest.mark.parametrize(
    ("passphrase", "error"),
    [
        (None, PassphraseMissing),
        ("", PassphraseMissing),
        ("short", PassphraseRefused),
        ("${SQUIRREL_PASSPHRASE}", PassphraseRefused),
        ("${SQUIRREL_PASSPHRASE:-none}", PassphraseRefused),
        ("lone surrogate \udcff here", PassphraseRefused),
    ],
)
def test_without_a_usable_passphrase_no_file_is_made(
    tmp_path: Path, passphrase: str | None, error: type[SquirrelError]
) -> None:
    environ = {"SQUIRREL_DATA_DIR": str(tmp_path / "data")}
    if passphrase is not None:
        environ["SQUIRREL_PASSPHRASE"] = passphrase
    settings = Settings.read(environ)
    with pytest.raises(error) as caught:
        opening.open_vault(settings, opening.from_settings(settings), parameters=CHEAP)
    assert not (tmp_path / "data").exists()
    assert passphrase in (None, "", "short") or str(passphrase) not in str(caught.value)


def test_a_wrong_passphrase_on_an_empty_vault_is_refused_and_writes_nothing(
    open_vault: OpenVault, settings: Settings
) -> None:
    open_vault().close()
    before = settings.vault_path.read_bytes()
    with pytest.raises(WrongPassphrase):
        open_vault("not the passphrase")
    assert settings.vault_path.read_bytes() == before
    assert len(list(settings.data_dir.glob("state-*.bin"))) == 1


def test_a_refused_passphrase_is_stretched_once(
    open_vault: OpenVault, settings: Settings, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_vault().close()
    calls = 0
    real = kdf.stretch

    def counting(*arguments: object) -> bytes:
        nonlocal calls
        calls += 1
        return real(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(kdf, "stretch", counting)
    mine = replace(settings, passphrase="not the passphrase")
    unlock = opening.from_settings(mine)
    for _ in range(5):
        with pytest.raises(WrongPassphrase):
            opening.open_vault(mine, unlock, clock=clock, parameters=CHEAP)
    assert calls == 1


def test_a_vault_file_that_vanished_is_an_error_and_no_new_vault(open_vault: OpenVault, settings: Settings) -> None:
    open_vault().close()
    for path in settings.data_dir.glob("vault.db*"):
        path.unlink()
    for _ in range(2):
        with pytest.raises(VaultMissing):
            open_vault()
    assert not settings.vault_path.exists()
    settings.vault_path.touch(0o600)
    with pytest.raises(VaultMissing):
        open_vault()


def test_an_older_copy_of_the_vault_file_is_caught_until_a_person_accepts_it(
    open_vault: OpenVault, settings: Settings, clock: Clock, tmp_path: Path
) -> None:
    vault = open_vault()
    vault.save(Draft("old"))
    vault.close()
    copy_vault(settings, tmp_path / "backup")
    vault = open_vault()
    vault.save(Draft("new"))
    vault.close()
    restore_vault(settings, tmp_path / "backup")
    for _ in range(2):
        with pytest.raises(RollbackDetected):
            open_vault()
    heads = opening.rolled_back(settings)
    assert heads is not None and (heads.pinned.seq, heads.served.seq) == (3, 2)
    wrong = replace(settings, passphrase="not the passphrase")
    with pytest.raises(WrongPassphrase):
        opening.accept_rollback(wrong, opening.from_settings(wrong), clock=clock)
    with pytest.raises(RollbackDetected):
        open_vault()
    opening.accept_rollback(settings, opening.from_settings(settings), clock=clock).close()
    assert {memory.text for memory in open_vault().memories} == {"old"}


def test_an_older_copy_that_went_another_way_is_a_fork(
    open_vault: OpenVault, settings: Settings, tmp_path: Path
) -> None:
    open_vault().close()
    copy_vault(settings, tmp_path / "backup")
    vault = open_vault()
    vault.save(Draft("ours"))
    vault.close()
    pins = {path: path.read_bytes() for path in settings.data_dir.glob("state-*.bin")}
    restore_vault(settings, tmp_path / "backup")
    for path in pins:
        path.unlink()
    other = open_vault()  # a device that had no pin goes on from the copy
    other.save(Draft("theirs"))
    other.save(Draft("theirs too"))
    other.close()
    for path, content in pins.items():
        path.write_bytes(content)
    with pytest.raises(ForkDetected):
        open_vault()


def test_a_key_record_from_before_a_passphrase_change_is_a_downgrade(
    open_vault: OpenVault, settings: Settings, tmp_path: Path
) -> None:
    open_vault().close()
    copy_vault(settings, tmp_path / "backup")
    vault = open_vault()
    vault.change_passphrase("a completely new passphrase")
    vault.close()
    restore_vault(settings, tmp_path / "backup")
    with pytest.raises(KeyRecordDowngrade):
        open_vault()


def test_another_vault_in_its_place_is_a_foreign_account(
    open_vault: OpenVault, settings: Settings, clock: Clock, tmp_path: Path
) -> None:
    open_vault().close()
    elsewhere = Settings(data_dir=tmp_path / "elsewhere", passphrase=PASSPHRASE)
    opening.open_vault(elsewhere, opening.from_settings(elsewhere), clock=clock, parameters=CHEAP).close()
    copy_vault(elsewhere, tmp_path / "copy")
    restore_vault(settings, tmp_path / "copy")
    with pytest.raises(ForeignAccount):
        open_vault()


def test_an_altered_wrap_looks_like_a_wrong_passphrase_or_a_damaged_key_set(
    open_vault: OpenVault, settings: Settings
) -> None:
    open_vault().close()
    for path in settings.data_dir.glob("state-*.bin"):
        path.unlink()  # with the pin it would be a downgrade already
    before = settings.vault_path.read_bytes()
    position = before.index(b"SQKW")
    seen = set()
    for offset in range(164):
        altered = bytearray(before)
        altered[position + offset] ^= 1
        settings.vault_path.write_bytes(altered)
        with pytest.raises((NotUnlocked, KeySetDamaged, SquirrelError)) as caught:
            open_vault()
        seen.add(caught.value.code)
    assert "wrong_passphrase" in seen and "key_set_damaged" in seen
    settings.vault_path.write_bytes(before)
    open_vault()


def test_a_damaged_record_is_one_damaged_memory_and_can_be_forgotten(
    open_vault: OpenVault, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from squirrel_mcp import vault as vault_module

    vault = open_vault()
    vault.save(Draft("good"))
    real = vault_module.to_json
    monkeypatch.setattr(vault_module, "to_json", lambda memory: real(memory)[:-1])
    bad = vault.save(Draft("bad")).memory
    monkeypatch.undo()
    fresh = open_vault()
    assert bad is not None and set(fresh.damaged) == {bad.id}
    assert {memory.text for memory in fresh.memories} == {"good"}
    assert fresh.correct(bad.id, Changes(text="x")).status == "not_found"
    assert fresh.forget(bad.id).status == "forgotten"
    assert not open_vault().damaged


def entries(settings: Settings) -> list[tuple[int, bytes]]:
    with sqlite3.connect(settings.vault_path) as connection:
        rows = connection.execute("SELECT seq, entry FROM log ORDER BY seq").fetchall()
    connection.close()
    return [(seq, bytes(raw)) for seq, raw in rows]


def alter_entry(settings: Settings, seq: int, offset: int) -> None:
    raw = bytearray(dict(entries(settings))[seq])
    raw[offset] ^= 0x40
    assert edit_vault(settings, "UPDATE log SET entry = ? WHERE seq = ?", bytes(raw), seq) == 1


def test_after_a_damaged_entry_what_came_before_stays_readable_and_nothing_is_written(
    open_vault: OpenVault, settings: Settings
) -> None:
    vault = open_vault()
    for number in range(5):
        vault.save(Draft(f"memory {number}"))
    vault.close()
    pins = {path: path.read_bytes() for path in settings.data_dir.glob("state-*.bin")}
    alter_entry(settings, 4, 50)
    fresh = open_vault()
    assert isinstance(fresh.verdict, LogDamaged) and fresh.verdict.seq == 4
    assert {memory.text for memory in fresh.memories} == {"memory 0", "memory 1"}
    fresh.sync()
    for write in (
        lambda: fresh.save(Draft("x")),
        lambda: fresh.change_passphrase("another long passphrase"),
        lambda: fresh.rotate("another long passphrase", None),
    ):
        with pytest.raises(LogDamaged):
            write()
    assert {path: path.read_bytes() for path in pins} == pins


def test_the_prefix_shows_a_memory_whose_later_revision_lies_behind_the_damage_as_damaged(
    open_vault: OpenVault, settings: Settings
) -> None:
    vault = open_vault()
    memory = vault.save(Draft("first")).memory
    assert memory is not None
    vault.save(Draft("in between"))
    vault.correct(memory.id, Changes(text="second"))
    vault.close()
    alter_entry(settings, 3, 50)
    fresh = open_vault()
    assert memory.id in fresh.damaged or fresh.memories.get(memory.id) is not None


@pytest.mark.parametrize(
    ("alter", "error"),
    [
        (
            lambda s: edit_vault(s, "DELETE FROM objects WHERE rowid = (SELECT max(rowid) FROM objects)"),
            OmissionDetected,
        ),
        (lambda s: edit_vault(s, "DELETE FROM log WHERE seq = 3"), OmissionDetected),
    ],
)
def test_what_is_missing_from_the_store_is_named(
    open_vault: OpenVault, settings: Settings, alter: Callable[[Settings], int], error: type[SquirrelError]
) -> None:
    vault = open_vault()
    for number in range(4):
        vault.save(Draft(f"memory {number}"))
    vault.close()
    assert alter(settings) >= 1
    with pytest.raises(error):
        open_vault()


def test_every_flipped_byte_of_the_pin_is_noticed(open_vault: OpenVault, settings: Settings) -> None:
    open_vault().close()
    (path,) = settings.data_dir.glob("state-*.bin")
    raw = path.read_bytes()
    for offset in [*range(84), *range(84, len(raw), 7), len(raw) - 1]:
        altered = bytearray(raw)
        altered[offset] ^= 0x01
        path.write_bytes(altered)
        with pytest.raises(SquirrelError) as caught:
            open_vault()
        assert not isinstance(caught.value, StoreError), offset
    path.write_bytes(raw[:-1])
    with pytest.raises(PinDamaged):
        open_vault()
    path.write_bytes(raw)
    open_vault()


def test_a_later_pin_of_another_process_is_not_moved_back(open_vault: OpenVault, settings: Settings) -> None:
    slow, fast = open_vault(), open_vault()
    (path,) = settings.data_dir.glob("state-*.bin")
    for number in range(3):
        fast.save(Draft(f"memory {number}"))
    later = path.read_bytes()
    # `slow` learns of the first of them only now, as if its page had been read before the others were written.
    slow._replica._pins.write(slow._replica._pinned, slow.ring)  # type: ignore[arg-type]
    assert path.read_bytes() == later


def test_a_newer_schema_is_refused_in_a_sentence(open_vault: OpenVault, settings: Settings) -> None:
    open_vault().close()
    with sqlite3.connect(settings.vault_path) as connection:
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        version_table = next(name for name in tables if "version" in name or "schema" in name)
        column = connection.execute(f"SELECT * FROM {version_table}").description[-1][0]
        connection.execute(f"UPDATE {version_table} SET {column} = 999")
    connection.close()
    with pytest.raises(NewerSchema):
        open_vault()


@pytest.mark.parametrize("content", [b"not a database, just text\n" * 50, b"SQLite format 3\x00" + b"\xff" * 4096])
def test_a_file_that_is_no_vault_is_refused_and_left_as_it_is(
    open_vault: OpenVault, settings: Settings, content: bytes
) -> None:
    settings.data_dir.mkdir(mode=0o700)
    settings.vault_path.write_bytes(content)
    settings.vault_path.chmod(0o600)
    with pytest.raises(StoreError):
        open_vault()
    assert settings.vault_path.read_bytes() == content


def test_a_linked_vault_or_data_folder_is_refused(open_vault: OpenVault, settings: Settings, tmp_path: Path) -> None:
    open_vault().close()
    target = tmp_path / "target.db"
    settings.vault_path.rename(target)
    settings.vault_path.symlink_to(target)
    with pytest.raises(UnsafeFile):
        open_vault()
    settings.vault_path.unlink()
    settings.vault_path.hardlink_to(target)
    with pytest.raises(UnsafeFile):
        open_vault()
    settings.vault_path.unlink()
    target.rename(settings.vault_path)
    real = tmp_path / "real"
    settings.data_dir.rename(real)
    settings.data_dir.symlink_to(real)
    with pytest.raises(UnsafeFile):
        open_vault()


def test_two_vaults_made_at_once_are_one(settings: Settings, clock: Clock) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def start(_: int) -> Vault:
        return opening.open_vault(settings, opening.from_settings(settings), clock=clock, parameters=CHEAP)

    with ThreadPoolExecutor(6) as pool:
        vaults = list(pool.map(start, range(6)))
    assert len({vault.account_id for vault in vaults}) == 1
    for vault in vaults:
        vault.close()
