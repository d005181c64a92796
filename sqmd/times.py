"""Times as they are written in replies."""

from __future__ import annotations

from datetime import UTC, datetime


def written(seconds: float) -> str:
    """Seconds since 1970 as RFC 3339 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
