from __future__ import annotations

from datetime import datetime, timedelta, timezone

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.search.recency import DECAYS, Ages
from tests.squirrel_mcp.search.samples import NOW, weight


def weighed(category: str, updated_at: datetime, now: datetime = NOW) -> float:
    ages = Ages()
    ages.put(0, category, updated_at)
    return float(ages.weights(np.arange(1), now)[0])


@pytest.mark.parametrize(
    ("category", "days", "w"),
    [
        ("profile", 10_000, 1.0),
        ("instruction", 10_000, 1.0),
        ("preference", 730, 0.85),
        ("fact", 365, 0.85),
        ("fact", 730, 0.775),
        ("project", 180, 0.85),
        ("event", 90, 0.75),
        ("task", 30, 0.65),
        ("task", 60, 0.475),
        ("recipe", 365, 0.85),
        ("Task", 30, 0.65),
        ("", 365, 0.85),
        ("task", 0, 1.0),
    ],
)
def test_w_falls_halfway_to_its_floor_in_a_half_life(category: str, days: int, w: float) -> None:
    assert weighed(category, NOW - timedelta(days=days)) == pytest.approx(w, rel=1e-12)


def test_a_memory_stamped_in_the_future_is_new() -> None:
    assert weighed("task", NOW + timedelta(days=400)) == 1.0


def test_zones_do_not_matter() -> None:
    far = timezone(timedelta(hours=13))
    assert weighed("task", (NOW - timedelta(days=30)).astimezone(far)) == pytest.approx(0.65)


moments = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda moment: moment.replace(tzinfo=NOW.tzinfo))


@given(st.lists(st.tuples(st.sampled_from([*DECAYS, "recipe"]), moments), min_size=1), moments)
def test_w_of_many_is_that_of_each_and_stays_between_floor_and_one(
    stamped: list[tuple[str, datetime]], now: datetime
) -> None:
    ages = Ages()
    for slot, (category, moment) in enumerate(stamped):
        ages.put(slot, category, moment)
    found = ages.weights(np.arange(len(stamped)), now)
    assert found.tolist() == pytest.approx([weight(category, moment, now) for category, moment in stamped], rel=1e-12)
    assert all(
        DECAYS.get(category, DECAYS["fact"]).floor <= w <= 1 for (category, _), w in zip(stamped, found, strict=True)
    )


@given(st.lists(moments, min_size=1), moments, moments)
def test_bounds_in_time_are_inclusive(stamped: list[datetime], since: datetime, until: datetime) -> None:
    ages = Ages()
    for slot, moment in enumerate(stamped):
        ages.put(slot, "fact", moment)
    for first, last in ((since, until), (stamped[0], stamped[0]), (None, until), (since, None), (None, None)):
        expected = [(first is None or moment >= first) and (last is None or moment <= last) for moment in stamped]
        assert ages.within(first, last).tolist() == expected
