"""The laws of the fused score (docs/ranking.md, section 3), for any words, cosines and ages."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp_embeddings.fusion import scores

from .fakes import MODEL

LEXICAL = st.floats(0, 1)
COSINE = st.floats(-1, 1)
WEIGHT = st.floats(0.3, 1)


def score(lexical: float, cosine: float, weight: float) -> float:
    return float(scores(np.array([lexical]), np.array([cosine]), np.array([weight]), MODEL)[0])


def test_the_formula_with_numbers_worked_out_by_hand() -> None:
    # cosine 0.6 is half of the way from 0.2 to 1.0
    assert np.isclose(score(0.5, 0.6, 1.0), (0.3 * 0.5 + 0.7 * 0.5) / 2)
    assert np.isclose(score(1.0, 0.6, 0.8), 0.5 + (0.3 + 0.7 * 0.5 * 0.8) / 2)


@given(LEXICAL, COSINE, WEIGHT)
def test_a_memory_that_holds_every_word_stands_above_all_others(lexical: float, cosine: float, weight: float) -> None:
    other = score(lexical, cosine, weight)
    assert 0 <= other <= 1
    assert score(1.0, -1.0, 0.3) >= 0.5
    if lexical < 1 - 1e-9:
        assert other < 0.5 or np.isclose(other, 0.5)
        assert score(1.0, -1.0, 0.3) > other


@given(LEXICAL, LEXICAL, COSINE, COSINE, WEIGHT)
def test_better_in_one_and_worse_in_none_never_scores_lower(
    lexical: float, other_lexical: float, cosine: float, other_cosine: float, weight: float
) -> None:
    low, high = sorted((lexical, other_lexical))
    near, nearer = sorted((cosine, other_cosine))
    assert score(high, nearer, weight) >= score(low, near, weight)


@given(LEXICAL, WEIGHT)
def test_without_a_vector_meaning_counts_nothing(lexical: float, weight: float) -> None:
    assert score(lexical, np.nan, weight) == score(lexical, -1.0, weight)
    if lexical < 1 - 1e-9:
        assert 2 * score(lexical, np.nan, weight) <= 0.3


@given(LEXICAL, COSINE, WEIGHT, WEIGHT)
def test_age_discounts_meaning_and_nothing_else(lexical: float, cosine: float, weight: float, other: float) -> None:
    old, young = sorted((weight, other))
    assert score(lexical, cosine, young) >= score(lexical, cosine, old)
    assert score(lexical, MODEL.semantic_from, young) == score(lexical, MODEL.semantic_from, old)
