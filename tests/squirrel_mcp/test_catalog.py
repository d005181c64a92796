"""The catalogue answers like a plain search through all memories would."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.catalog import Catalog
from squirrel_mcp.memory import Memory

_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

memories = st.builds(
    lambda number, text, created, age, category, entity: Memory(
        id=f"{number:032x}",
        text=text,
        created_at=_EPOCH + timedelta(seconds=created),
        updated_at=_EPOCH + timedelta(seconds=created + age),
        category=category,
        entity=entity,
    ),
    st.integers(1, 30),
    st.sampled_from(["a", "a ", "b", "\u00e9", "e\u0301"]),
    st.integers(0, 5),
    st.integers(0, 5),
    st.sampled_from(["fact", "task"]),
    st.sampled_from(["", "Mira"]),
)
steps = st.lists(st.one_of(st.lists(memories, max_size=4), st.integers(1, 30)), max_size=12)


@given(steps)
def test_after_any_changes_it_answers_like_a_plain_dictionary(steps: list[list[Memory] | int]) -> None:
    catalog, plain = Catalog(), dict[str, Memory]()
    for step in steps:
        if isinstance(step, int):
            catalog.remove(f"{step:032x}")
            plain.pop(f"{step:032x}", None)
        else:
            unique = {memory.id: memory for memory in step}
            catalog.put_many(unique.values())
            plain.update(unique)
    assert {memory.id: memory for memory in catalog} == plain
    assert len(catalog) == len(plain)
    by_age = sorted(plain.values(), key=lambda m: (m.created_at, m.id))
    assert list(catalog.by_creation(newest_first=False)) == by_age
    assert list(catalog.by_creation(newest_first=True)) == by_age[::-1]
    if by_age:
        middle = by_age[len(by_age) // 2]
        key = (middle.created_at, middle.id)
        assert list(catalog.by_creation(newest_first=False, after=key)) == by_age[len(by_age) // 2 + 1 :]
        assert list(catalog.by_creation(newest_first=True, after=key)) == by_age[: len(by_age) // 2][::-1]
    for category in ("fact", "task"):
        those = [m for m in plain.values() if m.category == category]
        assert catalog.counts().get(category, 0) == len(those)
        assert list(catalog.latest(category)) == sorted(those, key=lambda m: (m.updated_at, m.id), reverse=True)
    for memory in plain.values():
        found = catalog.same(f" {memory.text}\n", memory.entity, memory.category)
        assert found is not None and found.category == memory.category
    assert catalog.same("never stored", "", "fact") is None


def test_many_at_once_are_the_same_as_one_by_one() -> None:
    many = [
        Memory(
            id=f"{n * 7919 % 1000:032x}",
            text=f"text {n % 40}",
            created_at=_EPOCH + timedelta(seconds=n * 31 % 17),
            updated_at=_EPOCH + timedelta(seconds=20 + n * 13 % 11),
            category=("fact", "task", "note")[n % 3],
        )
        for n in range(300)
    ]
    at_once, singly = Catalog(), Catalog()
    at_once.put_many(many[:50])
    at_once.put_many(many)
    for memory in many:
        singly.put_many([memory])
    assert list(at_once.by_creation(newest_first=True)) == list(singly.by_creation(newest_first=True))
    assert at_once.counts() == singly.counts() == {"fact": 100, "note": 100, "task": 100}
    for category in at_once.counts():
        assert list(at_once.latest(category)) == list(singly.latest(category))
