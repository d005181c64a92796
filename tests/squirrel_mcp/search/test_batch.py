from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.memory import Memory
from squirrel_mcp.search.batch import Batch
from squirrel_mcp.search.terms import terms_of
from tests.squirrel_mcp.search.samples import memories


@given(st.lists(memories, max_size=8), st.integers(0, 1000))
def test_a_batch_comes_to_the_terms_of_each_memory(held: list[Memory], first: int) -> None:
    batch = Batch()
    for memory in held:
        batch.add(memory)

    found: list[dict[str, float]] = [{} for _ in held]
    for term, slots, weights in batch.postings(first):
        numbers, values = array("I", bytes(slots)), array("f", bytes(weights))
        assert list(numbers) == sorted(set(numbers))
        for slot, weight in zip(numbers, values, strict=True):
            found[slot - first][term] = weight

    assert list(zip(found, batch.lengths(), strict=True)) == [terms_of(memory) for memory in held]
