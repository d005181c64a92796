"""Exit codes: the part of the command line that scripts rely on. `sqmd --help` and docs/sqmd.md list them."""

from __future__ import annotations

from enum import IntEnum

from sqmd.errors import (
    ConfigError,
    IndexBusy,
    InvalidInput,
    NoSuchPath,
    NotIndexed,
    NotInIndex,
    PortBusy,
    SqmdError,
)


class Exit(IntEnum):
    OK = 0
    INCOMPLETE = 1
    USAGE = 2
    NOT_INDEXED = 3
    UNUSABLE = 4
    BUSY = 5
    BUG = 70  # EX_SOFTWARE of sysexits.h
    INTERRUPTED = 130  # 128 + SIGINT, as shells say it
    BROKEN_PIPE = 141  # 128 + SIGPIPE


MEANINGS = {
    Exit.OK: "done",
    Exit.INCOMPLETE: "nothing was found, or some files could not be read",
    Exit.USAGE: "wrong arguments or settings, or a path that is not there",
    Exit.NOT_INDEXED: "there is no index yet",
    Exit.UNUSABLE: "the database, the model or a file cannot be used",
    Exit.BUSY: "another process is indexing, or has the port",
    Exit.BUG: "a bug in this program",
    Exit.INTERRUPTED: "stopped by Ctrl-C",
    Exit.BROKEN_PIPE: "whoever read the output stopped reading",
}

_BY_ERROR: tuple[tuple[type[SqmdError], Exit], ...] = (
    (NotInIndex, Exit.INCOMPLETE),
    (ConfigError, Exit.USAGE),
    (InvalidInput, Exit.USAGE),
    (NoSuchPath, Exit.USAGE),
    (NotIndexed, Exit.NOT_INDEXED),
    (IndexBusy, Exit.BUSY),
    (PortBusy, Exit.BUSY),
)


def of(error: SqmdError) -> Exit:
    """The code that an error ends the program with."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.UNUSABLE)
