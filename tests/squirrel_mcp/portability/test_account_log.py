"""Exports of real vaults: everything is in them, and nothing is believed that the log does not prove."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace

import pytest

from squirrel_mcp.crypto import recovery
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.errors import KeyRecordDowngrade, LogDamaged, OmissionDetected, RollbackDetected, Verdict
from squirrel_mcp.memory import Changes, Draft
from squirrel_mcp.portability.account_log import open_export, open_verified_part, take
from squirrel_mcp.portability.sealed_file import decode, encode
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.local import LocalStore
from squirrel_mcp.sync.store import AccountRecord
from squirrel_mcp.vault import Vault

from ..conftest import PASSPHRASE
from ..lossy_store import LossyStore
from .conftest import OpenNamed, StoreOf


def _save(vault: Vault, text: str) -> str:
    memory = vault.save(Draft(text)).memory
    assert memory is not None
    return memory.id


def _lived_in(vault: Vault) -> dict[str, str]:
    """A vault with a correction, a forgotten memory, both kinds of key change, and writes between them."""
    ids = {name: _save(vault, name) for name in ("kept", "corrected", "forgotten")}
    vault.correct(ids["corrected"], Changes(text="corrected once", reason="it moved"))
    vault.set_recovery(recovery.generate())
    vault.rotate(PASSPHRASE, None)
    vault.correct(ids["corrected"], Changes(text="corrected twice", tags=("a", "b")))
    vault.forget(ids["forgotten"])
    ids["late"] = _save(vault, "late")
    return ids


def test_an_export_holds_every_revision_of_every_living_memory(open_named: OpenNamed, store_of: StoreOf) -> None:
    vault = open_named("a")
    ids = _lived_in(vault)
    taken = take(store_of("a"), vault)
    found = open_export(decode(encode(taken.export)), taken.export.key_set.open(PASSPHRASE))
    assert found == taken.content
    assert set(found.revisions) == {ids["kept"], ids["corrected"], ids["late"]}
    assert found.revisions[ids["corrected"]] == [
        *reversed(vault.history(ids["corrected"])),
        vault.memories.get(ids["corrected"]),
    ]
    assert (found.forgotten, found.damaged) == (1, [])


def test_a_log_that_somebody_shortened_changed_or_reordered_is_refused(
    open_named: OpenNamed, store_of: StoreOf
) -> None:
    vault = open_named("a")
    _lived_in(vault)
    export = take(store_of("a"), vault).export
    items = export.items
    entry, content = items[-1]
    for forged in (
        replace(export, items=items[:-1], head=Head(len(items) - 1, items[-1][0][74:106])),
        replace(export, items=(*items[:-1], (entry[:-1] + bytes([entry[-1] ^ 1]), content))),
        replace(export, items=(*items[:2], items[3], items[2], *items[4:])),
        replace(export, items=(*items[:-1], (entry, None))),
        replace(export, items=(*items[:-1], (entry, b"x" * len(content or b"")))),
        replace(export, items=items[1:]),
    ):
        if forged.items == items[:-1]:
            assert open_export(forged, vault.ring)  # an honest older export; only a pin can tell
            with pytest.raises(RollbackDetected):
                open_export(forged, vault.ring, vault.head)
        else:
            with pytest.raises(Verdict):
                open_export(forged, vault.ring)


def test_a_key_set_of_another_moment_is_refused(open_named: OpenNamed, store_of: StoreOf) -> None:
    vault = open_named("a")
    before = take(store_of("a"), vault).export
    vault.change_passphrase("another passphrase")
    after = take(store_of("a"), vault).export
    with pytest.raises(KeyRecordDowngrade):
        open_export(replace(after, key_set=before.key_set), vault.ring)


def test_the_log_goes_on_after_the_vault_was_opened(open_named: OpenNamed, store_of: StoreOf) -> None:
    vault, other = open_named("a"), open_named("a")
    memory_id = _save(other, "written elsewhere")
    other.rotate(PASSPHRASE, None)
    assert memory_id in take(store_of("a"), vault).content.revisions


def test_a_superseded_object_that_rotted_costs_that_revision_only(
    open_named: OpenNamed, store_of: StoreOf, settings_of: Callable[[str], Settings]
) -> None:
    vault = open_named("a")
    memory_id = _save(vault, "first")
    other = _save(vault, "other")
    vault.correct(memory_id, Changes(text="second"))
    _rot_first_object(settings_of("a"))
    taken = take(store_of("a"), vault)
    assert [memory.text for memory in taken.content.revisions[memory_id]] == ["second"]
    assert other in taken.content.revisions and taken.content.damaged == [memory_id]
    assert open_export(decode(encode(taken.export)), vault.ring) == taken.content


def test_a_living_memory_without_object_is_no_export(
    open_named: OpenNamed, store_of: StoreOf, settings_of: Callable[[str], Settings]
) -> None:
    vault = open_named("a")
    _save(vault, "only")
    _rot_first_object(settings_of("a"))
    with pytest.raises((OmissionDetected, LogDamaged)):
        take(store_of("a"), vault)


def test_the_verified_part_of_a_damaged_log_can_be_read_with_its_history(
    open_named: OpenNamed, store_of: StoreOf, settings_of: Callable[[str], Settings]
) -> None:
    vault = open_named("a")
    memory_id = _save(vault, "first")
    vault.correct(memory_id, Changes(text="second"))
    vault.rotate(PASSPHRASE, None)
    vault.correct(memory_id, Changes(text="third"))
    cut = vault.head.seq + 1
    _save(vault, "beyond")
    vault.correct(memory_id, Changes(text="beyond too"))
    vault.close()
    _flip_last_bit(settings_of("a"), "log", "entry", str(cut))
    for pin in settings_of("a").data_dir.glob("state-*.bin"):
        pin.unlink()  # a device that has never seen the log whole
    damaged = open_named("a")
    assert isinstance(damaged.verdict, LogDamaged)
    found = open_verified_part(store_of("a"), damaged, None)
    assert {key: [memory.text for memory in value] for key, value in found.revisions.items()} == {
        memory_id: ["first", "second", "third"]
    }


def _rot_first_object(settings: Settings) -> None:
    _flip_last_bit(settings, "objects", "body", "(SELECT min(seq) FROM objects)")


def _flip_last_bit(settings: Settings, table: str, column: str, seq: str) -> None:
    with sqlite3.connect(settings.vault_path) as database:
        (raw,) = database.execute(f"SELECT {column} FROM {table} WHERE seq = {seq}").fetchone()
        flipped = raw[:-1] + bytes([raw[-1] ^ 1])
        database.execute(f"UPDATE {table} SET {column} = ? WHERE seq = {seq}", (flipped,))
    database.close()


class _Meanwhile(LossyStore):
    """Somebody else does something after the account was looked at; pages are small."""

    def __init__(self, real: LocalStore, something: Callable[[], object]) -> None:
        super().__init__(real)
        self._something: Callable[[], object] | None = something

    def account(self) -> AccountRecord:
        record = super().account()
        something, self._something = self._something, None
        if something is not None:
            something()
        return record


def test_what_others_do_in_between_is_in_the_export_or_not_but_never_half(
    open_named: OpenNamed, store_of: StoreOf
) -> None:
    ours, theirs = open_named("a"), open_named("a")
    ids = [_save(theirs, f"memory {number}") for number in range(7)]
    forgotten = take(_Meanwhile(store_of("a"), lambda: theirs.forget(ids[0])), ours)
    assert set(forgotten.content.revisions) == set(ids[1:]) and forgotten.content.forgotten == 1
    rotated = take(_Meanwhile(store_of("a"), lambda: theirs.rotate(PASSPHRASE, None)), ours)
    assert set(rotated.content.revisions) == set(ids[1:])
    added = take(_Meanwhile(store_of("a"), lambda: _save(theirs, "late")), ours)
    assert set(ids[1:]) <= set(added.content.revisions)
    for taken in (forgotten, rotated, added):
        assert open_export(decode(encode(taken.export)), taken.export.key_set.open(PASSPHRASE)) == taken.content


def test_an_older_state_than_was_seen_is_not_exported(open_named: OpenNamed, store_of: StoreOf) -> None:
    vault = open_named("a")
    _save(vault, "one")
    older = store_of("a").account()
    _save(vault, "two")

    class Older(LossyStore):
        def account(self) -> AccountRecord:
            return older

    with pytest.raises(RollbackDetected):
        take(Older(store_of("a")), vault)
