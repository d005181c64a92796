"""Dates are days of the user's zone; what is none is refused by name."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from squirrel_mcp.errors import InvalidInput
from squirrel_mcp.moments import read


@pytest.mark.parametrize("value", [None, "", "  "])
def test_what_is_absent_or_blank_is_no_date(value: str | None) -> None:
    assert read("x", value) is None


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("zone", "value", "end", "moment"),
    [
        ("UTC", "2026-03-01", False, "2026-03-01T00:00:00.000"),
        ("UTC", "2026-03-01", True, "2026-03-01T23:59:59.999"),
        ("Pacific/Tongatapu", "2026-03-01", False, "2026-02-28T11:00:00.000"),  # UTC+13
        ("Pacific/Tongatapu", "2026-03-01", True, "2026-03-01T10:59:59.999"),
        ("Pacific/Tongatapu", "2026-03-01T10:00", False, "2026-02-28T21:00:00.000"),
        ("Pacific/Tongatapu", "2026-03-01T10:00:00Z", False, "2026-03-01T10:00:00.000"),
        ("Europe/Berlin", "2026-03-29", True, "2026-03-29T21:59:59.999"),  # 23 hours long
        ("Europe/Berlin", "2026-10-25", True, "2026-10-25T22:59:59.999"),  # 25 hours long
        ("UTC", " 2026-03-01t09:30:00z ", False, "2026-03-01T09:30:00.000"),
        ("UTC", "20260301", False, "2026-03-01T00:00:00.000"),
    ],
    indirect=["zone"],
)
@pytest.mark.usefixtures("zone")
def test_a_date_is_a_day_of_the_user(value: str, end: bool, moment: str) -> None:
    assert read("x", value, end=end) == datetime.fromisoformat(moment).replace(tzinfo=UTC)


@pytest.mark.parametrize("value", ["yesterday", "2026-13-01", "2026", "0001-01-01T00:00+23:00", "1767225600"])
def test_what_is_no_date_is_refused(value: str) -> None:
    with pytest.raises(InvalidInput, match=r"^x must be a date"):
        read("x", value)


ZONES = ["UTC", "America/New_York", "Pacific/Kiritimati"]


@pytest.mark.parametrize("zone", ZONES, indirect=True)
@pytest.mark.parametrize("first", ["0001-01-01", "0001-01-01T00:00", "0001-01-01T00:00:00Z"])
@pytest.mark.parametrize("last", ["9999-12-31", "9999-12-31T23:59:59.999Z"])
@pytest.mark.usefixtures("zone")
def test_the_first_and_the_last_day_there_are_hold_all_others(first: str, last: str) -> None:
    since, until = read("x", first), read("x", last, end=True)
    assert since is not None and until is not None
    assert since.year == 1 and until.year == 9999
    assert since <= datetime(1, 1, 2, tzinfo=UTC) and until >= datetime(9999, 12, 31, tzinfo=UTC)


@pytest.mark.parametrize("zone", ZONES, indirect=True)
@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("day", ["0001-01-01", "0001-01-02", "9999-12-30", "9999-12-31"])
@pytest.mark.usefixtures("zone")
def test_days_at_the_edges_are_read_in_every_zone(day: str, end: bool) -> None:
    assert read("x", day, end=end) is not None
