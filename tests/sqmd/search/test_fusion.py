"""Reciprocal rank fusion: a rule of arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqmd.search.fusion import fuse

LEG = st.lists(st.sampled_from("abcdefgh"), unique=True)


def test_the_sum_with_numbers_worked_out_by_hand() -> None:
    assert fuse([["a", "b"], ["b", "c"]], 60) == [
        ("b", pytest.approx(1 / 62 + 1 / 61)),
        ("a", pytest.approx(1 / 61)),
        ("c", pytest.approx(1 / 62)),
    ]


def test_ties_go_by_id() -> None:
    assert [chunk_id for chunk_id, _ in fuse([["b"], ["a"]], 60)] == ["a", "b"]


@given(LEG, LEG, st.integers(1, 1000))
def test_what_is_not_worse_in_any_leg_and_better_in_one_comes_first(left: list[str], right: list[str], k: int) -> None:
    fused = [chunk_id for chunk_id, _ in fuse([left, right], k)]
    assert sorted(fused) == sorted({*left, *right})
    rank = {each: [leg.index(each) if each in leg else 99 for leg in (left, right)] for each in fused}
    for one in fused:
        for other in fused:
            if rank[one] != rank[other] and all(a <= b for a, b in zip(rank[one], rank[other], strict=True)):
                assert fused.index(one) < fused.index(other)


@given(LEG, st.integers(1, 1000))
def test_one_leg_alone_keeps_its_order(leg: list[str], k: int) -> None:
    assert [chunk_id for chunk_id, _ in fuse([leg], k)] == leg
