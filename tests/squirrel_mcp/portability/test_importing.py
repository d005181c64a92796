"""Into a vault: repeatable, continuable, nothing overwritten, nothing revived."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from io import BytesIO
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squirrel_mcp.errors import StoreUnavailable
from squirrel_mcp.memory import Changes, Draft, Memory
from squirrel_mcp.portability import importing, plain_file
from squirrel_mcp.portability.account_log import open_export, take
from squirrel_mcp.portability.incoming import Incoming
from squirrel_mcp.portability.sealed_file import decode, encode
from squirrel_mcp.vault import Vault

from ..conftest import PASSPHRASE
from .conftest import OpenNamed, StoreOf

Export = Callable[[str, Vault], Incoming]


@pytest.fixture(params=["sealed", "plain"])
def through_a_file(request: pytest.FixtureRequest, store_of: StoreOf) -> Export:
    """What an import reads of an export of the vault, in both forms."""

    def export(name: str, vault: Vault) -> Incoming:
        taken = take(store_of(name), vault)
        if request.param == "sealed":
            return open_export(decode(encode(taken.export)), vault.ring)
        revisions = (memory for each in taken.content.revisions.values() for memory in each)
        found = plain_file.read(BytesIO(b"".join(plain_file.encode(revisions))), now=datetime.now(UTC))
        assert found.bad == []
        return found.incoming

    return export


def _save(vault: Vault, text: str, **fields: object) -> str:
    memory = vault.save(Draft(text, **fields)).memory  # type: ignore[arg-type]
    assert memory is not None
    return memory.id


def _everything(vault: Vault) -> dict[str, list[Memory]]:
    return {memory.id: [*reversed(vault.history(memory.id)), memory] for memory in vault.memories}


def _import(vault: Vault, incoming: Incoming) -> importing.Plan:
    return importing.carry_out(vault, importing.plan(vault, incoming))


def test_into_a_new_vault_twice_gives_the_same_ids_tags_dates_and_history_and_no_doubles(
    open_named: OpenNamed, through_a_file: Export
) -> None:
    source = open_named("source")
    first = _save(source, "The router is 10.0.7.1", entity="router", tags=("network",), source="the lid")
    _save(source, "Zoë likes tea ☕", keywords=("drink",))
    source.correct(first, Changes(text="The router is 10.0.9.1", reason="replaced"))
    source.rotate(PASSPHRASE, None)
    source.correct(first, Changes(tags=("network", "home")))
    before = _everything(source)
    incoming = through_a_file("source", source)

    target = open_named("target", "the passphrase of another vault")
    assert len(_import(target, incoming).ids("new")) == 2
    assert _everything(target) == before
    head = target.head
    assert len(_import(target, incoming).ids("present")) == 2
    assert (_everything(target), target.head) == (before, head)
    assert _everything(open_named("target", "the passphrase of another vault")) == before


def test_into_the_vault_it_came_from_changes_nothing(open_named: OpenNamed, through_a_file: Export) -> None:
    vault = open_named("a")
    vault.correct(_save(vault, "one"), Changes(text="two"))
    head = vault.head
    assert len(_import(vault, through_a_file("a", vault)).ids("present")) == 1
    assert vault.head == head


def test_an_interrupted_import_goes_on_where_it_stopped(open_named: OpenNamed, through_a_file: Export) -> None:
    source = open_named("source")
    ids = [_save(source, f"memory {n}") for n in range(4)]
    source.correct(ids[1], Changes(text="corrected"))
    source.correct(ids[1], Changes(text="corrected again"))
    incoming = through_a_file("source", source)
    target = open_named("target")
    part = importing.plan(target, incoming)
    # Stopped between the revisions of one memory.
    at = next(n for n, memory in enumerate(part.writes) if (memory.id, memory.revision) == (ids[1], 2))
    target.put_revisions(part.writes[:at])
    after = _import(target, incoming)
    assert after.fates[ids[0]] == "present" and after.fates[ids[1]] == "extended" and after.fates[ids[3]] == "new"
    assert _everything(target) == _everything(source)


def test_a_failure_on_the_way_leaves_whole_revisions(
    open_named: OpenNamed, through_a_file: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = open_named("source")
    for n in range(5):
        _save(source, f"memory {n}")
    incoming = through_a_file("source", source)
    target = open_named("target")
    monkeypatch.setattr(importing, "_STEP", 2)
    told: list[int] = []

    def fail_later(done: int) -> None:
        told.append(done)
        if done >= 4:
            raise StoreUnavailable("gone")

    with pytest.raises(StoreUnavailable):
        importing.carry_out(target, importing.plan(target, incoming), fail_later)
    assert told == [2, 4] and len(target.memories) == 4
    assert len(_import(target, incoming).ids("new")) == 1
    assert _everything(target) == _everything(source)


def test_what_was_forgotten_here_stays_forgotten_and_is_counted(open_named: OpenNamed, through_a_file: Export) -> None:
    vault = open_named("a")
    kept, gone = _save(vault, "kept"), _save(vault, "gone")
    incoming = through_a_file("a", vault)
    vault.forget(gone)
    done = _import(vault, incoming)
    assert done.ids("forgotten") == [gone] and done.ids("present") == [kept]
    assert vault.memories.get(gone) is None


def test_what_was_forgotten_there_is_not_imported(open_named: OpenNamed, through_a_file: Export) -> None:
    source = open_named("source")
    gone = _save(source, "gone")
    source.forget(gone)
    target = open_named("target")
    assert _import(target, through_a_file("source", source)).fates == {}
    assert len(target.memories) == 0


def test_a_later_correction_here_is_kept(open_named: OpenNamed, through_a_file: Export) -> None:
    vault = open_named("a")
    memory_id = _save(vault, "one")
    incoming = through_a_file("a", vault)
    vault.correct(memory_id, Changes(text="two"))
    assert _import(vault, incoming).fates == {memory_id: "present"}
    assert vault.memories.get(memory_id).text == "two"  # type: ignore[union-attr]


def test_revisions_that_differ_are_a_conflict_and_nothing_is_overwritten(
    open_named: OpenNamed, through_a_file: Export
) -> None:
    source = open_named("source")
    memory_id = _save(source, "one")
    target = open_named("target")
    _import(target, through_a_file("source", source))
    source.correct(memory_id, Changes(text="their correction"))
    target.correct(memory_id, Changes(text="our correction"))
    before = _everything(target)
    assert _import(target, through_a_file("source", source)).fates == {memory_id: "conflict"}
    assert _everything(target) == before


def test_somebody_who_writes_in_between_is_not_overwritten(open_named: OpenNamed) -> None:
    source = open_named("source")
    first, second = _save(source, "one"), _save(source, "two")
    incoming = Incoming(revisions=_everything(source))
    ours, theirs = open_named("target"), open_named("target")
    planned = importing.plan(ours, incoming)
    theirs.put_revisions([replace(incoming.revisions[first][0], text="their one"), incoming.revisions[second][0]])
    theirs.forget(second)
    assert importing.carry_out(ours, planned).fates == {first: "conflict", second: "forgotten"}
    assert ours.memories.get(first).text == "their one"  # type: ignore[union-attr]


def test_a_revision_that_does_not_open_is_left_out_and_later_ones_move_up(open_named: OpenNamed) -> None:
    source = open_named("source")
    memory_id = _save(source, "one")
    for text in ("two", "three"):
        source.correct(memory_id, Changes(text=text))
    one, _, three = _everything(source)[memory_id]
    incoming = Incoming(revisions={memory_id: [one, three]}, damaged=[memory_id])
    target = open_named("target")
    _import(target, incoming)
    assert [memory.text for memory in _everything(target)[memory_id]] == ["one", "three"]
    assert _import(target, incoming).fates == {memory_id: "present"}
    assert _import(source, incoming).fates == {memory_id: "present"}


def test_lines_without_id_are_compared_by_what_they_say(open_named: OpenNamed) -> None:
    vault = open_named("a")
    _save(vault, "likes tea", entity="Zoë")
    lines = [b'{"text": "likes  tea", "entity": "Zoe\xcc\x88"}', b'{"text": "likes tea"}', b'{"text": "likes tea "}']

    def incoming() -> Incoming:
        return plain_file.read(BytesIO(b"\n".join(lines)), now=datetime.now(UTC)).incoming

    done = _import(vault, incoming())
    assert (len(done.ids("present")), len(done.ids("new"))) == (2, 1)
    assert len(_import(vault, incoming()).ids("present")) == 3
    assert len(vault.memories) == 2


def test_a_plan_without_vault_takes_everything_for_new() -> None:
    incoming = plain_file.read(BytesIO(b'{"text": "a"}\n{"text": "a"}\n{"text": "b"}'), now=datetime.now(UTC)).incoming
    planned = importing.plan(None, incoming)
    assert (len(planned.ids("new")), len(planned.ids("present")), len(planned.writes)) == (2, 1, 2)


@settings(max_examples=settings().max_examples * 3 // 20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_beginning_of_a_history_is_completed(open_named: OpenNamed, data: st.DataObject) -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    memory_id = uuid4().hex  # another one for each example: they share the vault
    texts = data.draw(st.lists(st.sampled_from("abc"), min_size=1, max_size=5))
    history = [Memory(memory_id, text, at, at.replace(second=n), revision=n + 1) for n, text in enumerate(texts)]
    known = data.draw(st.integers(0, len(history)))
    vault = open_named("a")
    vault.put_revisions(history[:known])
    _import(vault, Incoming(revisions={memory_id: history}))
    assert _everything(vault)[memory_id] == history
