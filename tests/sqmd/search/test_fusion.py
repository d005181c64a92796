"""Reciprocal rank fusion: a rule of arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqmd.search.fusion import Leg, fuse

SCORES = st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-1, 30))
LEG = SCORES.map(lambda scores: sorted(scores.items(), key=lambda hit: (-hit[1], hit[0])))


def ids(fused: Leg) -> list[str]:
    return [chunk_id for chunk_id, _ in fused]


def strong(leg: Leg) -> set[str]:
    return {chunk_id for chunk_id, score in leg if score >= leg[0][1] / 2}


def test_the_sum_with_numbers_worked_out_by_hand() -> None:
    assert fuse([[("a", 8.0), ("b", 4.0)], [("b", 0.6), ("c", 0.3), ("d", 0.29)]], 60) == [
        ("b", pytest.approx(1 / 62 + 1 / 61)),
        ("a", pytest.approx(1 / 61)),
        ("c", pytest.approx(1 / 62)),
        ("d", pytest.approx(0.01 / 63)),
    ]


def test_ties_go_by_id() -> None:
    assert ids(fuse([[("b", 1.0)], [("a", 5.0)]], 60)) == ["a", "b"]


def test_what_one_leg_is_sure_of_comes_before_what_both_have_at_their_end() -> None:
    words = [("sure", 9.0), *((f"w{i}", 3.0) for i in range(10)), ("tail", 2.9)]
    meaning = [("other", 0.6), *((f"m{i}", 0.2) for i in range(10)), ("tail", 0.19)]
    assert ids(fuse([words, meaning], 60))[:3] == ["other", "sure", "tail"]


@given(LEG, LEG, st.integers(1, 1000))
def test_what_is_not_worse_in_any_leg_and_better_in_one_comes_first(left: Leg, right: Leg, k: int) -> None:
    fused = ids(fuse([left, right], k))
    assert sorted(fused) == sorted({*ids(left), *ids(right)})
    rank = {each: [ids(leg).index(each) if each in ids(leg) else 99 for leg in (left, right)] for each in fused}
    for one in fused:
        for other in fused:
            if rank[one] != rank[other] and all(a <= b for a, b in zip(rank[one], rank[other], strict=True)):
                assert fused.index(one) < fused.index(other)


@given(LEG, LEG)
def test_what_is_weak_wherever_it_is_comes_after_all_that_is_strong_somewhere(left: Leg, right: Leg) -> None:
    fused, best = ids(fuse([left, right], 60)), strong(left) | strong(right)
    assert set(fused[: len(best)]) == best


@given(LEG, st.integers(1, 1000))
def test_one_leg_alone_keeps_its_order_and_has_the_plain_sum(leg: Leg, k: int) -> None:
    assert fuse([leg], k) == [(chunk_id, 1 / (k + rank)) for rank, chunk_id in enumerate(ids(leg), 1)]
