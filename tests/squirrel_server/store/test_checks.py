"""The pure checks: a batch is worth exactly what its entries are worth one after the other."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st

from squirrel_server.store import Head, StoreError
from squirrel_server.store.checks import MemoryState, Posted, check_batch, read_batch
from tests.squirrel_server.store.builder import Client, make_object

MEMORIES = [bytes([number]) * 16 for number in range(3)]
OBJECTS = [make_object() for _ in range(12)]
# Few memories, revisions and objects, so that most draws run into a rule and many do not.
STEPS = st.lists(
    st.tuples(st.sampled_from(MEMORIES), st.integers(1, 4), st.none() | st.sampled_from(OBJECTS)),
    min_size=1,
    max_size=6,
)


def _post(steps: list[tuple[bytes, int, bytes | None]]) -> list[Posted]:
    client = Client()
    return read_batch(
        [
            client.put(memory_id, revision, body) if body else client.forget(memory_id, revision)
            for memory_id, revision, body in steps
        ]
    )


def _verdict(batch: list[Posted], head: Head, memories: dict[bytes, MemoryState]) -> dict[bytes, MemoryState] | str:
    try:
        return check_batch(batch, head, memories)
    except StoreError as error:
        return error.code


@given(STEPS)
def test_a_batch_is_judged_like_its_entries_one_by_one(
    steps: list[tuple[bytes, int, bytes | None]],
) -> None:
    bodies = [body for _, _, body in steps if body is not None]
    assume(len(bodies) == len(set(bodies)))  # an object of an earlier batch is the database's to know
    batch = _post(steps)
    head, memories = Head(0, bytes(32)), dict[bytes, MemoryState]()
    single: dict[bytes, MemoryState] | str = {}
    for posted in batch:
        outcome = _verdict([posted], head, memories)
        if isinstance(outcome, str):
            single = outcome
            break
        head = Head(posted.entry.seq, posted.entry.mac)
        memories |= outcome
        single = memories
    assert _verdict(batch, Head(0, bytes(32)), {}) == single


@given(STEPS)
def test_what_is_taken_keeps_the_rules_of_the_log(steps: list[tuple[bytes, int, bytes | None]]) -> None:
    if isinstance(_verdict(_post(steps), Head(0, bytes(32)), {}), str):
        return
    bodies = [body for _, _, body in steps if body is not None]
    assert len(bodies) == len(set(bodies))
    for memory_id in MEMORIES:
        own = [(revision, body) for found, revision, body in steps if found == memory_id]
        assert [revision for revision, _ in own] == list(range(1, len(own) + 1))
        assert all(body is not None for _, body in own[:-1]) and (not own or own[0][1] is not None)
