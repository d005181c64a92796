"""Dates and times as people and agents write them, read in the user's zone."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta

from squirrel_mcp.errors import InvalidInput


def read(name: str, value: str | None, *, end: bool = False) -> datetime | None:
    """A date or a time, in the user's zone where it names none. A date is its first moment, or with `end` its last.

    None for what is absent or blank; InvalidInput, which calls the value by `name` and does not quote it, for what is
    neither.
    """
    if value is None or not value.strip():
        return None
    try:
        return _moment(value.strip().upper(), end)
    except (ValueError, OverflowError, OSError):
        pass
    raise InvalidInput(name, f"{name} must be a date (2026-03-01) or a time (2026-03-01T09:30:00Z)")


def _moment(value: str, end: bool) -> datetime:
    try:
        day = date.fromisoformat(value)
    except ValueError:
        moment = datetime.fromisoformat(value)
        return _utc(moment) if moment.tzinfo is None else moment.astimezone(UTC)
    if not end:
        return _utc(datetime.combine(day, time.min))
    if day == date.max:
        return _utc(datetime.max)
    # The moment before the next day begins: days on which the clocks change are not 24 hours long.
    return _utc(datetime.combine(day + timedelta(days=1), time.min)) - timedelta(milliseconds=1)


def _utc(local: datetime) -> datetime:
    """In UTC; where the calendar begins or ends before the moment does in UTC, the time is taken as UTC already."""
    try:
        return local.astimezone(UTC)
    except (OverflowError, ValueError, OSError):
        return local.replace(tzinfo=UTC)
