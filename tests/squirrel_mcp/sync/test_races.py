"""Who lost a race for the head waits, but not for long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.sync.races import pause

SECONDS = st.floats(0, 100)


@given(SECONDS)
def test_after_one_lost_race_the_wait_is_no_longer_than_a_try(seconds: float) -> None:
    assert 0 <= pause(1, seconds) <= seconds


@given(st.integers(1, 1_000), SECONDS)
def test_however_many_races_were_lost_the_wait_is_two_seconds_at_most(lost: int, seconds: float) -> None:
    assert 0 <= pause(lost, seconds) <= 2


def test_more_lost_races_mean_longer_waits() -> None:
    first, fifth = (max(pause(lost, 0.01) for _ in range(1_000)) for lost in (1, 5))
    assert first <= 0.01 < fifth  # that a thousand draws all miss the upper fifteen sixteenths does not happen
