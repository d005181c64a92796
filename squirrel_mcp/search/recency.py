"""How much age takes from a score (docs/ranking.md, section 2)."""

from __future__ import annotations

import math
from array import array
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from squirrel_mcp.memory import DEFAULT_CATEGORY
from squirrel_mcp.search.fold import label

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECONDS_A_DAY = 86_400_000_000


class Decay(NamedTuple):
    """`w` falls from 1 towards `floor`, half of the way in `half_life` days (infinite: never)."""

    half_life: float
    floor: float


DECAYS = {
    "profile": Decay(math.inf, 1.0),
    "instruction": Decay(math.inf, 1.0),
    "preference": Decay(730.0, 0.7),
    "fact": Decay(365.0, 0.7),
    "project": Decay(180.0, 0.7),
    "event": Decay(90.0, 0.5),
    "task": Decay(30.0, 0.3),
}
_CODES = {category: code for code, category in enumerate(DECAYS)}


def microseconds(moment: datetime) -> int:
    """Since 1970 in UTC, exactly; TypeError for a naive time."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


class Ages:
    """Category and time of the memories in an index, by slot, so that w is computed for many at once."""

    def __init__(self) -> None:
        self._updated = array("q")
        self._codes = array("B")
        self._table: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    def put(self, slot: int, category: str, updated_at: datetime) -> None:
        """Set a slot: one that exists, or the next."""
        code = _CODES.get(label(category), _CODES[DEFAULT_CATEGORY])
        if slot == len(self._codes):
            self._updated.append(microseconds(updated_at))
            self._codes.append(code)
        else:
            self._updated[slot] = microseconds(updated_at)
            self._codes[slot] = code

    def updated(self, slots: NDArray[np.intp]) -> NDArray[np.int64]:
        """updatedAt in microseconds since 1970, one for each of `slots`."""
        import numpy as np

        return np.frombuffer(self._updated, np.int64)[slots]

    def within(self, since: datetime | None, until: datetime | None) -> NDArray[np.bool_]:
        """For every slot whether updatedAt lies between the two, both included."""
        import numpy as np

        updated = np.frombuffer(self._updated, np.int64)
        inside = np.ones(len(updated), np.bool_)
        if since is not None:
            inside &= updated >= microseconds(since)
        if until is not None:
            inside &= updated <= microseconds(until)
        return inside

    def weights(self, slots: NDArray[np.intp], now: datetime) -> NDArray[np.float64]:
        """w = floor + (1 - floor) * 0.5 ** (age / half_life) of each of `slots`, in 0..1; `now` is aware.

        Unknown categories age like facts. A memory stamped in the future has age 0.
        """
        import numpy as np

        if self._table is None:
            self._table = (
                np.array([decay.half_life for decay in DECAYS.values()]),
                np.array([decay.floor for decay in DECAYS.values()]),
            )
        half_lives, floors = self._table
        codes = np.frombuffer(self._codes, np.uint8)[slots]
        age = np.maximum(0, microseconds(now) - self.updated(slots)) / _MICROSECONDS_A_DAY
        floor = floors[codes]
        found: NDArray[np.float64] = floor + (1.0 - floor) * 0.5 ** (age / half_lives[codes])
        return found
