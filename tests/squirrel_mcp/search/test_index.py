"""Laws of the word index, held against a slow reading of the rules that shares only words and query parsing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace

import pytest
import snowballstemmer
from hypothesis import example, given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from squirrel_mcp.memory import Memory
from squirrel_mcp.search import Filters, Matches, WordIndex
from squirrel_mcp.search.query import parse
from squirrel_mcp.search.words import words
from tests.squirrel_mcp.search.samples import NOW, memories, memory, numbered, texts

Scores = dict[str, tuple[float, float]]
_porter2 = snowballstemmer.stemmer("english")


def indexed(held: Sequence[Memory]) -> WordIndex:
    index = WordIndex()
    index.put_many(held)
    return index


def scores(index: WordIndex, query: str) -> Scores:
    found: Matches = index.match(parse(query))
    rows = zip(found.slots.tolist(), found.lexical.tolist(), found.bm25.tolist(), strict=True)
    return {index.memory(slot).id: (lexical, bm25) for slot, lexical, bm25 in rows}


def held_words(memory: Memory) -> tuple[list[str], list[str]]:
    every = [word for field in (memory.entity, memory.text, *memory.tags, *memory.keywords) for word in words(field)]
    return [word.whole for word in every], [part for word in every for part in word.parts]


def are_forms(one: str, other: str) -> bool:
    plain = all(len(word) >= 3 and word.isascii() and word.isalpha() for word in (one, other))
    return plain and one != other and _porter2.stemWord(one) == _porter2.stemWord(other)


def slowly(held: Sequence[Memory], query: str) -> Scores:
    """The rules, read one by one: every word of the query against every word of every memory."""
    asked = parse(query).words
    vault = {memory.id: held_words(memory) for memory in {memory.id: memory for memory in held}.values()}

    def holds(term: str) -> list[tuple[float, float]]:
        rows = []
        for wholes, parts in vault.values():
            ways = [1.0 for word in wholes if word == term] + [0.5 for part in parts if part == term]
            ways += [0.9 for word in wholes if are_forms(word, term)] + [
                0.45 for part in parts if are_forms(part, term)
            ]
            rows.append((max(ways, default=0.0), sum(ways)))
        return rows

    def library(term: str) -> list[float]:
        frequencies = [frequency for _, frequency in holds(term)]
        holders = sum(frequency > 0 for frequency in frequencies)
        lengths = [len(wholes) for wholes, _ in vault.values()]
        plain = SimpleNamespace(
            corpus_size=len(vault),
            doc_freqs=[{term: frequency} for frequency in frequencies],
            doc_len=lengths,
            avgdl=sum(lengths) / len(vault) or 1.0,
            idf={term: math.log(1 + (len(vault) - holders + 0.5) / (holders + 0.5))},
            k1=1.2,
            b=0.75,
        )
        rows: list[float] = BM25Okapi.get_scores(plain, [term]).tolist()
        return rows

    lexical, bm25 = [0.0] * len(vault), [0.0] * len(vault)
    for word in asked:
        terms = [(word.whole, 1.0), *((part, 1 / len(word.parts)) for part in word.parts)]
        by_parts = [[held for held, _ in holds(part)] for part in word.parts]
        for i, (held_whole, _) in enumerate(holds(word.whole)):
            mean = sum(part[i] for part in by_parts) / len(word.parts) if word.parts else 0.0
            lexical[i] += max(held_whole, mean) / len(asked)
            bm25[i] += sum(weight * library(term)[i] for term, weight in terms)
    return {memory_id: (lexical[i], bm25[i]) for i, memory_id in enumerate(vault) if lexical[i] or bm25[i]}


@given(st.lists(memories, min_size=1, max_size=5), texts)
@example([memory("ab" * 16), memory("x", "ab" * 16)], "tea")
def test_scores_are_those_of_the_rules_read_one_by_one(held: list[Memory], query: str) -> None:
    found, expected = scores(indexed(held), query), slowly(held, query)
    assert found.keys() == expected.keys()
    for memory_id, pair in found.items():
        assert pair == pytest.approx(expected[memory_id], rel=1e-9)


@given(st.lists(memories, max_size=6), texts)
def test_both_scores_are_above_zero_together_and_the_lexical_one_is_at_most_one(held: list[Memory], query: str) -> None:
    for lexical, bm25 in scores(indexed(held), query).values():
        assert 0 < lexical <= 1
        assert bm25 > 0


@given(memories, st.lists(memories, max_size=5), texts)
def test_the_lexical_score_is_the_same_in_every_vault(one: Memory, others: list[Memory], query: str) -> None:
    alone = scores(indexed([one]), query)
    among = scores(indexed([*others, one]), query)
    assert alone.get(one.id, (0.0,))[0] == among.get(one.id, (0.0,))[0]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("put"), memories),
        st.tuples(st.just("put_many"), st.lists(memories, max_size=4)),
        st.tuples(st.just("remove"), st.integers(0, 7).map(numbered)),
    ),
    max_size=10,
)


@given(steps, texts)
def test_whatever_came_and_went_only_what_is_there_counts(steps: list[tuple[str, object]], query: str) -> None:
    index, there = WordIndex(), dict[str, Memory]()
    for _, value in steps:
        if isinstance(value, Memory):
            index.put(value)
            there[value.id] = value
        elif isinstance(value, str):
            index.remove(value)
            there.pop(value, None)
        elif isinstance(value, list):
            index.put_many(value)
            there |= {memory.id: memory for memory in value}
    fresh = WordIndex()
    for one in there.values():
        fresh.put(one)
    assert len(index) == len(there)
    # Slots differ, and with them nothing else: every document's numbers come from the same arithmetic.
    assert scores(index, query) == scores(fresh, query)
    for filters in (Filters(category="fact"), Filters(tags=("école",)), Filters(until=NOW), Filters(entity="MIRA")):
        assert in_scope(index, filters, there) == {m.id for m in there.values() if filters.matches(m)}


def in_scope(index: WordIndex, filters: Filters, there: dict[str, Memory]) -> set[str]:
    scope = index.scope(filters)
    assert scope is not None
    found = {index.memory(slot).id for slot in scope.nonzero()[0].tolist()}
    assert len(index) == len(there)
    return found


filters = st.builds(
    Filters,
    category=st.sampled_from([None, "FACT", "task", "nothing"]),
    entity=st.sampled_from([None, "mira", "", "nobody"]),
    tags=st.lists(st.sampled_from(["health", "École", "nothing"]), max_size=2).map(tuple),
    since=st.sampled_from([None, NOW.replace(month=1)]),
    until=st.sampled_from([None, NOW.replace(month=1), NOW]),
)


@given(st.lists(memories, max_size=8), filters)
def test_a_scope_is_what_the_filters_take_one_by_one(held: list[Memory], wanted: Filters) -> None:
    index = indexed(held)
    there = {memory.id: memory for memory in held}
    if wanted == Filters():
        assert index.scope(wanted) is None
    else:
        assert in_scope(index, wanted, there) == {m.id for m in there.values() if wanted.matches(m)}


def test_a_memory_is_found_by_its_id_and_its_words_stay_findable() -> None:
    index = indexed([memory("tea", numbered(0xA)), memory(f"see {numbered(0xA)}", numbered(0xB))])
    found = index.match(parse(numbered(0xA)))
    assert found.named is not None and index.memory(found.named).id == numbered(0xA)
    assert scores(index, numbered(0xA)).keys() == {numbered(0xA), numbered(0xB)}
    assert index.match(parse(numbered(0xC))).named is None
