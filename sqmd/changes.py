"""How changes below a folder become known: told by the system, or seen by looking through it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from sqmd.errors import SqmdError

if TYPE_CHECKING:
    from sqmd.config import Watcher as Settings

# (folder, with what is below it, until this is set) to the paths that changed since the last time, or none.
Native = Callable[[Path, bool, threading.Event], Iterator[set[Path]]]
Snapshot = dict[Path, tuple[int, int]]  # (mtime in nanoseconds, size)

_GRACE = 2.0  # seconds that an event may take to arrive
_TICK = 200  # milliseconds until the system's events are asked for again


def told_by_the_system(folder: Path, recursive: bool, stopped: threading.Event) -> Iterator[set[Path]]:
    """The paths that changed in `folder`, or none of them, several times a second."""
    import watchfiles

    for changes in watchfiles.watch(
        folder, watch_filter=None, debounce=_TICK, step=50, stop_event=stopped, rust_timeout=_TICK,
        yield_on_timeout=True, raise_interrupt=False, force_polling=False, recursive=recursive,
        ignore_permission_denied=True,
    ):  # fmt: skip
        yield {Path(path) for _, path in changes}


def looked_through(look: Callable[[], Snapshot], stopped: threading.Event, seconds: float) -> Iterator[set[Path]]:
    """The same by comparing: at once none, then what differs every so many seconds, or less often if it takes long."""
    before = look()
    yield set()
    wait = seconds
    while not stopped.wait(wait):
        began = time.monotonic()
        after = look()
        wait = max(seconds, 19 * (time.monotonic() - began))  # no more than a twentieth of one core
        yield _differing(before, after)
        before = after


def snapshot(root: Path, settings: Settings, anchor: Path | None) -> Snapshot:
    """The Markdown below `root` as it is now; nothing where it is gone."""
    from sqmd.ingest.scan import scan

    with suppress(SqmdError):
        found = scan(root, settings.extensions, settings.ignore_patterns, lambda *_: None, anchor=anchor)
        return {each.path: (each.mtime_ns, each.size) for each in found}
    return {}


class Check:
    """Whether changes are told: what differs from one look to the next must have been."""

    def __init__(self, snapshot: Snapshot, seconds: float) -> None:
        self._before, self._seconds = snapshot, seconds
        self._doubtful: set[Path] = set()
        self._next = time.monotonic() + seconds

    def is_due(self) -> bool:
        return time.monotonic() >= self._next

    def untold(self, now: Snapshot, told: set[Path]) -> set[Path]:
        """What changed, was not told before this look, and was not told within the grace after it."""
        lost = {path for path in self._doubtful if not _is_told(path, told)}
        changed = _differing(self._before, now)
        self._doubtful = {path for path in changed if not _is_told(path, told)}
        self._before = now
        self._next = time.monotonic() + (min(_GRACE, self._seconds) if self._doubtful else self._seconds)
        return lost


def _differing(before: Snapshot, after: Snapshot) -> set[Path]:
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


def _is_told(path: Path, told: set[Path]) -> bool:
    return path in told or not told.isdisjoint(path.parents)
