"""The writer's lock: one process of this machine writes an index at a time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sqmd.errors import IndexBusy
from sqmd.store.database import told

_LOCK_SECONDS = 0.5


@contextmanager
def writer_lock(location: str) -> Iterator[None]:
    """IndexBusy where somebody has it, in this process or another; DatabaseUnavailable where it cannot be had."""
    if "://" in location:  # where others write is for whoever shares it to see to
        yield
        return
    import filelock

    folder = Path(location)
    with told(location):
        folder.mkdir(parents=True, exist_ok=True)
        held = filelock.FileLock(folder / ".writer.lock", timeout=_LOCK_SECONDS)
        try:
            held.acquire()
        except filelock.Timeout:
            raise IndexBusy("Another process is indexing; try again when it is done.") from None
    try:
        yield
    finally:
        held.release()
