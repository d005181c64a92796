"""Exit codes: the part of the command line that scripts rely on. `squirrel-mcp --help` and docs/cli.md list them."""

from __future__ import annotations

from enum import IntEnum

from squirrel_mcp.errors import (
    ConfigurationError,
    Conflict,
    InvalidInput,
    KeysChanged,
    NewPassphraseRefused,
    NotFound,
    NotUnlocked,
    SquirrelError,
)


class Exit(IntEnum):
    OK = 0
    NOTHING = 1
    USAGE = 2
    LOCKED = 3
    STORE = 4
    CONFLICT = 5
    BUG = 70  # EX_SOFTWARE of sysexits.h
    INTERRUPTED = 130  # 128 + SIGINT, as shells say it
    BROKEN_PIPE = 141  # 128 + SIGPIPE


MEANINGS = {
    Exit.OK: "done",
    Exit.NOTHING: "nothing was found, or there is no such memory",
    Exit.USAGE: "wrong arguments, settings or input; nothing was changed",
    Exit.LOCKED: "no passphrase, or not the right one",
    Exit.STORE: "the vault or a file cannot be used, or is not to be believed",
    Exit.CONFLICT: "somebody else changed it first, or it is there already",
    Exit.BUG: "a bug in this program",
    Exit.INTERRUPTED: 'stopped by Ctrl-C, or by "no" to a question',
    Exit.BROKEN_PIPE: "whoever read the output stopped reading",
}

_BY_ERROR: tuple[tuple[type[SquirrelError], Exit], ...] = (
    (NotFound, Exit.NOTHING),
    (InvalidInput, Exit.USAGE),
    (ConfigurationError, Exit.USAGE),
    (NewPassphraseRefused, Exit.USAGE),
    (NotUnlocked, Exit.LOCKED),
    (KeysChanged, Exit.LOCKED),
    (Conflict, Exit.CONFLICT),
)


def of(error: SquirrelError) -> Exit:
    """The code that an error ends the program with."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Exit.STORE)
