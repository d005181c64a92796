"""What a writer does who lost a race for the head of a log."""

from __future__ import annotations

import random

_MOST_SECONDS = 2.0
_DOUBLINGS = 5


def pause(lost: int, seconds: float) -> float:
    """How many seconds to wait before the log is read again: a random time, longer with each race lost in a row.

    If all who lost came back at once, all but one of them would lose again, and n writers would send about n requests
    for each write. lost: how many races, from 1. seconds: what the last try took, the measure of how far apart two
    tries have to be.
    """
    return random.uniform(0, min(_MOST_SECONDS, seconds * 2 ** min(lost - 1, _DOUBLINGS)))
