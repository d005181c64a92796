"""What the fronts rely on: opened when it can be, in step with others, stale only when it says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from squirrel_mcp.errors import (
    InvalidInput,
    KeysChanged,
    NotFound,
    PassphraseMissing,
    RecordDamaged,
    StoreUnavailable,
    WrongPassphrase,
)
from squirrel_mcp.memory import Changes, Draft, Memory
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.search.results import Filters
from squirrel_mcp.service import MemoryService, Page
from squirrel_mcp.settings import Settings

from .conftest import CHEAP, PASSPHRASE, Clock, OpenVault

NewService = Callable[..., MemoryService]


@pytest.fixture
def new_service(settings: Settings, clock: Clock) -> Iterator[NewService]:
    made: list[MemoryService] = []

    def make(**changes: object) -> MemoryService:
        unlock = changes.pop("unlock", None)
        mine = replace(settings, **changes)  # type: ignore[arg-type]
        service = MemoryService(mine, unlock=unlock, clock=clock, parameters=CHEAP)  # type: ignore[arg-type]
        made.append(service)
        return service

    yield make
    for service in made:
        service.close()


@pytest.fixture
def service(new_service: NewService) -> MemoryService:
    return new_service()


def add(service: MemoryService, text: str, **fields: object) -> Memory:
    outcome = service.save(Draft(text, **fields)).outcome  # type: ignore[arg-type]
    assert outcome.memory is not None
    return outcome.memory


def test_it_works_as_soon_as_what_was_wrong_is_right(new_service: NewService, tmp_path: Path) -> None:
    file = tmp_path / "passphrase"
    service = new_service(passphrase=None, passphrase_file=file)
    with pytest.raises(PassphraseMissing):
        service.search("tea")
    assert service.status().problem is not None and not service.status().unlocked
    file.write_text(PASSPHRASE)
    add(service, "likes tea")
    other = new_service(passphrase=None, passphrase_file=file)
    file.write_text("wrong passphrase")
    with pytest.raises(WrongPassphrase):
        other.search("tea")
    file.write_text(PASSPHRASE)
    assert other.search("tea").ranking.total == 1


def test_every_search_list_and_context_sees_what_another_process_wrote(new_service: NewService) -> None:
    one, two = new_service(), new_service()
    two.open()
    memory = add(one, "likes green tea")
    assert two.search("tea").ranking.total == 1
    assert two.list().total == 1
    assert two.context().total == 1
    assert two.get(memory.id).memory == memory
    one.forget(memory.id)
    assert two.search("tea").ranking.total == 0
    assert two.list().total == 0
    with pytest.raises(NotFound):
        two.get(memory.id)


def test_a_corrected_fact_is_found_by_its_new_words_and_its_old_ones_are_history(service: MemoryService) -> None:
    memory = add(service, "works at Acme as a welder")
    service.correct(memory.id, Changes(text="works at Initech as a welder"))
    assert service.search("Acme").ranking.total == 0
    hit = service.search("who works as a welder at Acme").ranking.hits[0]
    assert hit.memory.text == "works at Initech as a welder"
    found = service.get(memory.id, history=True)
    assert [old.text for old in found.history or []] == ["works at Acme as a welder"]
    assert service.get(memory.id).history is None


def test_a_save_names_what_is_similar_but_neither_itself_nor_the_unlike(service: MemoryService) -> None:
    first = add(service, "router is 10.0.7.1")
    add(service, "likes tea")
    saved = service.save(Draft("router is 10.0.9.1"))
    assert saved.outcome.status == "saved"
    assert [hit.memory.id for hit in saved.similar] == [first.id]
    again = service.save(Draft("router is 10.0.9.1"))
    assert again.outcome.status == "already_present"
    assert all(hit.memory.id != again.outcome.memory.id for hit in again.similar)  # type: ignore[union-attr]


def test_an_old_exact_match_is_not_hidden_by_age(service: MemoryService, clock: Clock) -> None:
    old = add(service, "the alarm code of the garage is 4471", category="event")
    clock.move(days=730)
    for number in range(20):
        add(service, f"the garage was swept, round {number}")
    assert service.search("alarm code garage").ranking.hits[0].memory.id == old.id


def test_a_clock_that_went_back_gives_no_negative_age(service: MemoryService, clock: Clock) -> None:
    memory = add(service, "likes tea", category="task")
    clock.move(days=-3650)
    assert service.search("tea").ranking.hits[0].memory.id == memory.id


def test_a_nonsense_query_says_how_many_were_searched(service: MemoryService) -> None:
    add(service, "likes tea")
    ranking = service.search("xylophone quux").ranking
    assert (ranking.total, ranking.searched, ranking.hits) == (0, 1, ())


def test_after_a_passphrase_change_elsewhere_reads_are_stale_and_writes_refused(
    new_service: NewService, open_vault: OpenVault
) -> None:
    current = [PASSPHRASE]
    service = new_service(unlock=Unlocker(lambda: current[0]))
    memory = add(service, "likes tea")
    other = open_vault()
    other.change_passphrase("a completely new passphrase")
    other.save(Draft("unseen"))
    answer = service.search("tea")
    assert answer.freshness.stale and answer.freshness.as_of is not None and "passphrase" in answer.freshness.note
    assert answer.ranking.hits[0].memory == memory
    for write in (
        lambda: service.save(Draft("x")),
        lambda: service.correct(memory.id, Changes(text="x")),
        lambda: service.forget(memory.id),
    ):
        with pytest.raises(KeysChanged):
            write()
    status = service.status()
    assert status.unlocked and status.problem is not None
    current[0] = "a completely new passphrase"
    assert not service.search("unseen").freshness.stale


def test_context_puts_instructions_and_profile_first_and_counts_what_it_leaves_out(
    service: MemoryService, clock: Clock
) -> None:
    for number in range(6):
        for category in ("fact", "preference", "project", "task", "profile", "instruction", "recipe"):
            add(service, f"{category} number {number}", category=category)
            clock.move(minutes=1)
    context = service.context(limit=20)
    shown = [memory for _, memories in context.groups for memory in memories]
    assert [name for name, _ in context.groups][:5] == ["instruction", "profile", "preference", "project", "task"]
    assert len(shown) == 20
    sizes = {name: len(memories) for name, memories in context.groups}
    assert sizes == {"instruction": 6, "profile": 6, "preference": 2, "project": 2, "task": 2, "fact": 1, "recipe": 1}
    assert context.omitted == {"preference": 4, "project": 4, "task": 4, "fact": 5, "recipe": 5}
    assert context.total == 42
    assert dict(context.groups)["preference"][0].text == "preference number 5"


def test_context_on_a_topic_shows_what_matches_it_before_the_rest(service: MemoryService, clock: Clock) -> None:
    wanted = add(service, "the heat pump is serviced in May", category="recipe")
    for number in range(30):
        add(service, f"note {number}", category="preference")
    groups = dict(service.context("heat pump", limit=3).groups)
    assert groups["recipe"] == [wanted]


def test_today_is_the_users_own_day(new_service: NewService, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    clock.now = datetime(2026, 4, 5, 11, 30, tzinfo=UTC)
    try:
        monkeypatch.setenv("TZ", "Pacific/Apia")  # UTC+13
        time.tzset()
        assert new_service().context().today.isoformat() == "2026-04-06"
        monkeypatch.setenv("TZ", "Pacific/Pago_Pago")  # UTC-11
        time.tzset()
        assert new_service().context().today.isoformat() == "2026-04-05"
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("order", ["newest", "oldest"])
def test_pages_neither_skip_nor_repeat_while_others_write(service: MemoryService, clock: Clock, order: str) -> None:
    made = []
    for number in range(25):
        made.append(add(service, f"memory {number}").id)
        if number % 3:
            clock.move(seconds=1)
    seen: list[str] = []
    cursor = None
    while True:
        page: Page = service.list(limit=4, cursor=cursor, order=order)  # type: ignore[arg-type]
        seen += [memory.id for memory in page.memories]
        if page.next_cursor is None:
            break
        cursor = page.next_cursor
        clock.move(seconds=1)
        service.correct(seen[0], Changes(text=f"changed while at {len(seen)}"))
        if order == "newest":
            add(service, f"new while at {len(seen)}")
    assert sorted(seen) == sorted(made)


@pytest.mark.parametrize("cursor", ["x", "=", "bmV3ZXN0", "\udcff", "n" * 100_000, "bmV3ZXN0IGEgYg=="])
def test_a_cursor_that_is_none_is_named(service: MemoryService, cursor: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        service.list(cursor=cursor)
    assert caught.value.field == "cursor"


def test_lists_are_filtered_and_counted(service: MemoryService, clock: Clock) -> None:
    add(service, "one", entity="Mira", tags=("a", "b"))
    clock.move(days=2)
    add(service, "two", entity="mira", category="task", tags=("a",))
    assert service.list(filters=Filters(entity="MIRA")).total == 2
    assert [m.text for m in service.list(filters=Filters(tags=("A", "b"))).memories] == ["one"]
    assert [m.text for m in service.list(filters=Filters(category="Task")).memories] == ["two"]
    since = clock.now - timedelta(days=1)
    assert [m.text for m in service.list(filters=Filters(since=since)).memories] == ["two"]
    assert [m.text for m in service.list(filters=Filters(until=since)).memories] == ["one"]


@pytest.mark.parametrize(("limit", "shown"), [(-5, 1), (0, 1), (1, 1), (10**6, 50)])
def test_limits_are_clamped(service: MemoryService, limit: int, shown: int) -> None:
    for number in range(60):
        add(service, f"memory {number}")
    assert len(service.list(limit=limit).memories) == shown
    assert len(service.search("memory", limit=limit).ranking.hits) == shown


def test_a_damaged_memory_is_named_and_the_rest_goes_on(
    new_service: NewService, monkeypatch: pytest.MonkeyPatch
) -> None:
    from squirrel_mcp import vault as vault_module

    service = new_service()
    add(service, "good")
    real = vault_module.to_json
    monkeypatch.setattr(vault_module, "to_json", lambda memory: real(memory).replace(b'"v":1', b'"v":2'))
    bad = service.save(Draft("bad")).outcome.memory
    monkeypatch.undo()
    assert bad is not None
    fresh = new_service()
    assert fresh.search("good").ranking.total == 1
    with pytest.raises(RecordDamaged):
        fresh.get(bad.id)
    assert fresh.status().damaged == [bad.id]
    assert fresh.forget(bad.id).status == "forgotten"
    assert fresh.status().damaged == []


def test_status_tells_counts_recovery_and_export(service: MemoryService) -> None:
    add(service, "one")
    add(service, "two", category="task")
    status = service.status()
    assert status.counts == {"fact": 1, "task": 1} and status.total == 2
    assert (status.recovery_code, status.last_export) == (False, None)
    with service.vault() as vault:
        vault.set_recovery(bytes(20))
    service.note_export()
    status = service.status()
    assert status.recovery_code and status.last_export is not None
    assert status.fingerprint.startswith("4:")


def test_after_closing_a_call_says_so(service: MemoryService) -> None:
    add(service, "one")
    service.close()
    with pytest.raises(StoreUnavailable):
        service.search("one")


def test_threads_share_one_service(service: MemoryService) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: add(service, f"from thread {number}"), range(40)))
    assert service.search("thread", limit=50).ranking.total == 40
