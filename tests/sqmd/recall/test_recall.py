"""Both legs together against each alone, on the real model and questions about this repository's own docs."""

from __future__ import annotations

from tests.real_model import real_model
from tests.sqmd.recall.measure import Recall, measure


def test_both_legs_together_find_the_answer_as_often_as_the_better_one_and_rank_it_higher() -> None:
    with real_model():  # skipped without one, where CI is not set
        found = measure()
    words, vectors, both = found["fts"], found["vector"], found["hybrid"]
    for figure in Recall._fields:
        better = max(getattr(words, figure), getattr(vectors, figure))
        assert getattr(both, figure) >= better, figure
