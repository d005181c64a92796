"""Both legs together against each alone, on the real model and questions about this repository's own docs."""

from __future__ import annotations

from tests.real_model import real_model
from tests.sqmd.recall.measure import measure


def test_both_legs_together_rank_the_answer_higher_than_the_better_one() -> None:
    with real_model():  # skipped without one, where CI is not set
        found = measure()
    words, vectors, both = found["fts"], found["vector"], found["hybrid"]
    assert both.mrr >= max(words.mrr, vectors.mrr) and both.first >= max(words.first, vectors.first)
    assert both.five >= 0.7
