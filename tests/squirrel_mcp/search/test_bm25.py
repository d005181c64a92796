from __future__ import annotations

import math
from array import array
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rank_bm25 import BM25Okapi

from squirrel_mcp.search.bm25 import PostingsBM25

TERMS = "tea cat run hole x".split()
documents = st.tuples(
    st.dictionaries(st.sampled_from(TERMS), st.sampled_from([1.0, 2.0, 0.5, 1.5, -0.5, -1.0, 7.0]), max_size=5),
    st.integers(1, 40),
)
vaults = st.lists(documents, min_size=1, max_size=12)
asked = st.lists(st.sampled_from([*TERMS, "unheard"]), max_size=6)


def library_scores(held: Sequence[tuple[Mapping[str, float], int]], query: list[str]) -> list[float]:
    """What the library's own `get_scores` makes of the same documents, with the idf of the ranking rules."""
    count = len(held)
    holders = {term: sum(term in weights for weights, _ in held) for term in TERMS}
    plain = SimpleNamespace(
        corpus_size=count,
        doc_freqs=[{term: abs(weight) for term, weight in weights.items()} for weights, _ in held],
        doc_len=[length for _, length in held],
        avgdl=sum(length for _, length in held) / count,
        idf={term: math.log(1 + (count - df + 0.5) / (df + 0.5)) for term, df in holders.items()},
        k1=1.2,
        b=0.75,
    )
    scores: list[float] = BM25Okapi.get_scores(plain, query).tolist()
    return scores


def laid_out(
    held: Sequence[tuple[Mapping[str, float], int]], first: int = 0
) -> tuple[list[int], list[tuple[str, bytes, bytes]]]:
    """Documents as `add_many` takes them."""
    rows = [
        (term, [(slot, weights[term]) for slot, (weights, _) in enumerate(held, first) if term in weights])
        for term in TERMS
    ]
    return [length for _, length in held], [
        (term, array("I", [slot for slot, _ in row]).tobytes(), array("f", [weight for _, weight in row]).tobytes())
        for term, row in rows
        if row
    ]


@given(vaults, asked)
def test_scores_are_those_of_the_library_fractions_included(
    held: list[tuple[dict[str, float], int]], query: list[str]
) -> None:
    engine = PostingsBM25()
    for slot, (weights, length) in enumerate(held):
        engine.add(slot, weights, length)
    assert engine.get_scores(query).tolist() == pytest.approx(library_scores(held, query), rel=1e-12)


@given(vaults, asked)
def test_many_at_once_are_the_same_as_one_by_one(held: list[tuple[dict[str, float], int]], query: list[str]) -> None:
    one_by_one, at_once = PostingsBM25(), PostingsBM25()
    new = [term for slot, (weights, length) in enumerate(held) for term in one_by_one.add(slot, weights, length)]
    half = len(held) // 2
    assert sorted(at_once.add_many(*laid_out(held[:half])) + at_once.add_many(*laid_out(held[half:], half))) == sorted(
        new
    )
    assert at_once.get_scores(query).tolist() == one_by_one.get_scores(query).tolist()


@given(vaults, st.lists(st.tuples(st.integers(0, 11), st.none() | documents), max_size=12), asked)
def test_documents_that_went_leave_nothing_behind(
    held: list[tuple[dict[str, float], int]],
    changes: list[tuple[int, tuple[dict[str, float], int] | None]],
    query: list[str],
) -> None:
    engine = PostingsBM25()
    engine.add_many(*laid_out(held))
    slots: dict[int, tuple[dict[str, float], int]] = dict(enumerate(held))
    for slot, document in changes:
        if slot >= len(held):
            continue
        if slot in slots:
            engine.remove(slot, slots.pop(slot)[0])
        if document is not None:
            engine.add(slot, *document)
            slots[slot] = document
    scores = engine.get_scores(query)
    kept = sorted(slots)
    if kept:
        expected = library_scores([slots[slot] for slot in kept], query)
        assert engine.get_batch_scores(query, kept) == pytest.approx(expected, rel=1e-12)
    assert not scores[[slot for slot in range(len(held)) if slot not in slots]].any()
    assert {term for term in TERMS if term in engine} == {term for weights, _ in slots.values() for term in weights}


def test_an_engine_needs_no_corpus() -> None:
    engine = PostingsBM25()
    assert isinstance(engine, BM25Okapi)
    assert engine.get_scores(["tea"]).tolist() == []


@pytest.mark.parametrize("count", [1, 2, 3, 100])
def test_a_term_that_everybody_holds_scores_above_zero(count: int) -> None:
    engine = PostingsBM25()
    engine.add_many(*laid_out([({"tea": 1.0}, 1)] * count))
    assert (engine.get_scores(["tea"]) > 0).all()


def test_the_sign_of_a_weight_is_kept_for_the_caller() -> None:
    engine = PostingsBM25()
    engine.add(0, {"hole": -0.5}, 3)
    engine.add(1, {"hole": 1.5}, 3)
    slots, weights = engine.postings("hole")
    assert (slots.tolist(), weights.tolist()) == ([0, 1], [-0.5, 1.5])
    assert np.array_equal(engine.get_scores(["hole"]) > 0, [True, True])
