"""Saving exactly once, correcting with history, forgetting for good, and what two writers see of each other."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from squirrel_mcp import opening, private_files
from squirrel_mcp.crypto import recovery
from squirrel_mcp.errors import (
    Conflict,
    InvalidInput,
    KeysChanged,
    NotFound,
    PassphraseRefused,
    StoreFull,
    StoreUnavailable,
    WrongPassphrase,
)
from squirrel_mcp.memory import Changes, Draft, Memory
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.local import LocalStore
from squirrel_mcp.sync.pins import PinFolder
from squirrel_mcp.vault import Vault

from .conftest import CHEAP, Clock, OpenVault
from .lossy_store import LossyStore


@pytest.fixture
def lossy(open_vault: OpenVault, settings: Settings, clock: Clock) -> Iterator[tuple[Vault, LossyStore]]:
    open_vault()
    store = LossyStore(LocalStore(settings.vault_path))
    unlock = opening.from_settings(settings)
    vault = Vault(store, PinFolder(settings.data_dir), unlock, clock=clock, parameters=CHEAP)
    yield vault, store
    vault.close()


def texts(vault: Vault) -> set[str]:
    return {memory.text for memory in vault.memories}


def save(vault: Vault, text: str) -> Memory:
    outcome = vault.save(Draft(text))
    assert outcome.status == "saved" and outcome.memory is not None
    return outcome.memory


def test_what_was_saved_is_there_after_a_new_start(open_vault: OpenVault) -> None:
    draft = Draft("Allergic to peanuts", "Noor", "profile", ("health", "food"), ("nut allergy",), "chat")
    saved = open_vault().save(draft).memory
    again = open_vault()
    assert list(again.memories) == [saved]
    assert saved is not None and saved.tags == ("health", "food")


def test_the_same_text_entity_and_category_is_not_stored_twice(open_vault: OpenVault) -> None:
    vault = open_vault()
    first = vault.save(Draft("Lives in Zürich", entity="Mira"))
    twin = vault.save(Draft("  Lives in\nZu\u0308rich ", entity="Mira"))
    assert (twin.status, twin.memory) == ("already_present", first.memory)
    assert vault.save(Draft("Lives in Zürich")).status == "saved"
    assert vault.save(Draft("Lives in Zürich", entity="Mira", category="event")).status == "saved"


@pytest.mark.parametrize(("given", "stored"), [("", "fact"), (" \t", "fact"), (" task\n", "task")])
def test_space_around_a_category_is_no_part_of_it_and_a_blank_one_is_the_default(
    open_vault: OpenVault, given: str, stored: str
) -> None:
    vault = open_vault()
    first = vault.save(Draft("The dentist is on Friday", category=given)).memory
    assert first is not None and first.category == stored
    assert vault.save(Draft("The dentist is on Friday", category=stored)).status == "already_present"
    vault.correct(first.id, Changes(category="event"))
    corrected = vault.correct(first.id, Changes(category=given)).memory
    assert corrected is not None and corrected.category == stored


def test_a_corrected_value_is_no_duplicate(open_vault: OpenVault) -> None:
    vault = open_vault()
    save(vault, "router is 10.0.7.1")
    save(vault, "router is 10.0.9.1")
    assert texts(vault) == {"router is 10.0.7.1", "router is 10.0.9.1"}


@pytest.mark.parametrize("moment", ["lose_answer", "fail_before"])
@pytest.mark.parametrize(
    "write",
    [
        lambda vault, memory: vault.save(Draft("once")),
        lambda vault, memory: vault.correct(memory.id, Changes(text="corrected")),
        lambda vault, memory: vault.forget(memory.id),
        lambda vault, memory: vault.change_passphrase("another long passphrase"),
        lambda vault, memory: vault.set_recovery(bytes(20)),
        lambda vault, memory: vault.rotate("another long passphrase", None),
    ],
)
def test_a_lost_answer_is_success_and_a_failed_request_changes_nothing(
    lossy: tuple[Vault, LossyStore], moment: str, write: Callable[[Vault, Memory], object]
) -> None:
    vault, store = lossy
    memory = save(vault, "before")
    head = vault.head
    setattr(store, moment, True)
    if moment == "lose_answer":
        write(vault, memory)
        assert vault.head.seq == head.seq + 1
    else:
        with pytest.raises(StoreUnavailable):
            write(vault, memory)
        assert vault.head == head
        write(vault, memory)  # and the next try works
        assert vault.head.seq == head.seq + 1
    save(vault, "afterwards")
    vault.sync()
    assert "afterwards" in texts(vault)


def test_different_memories_saved_at_once_are_both_kept(lossy: tuple[Vault, LossyStore], open_vault: OpenVault) -> None:
    vault, store = lossy
    other = open_vault()
    store.before_write = lambda: save(other, "theirs")
    save(vault, "ours")
    assert texts(vault) == {"ours", "theirs"}
    assert store.writes == 2
    other.sync()
    assert texts(other) == texts(vault)


def test_the_same_memory_saved_at_once_is_stored_once(lossy: tuple[Vault, LossyStore], open_vault: OpenVault) -> None:
    vault, store = lossy
    other = open_vault()
    store.before_write = lambda: save(other, "the same")
    assert vault.save(Draft("the same")).status == "already_present"
    assert len(vault.memories) == 1


def test_a_concurrent_correction_of_one_memory_is_a_visible_conflict(
    lossy: tuple[Vault, LossyStore], open_vault: OpenVault
) -> None:
    vault, store = lossy
    memory = save(vault, "the meeting is on Monday")
    other = open_vault()
    store.before_write = lambda: other.correct(memory.id, Changes(text="the meeting is on Tuesday"))
    outcome = vault.correct(memory.id, Changes(text="the meeting is on Friday"))
    assert outcome.status == "conflict"
    assert outcome.memory is not None and outcome.memory.text == "the meeting is on Tuesday"
    store.before_write = lambda: other.correct(memory.id, Changes(text="the meeting is on Friday"))
    assert vault.correct(memory.id, Changes(text="the meeting is on Friday")).status == "unchanged"


def test_forgetting_what_somebody_corrects_at_once_is_a_conflict_and_twice_is_none(
    lossy: tuple[Vault, LossyStore], open_vault: OpenVault
) -> None:
    vault, store = lossy
    one, two = save(vault, "one"), save(vault, "two")
    other = open_vault()
    store.before_write = lambda: other.correct(one.id, Changes(text="uno"))
    assert vault.forget(one.id).status == "conflict"
    store.before_write = lambda: other.forget(two.id)
    assert vault.forget(two.id).status == "forgotten"
    assert texts(vault) == {"uno"}


def test_correcting_what_was_forgotten_meanwhile_does_not_revive_it(
    lossy: tuple[Vault, LossyStore], open_vault: OpenVault
) -> None:
    vault, store = lossy
    memory = save(vault, "secret")
    other = open_vault()
    store.before_write = lambda: other.forget(memory.id)
    assert vault.correct(memory.id, Changes(text="secret again")).status == "not_found"
    assert not list(vault.memories)
    assert vault.forget(memory.id).status == "not_found"


def test_the_expected_revision_is_compared(open_vault: OpenVault) -> None:
    vault = open_vault()
    memory = save(vault, "a")
    assert vault.correct(memory.id, Changes(text="b"), expected_revision=2).status == "conflict"
    assert vault.correct(memory.id, Changes(text="b"), expected_revision=1).status == "updated"
    assert vault.forget(memory.id, expected_revision=1).status == "conflict"
    assert vault.forget(memory.id, expected_revision=2).status == "forgotten"


def test_a_correction_keeps_what_it_does_not_name_and_the_history(open_vault: OpenVault, clock: Clock) -> None:
    vault = open_vault()
    first = vault.save(Draft("Works at Acme", "Mira", "profile", ("job",))).memory
    assert first is not None
    clock.move(days=3)
    vault.correct(first.id, Changes(text="Works at Initech", reason="changed jobs"))
    clock.move(days=-10)  # a clock that goes back does not make the newer revision the older one
    vault.correct(first.id, Changes(tags=()))
    fresh = open_vault()
    now = fresh.memories.get(first.id)
    assert now is not None
    assert (now.text, now.entity, now.category, now.tags, now.revision) == (
        "Works at Initech", "Mira", "profile", (), 3,
    )  # fmt: skip
    assert now.created_at == first.created_at < now.updated_at
    assert [(old.revision, old.text, old.reason) for old in fresh.history(first.id)] == [
        (2, "Works at Initech", "changed jobs"),
        (1, "Works at Acme", ""),
    ]


def test_what_is_forgotten_is_gone_with_its_history(open_vault: OpenVault, settings: Settings) -> None:
    vault = open_vault()
    memory = save(vault, "first")
    vault.correct(memory.id, Changes(text="second"))
    assert vault.forget(memory.id).status == "forgotten"
    for one in (vault, open_vault()):
        assert one.memories.get(memory.id) is None
        with pytest.raises(NotFound):
            one.history(memory.id)
    store = LocalStore(settings.vault_path)
    page = store.read_log(0, objects="all")
    assert all(content is None for _, content in page.items)
    store.close()


@pytest.mark.parametrize("memory_id", ["", "zz", "AB" * 16, "00" * 15, "../../etc/passwd", "0" * 10_000])
def test_what_is_no_id_is_not_found(open_vault: OpenVault, memory_id: str) -> None:
    vault = open_vault()
    assert vault.correct(memory_id, Changes(text="x")).status == "not_found"
    assert vault.forget(memory_id).status == "not_found"
    with pytest.raises(NotFound):
        vault.history(memory_id)


@pytest.mark.parametrize(
    ("draft", "field"),
    [
        (Draft(""), "text"),
        (Draft(" \n"), "text"),
        (Draft("x" * 16_001), "text"),
        (Draft("half a pair: \ud83d"), "text"),
        (Draft("\x00" * 16_000), "text"),  # 96,000 bytes as JSON
        (Draft("x", entity="e" * 201), "entity"),
        (Draft("x", source="s" * 201), "source"),
        (Draft("x", tags=tuple(f"tag {n}" for n in range(33))), "tags"),
        (Draft("x", keywords=("k" * 65,)), "keywords"),
    ],
)
def test_what_may_not_be_stored_names_its_field_and_stores_nothing(
    open_vault: OpenVault, draft: Draft, field: str
) -> None:
    vault = open_vault()
    head = vault.head
    with pytest.raises(InvalidInput) as caught:
        vault.save(draft)
    assert caught.value.field == field
    assert vault.head == head


def test_only_the_new_passphrase_opens_after_a_change(open_vault: OpenVault) -> None:
    vault = open_vault()
    save(vault, "kept")
    vault.change_passphrase("a completely new passphrase")
    with pytest.raises(WrongPassphrase):
        open_vault()
    assert texts(open_vault("a completely new passphrase")) == {"kept"}


def test_a_running_client_notices_changed_keys_and_goes_on_once_it_has_the_passphrase(
    open_vault: OpenVault, settings: Settings, clock: Clock
) -> None:
    current = ["correct horse battery staple"]
    other = open_vault()
    store = LocalStore(settings.vault_path)
    vault = Vault(store, PinFolder(settings.data_dir), Unlocker(lambda: current[0]), clock=clock, parameters=CHEAP)
    other.change_passphrase("a completely new passphrase")
    save(other, "written meanwhile")
    for _ in range(2):
        with pytest.raises(KeysChanged):
            vault.sync()
        with pytest.raises(KeysChanged):
            vault.save(Draft("refused"))
    current[0] = "a completely new passphrase"
    vault.sync()
    assert texts(vault) == {"written meanwhile"}
    other.rotate("a third long passphrase", None)
    current[0] = "a third long passphrase"
    save(vault, "after the rotation")  # under the new key, though this process had not seen it yet
    other.sync()
    assert texts(other) == {"written meanwhile", "after the rotation"}
    vault.close()


def test_after_rotations_all_memories_and_their_histories_open(open_vault: OpenVault) -> None:
    vault = open_vault()
    memory = save(vault, "generation 0")
    for number in range(1, 4):
        vault.rotate("correct horse battery staple", None)
        vault.correct(memory.id, Changes(text=f"generation {number}"))
        save(vault, f"made in {number}")
    fresh = open_vault()
    assert len(fresh.memories) == 4
    assert [old.text for old in fresh.history(memory.id)] == ["generation 2", "generation 1", "generation 0"]
    assert fresh.head == vault.head
    assert fresh.fingerprint(2) == vault.fingerprint(2)


def test_the_loser_of_two_key_changes_is_told_and_does_not_retry(
    lossy: tuple[Vault, LossyStore], open_vault: OpenVault
) -> None:
    vault, store = lossy
    other = open_vault()
    store.before_write = lambda: other.set_recovery(bytes(20))
    with pytest.raises(Conflict):
        vault.set_recovery(b"\1" * 20)
    assert store.writes == 1
    assert vault.key_set.raw == other.key_set.raw


def test_a_save_between_does_not_stop_a_key_change(lossy: tuple[Vault, LossyStore], open_vault: OpenVault) -> None:
    vault, store = lossy
    other = open_vault()
    store.before_write = lambda: save(other, "in between")
    vault.rotate("another long passphrase", bytes(20))
    assert texts(vault) == {"in between"}
    assert texts(open_vault("another long passphrase")) == {"in between"}


def test_the_recovery_code_opens_until_it_is_replaced(open_vault: OpenVault, settings: Settings, clock: Clock) -> None:
    vault = open_vault()
    save(vault, "kept")
    first, second = os.urandom(20), os.urandom(20)
    vault.set_recovery(first)
    vault.change_passphrase("forgotten at once, alas")  # the recovery code stays

    def recover(secret: bytes) -> Vault:
        code = recovery.from_code(recovery.to_code(secret))
        return opening.open_vault(settings, Unlocker(lambda: code), clock=clock, parameters=CHEAP)

    recovered = recover(first)
    assert texts(recovered) == {"kept"}
    recovered.change_passphrase("remembered this time")
    recovered.set_recovery(second)
    with pytest.raises(WrongPassphrase):
        recover(first)
    recover(second).close()
    recovered.rotate("remembered this time", None)
    assert open_vault("remembered this time").key_set.recovery is None
    recovered.close()


def test_a_short_new_passphrase_changes_nothing(open_vault: OpenVault) -> None:
    vault = open_vault()
    head = vault.head
    for change in (vault.change_passphrase, lambda new: vault.rotate(new, None)):
        for bad in ("short", "", "${SQUIRREL_PASSPHRASE}", "lone \ud800 surrogate here"):
            with pytest.raises(PassphraseRefused):
                change(bad)
    assert vault.head == head


def test_imported_revisions_keep_ids_dates_and_history_and_do_not_double(
    open_vault: OpenVault, settings: Settings, clock: Clock
) -> None:
    vault = open_vault()
    memory = save(vault, "one")
    clock.move(days=1)
    vault.correct(memory.id, Changes(text="two", reason="because"))
    gone = save(vault, "gone")
    revisions = [*reversed(vault.history(memory.id)), *vault.memories]
    other_settings = Settings(data_dir=settings.data_dir.with_name("other"), passphrase="correct horse battery staple")
    other = opening.open_vault(other_settings, opening.from_settings(other_settings), clock=clock, parameters=CHEAP)
    other.put_revisions(revisions[:1])  # interrupted after the first
    for _ in range(2):
        other.put_revisions(revisions)
    assert {m.id: m for m in other.memories} == {m.id: m for m in vault.memories}
    assert other.history(memory.id) == vault.history(memory.id)
    other.forget(gone.id)
    other.put_revisions(revisions)
    assert other.memories.get(gone.id) is None
    assert other.head.seq == 1 + 3 + 1
    other.close()


def test_a_large_import_is_written_in_batches(open_vault: OpenVault, clock: Clock) -> None:
    vault = open_vault()
    revisions = [
        Memory(id=f"{n:032x}", text="x" * 15_000, created_at=clock.now, updated_at=clock.now) for n in range(1, 301)
    ]
    vault.put_revisions(revisions)
    assert len(vault.memories) == 300
    assert len(open_vault().memories) == 300


@pytest.mark.parametrize("memory_id", ["0" * 32, "zz" * 16, "AB" * 16, "ab", ""])
def test_an_import_refuses_ids_that_no_memory_has(open_vault: OpenVault, clock: Clock, memory_id: str) -> None:
    vault = open_vault()
    head = vault.head
    with pytest.raises(InvalidInput):
        vault.put_revisions([Memory(id=memory_id, text="x", created_at=clock.now, updated_at=clock.now)])
    assert vault.head == head
    assert len(open_vault().memories) == 0


@pytest.mark.parametrize("error", [StoreFull("no space"), StoreUnavailable("locked")])
def test_a_pin_that_cannot_be_written_fails_neither_saves_nor_reads_and_is_written_later(
    open_vault: OpenVault, settings: Settings, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    vault = open_vault()
    (path,) = settings.data_dir.glob("state-*.bin")
    before = path.read_bytes()

    def fail(*_: object) -> None:
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(private_files, "replace", fail)
        assert vault.save(Draft("stored all the same")).status == "saved"
        vault.sync()
        assert path.read_bytes() == before
    vault.sync()
    assert path.read_bytes() != before
    assert texts(open_vault()) == {"stored all the same"}


def test_two_imports_at_once_do_not_double_what_came_without_ids(
    lossy: tuple[Vault, LossyStore], open_vault: OpenVault, clock: Clock
) -> None:
    vault, store = lossy
    other = open_vault()
    ours, theirs = (
        [Memory(id=f"{base + n:032x}", text=f"line {n}", created_at=clock.now, updated_at=clock.now) for n in range(5)]
        for base in (100, 200)
    )
    store.before_write = lambda: other.put_revisions(theirs, {memory.id for memory in theirs})
    vault.put_revisions(ours, {memory.id for memory in ours})
    assert sorted(memory.text for memory in vault.memories) == [f"line {n}" for n in range(5)]


@pytest.mark.parametrize(
    ("given", "stored"),
    [("Instruction", "instruction"), (" TASK ", "task"), ("  ", "fact"), ("Recipe", "Recipe"), (" Recipe", "Recipe")],
)
def test_known_categories_are_the_same_however_they_are_written(open_vault: OpenVault, given: str, stored: str) -> None:
    vault = open_vault()
    memory = vault.save(Draft("x", category=given)).memory
    assert memory is not None and memory.category == stored
    corrected = vault.correct(memory.id, Changes(category=given, text="y")).memory
    assert corrected is not None and corrected.category == stored
