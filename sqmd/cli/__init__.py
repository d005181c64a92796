"""The command line."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

_INTERRUPTED = 130  # as Exit.INTERRUPTED, which is not loaded yet


def main() -> None:
    """The entry point of `sqmd`."""
    # Until what deals with Ctrl-C is imported, nothing has been begun that an end at once could harm.
    handles = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else somebody wants it ignored
    if handles:
        signal.signal(signal.SIGINT, end_at_once)
    from sqmd.cli.app import run
    from sqmd.stderr import tell_bugs_by_place

    tell_bugs_by_place()
    try:
        if handles:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        code = run(sys.argv[1:])
    except KeyboardInterrupt:  # before `run` looks out for it
        code = _INTERRUPTED
    if handles:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # one more Ctrl-C while the interpreter ends changes no exit code
    sys.exit(code)


def end_at_once(_: int, __: FrameType | None) -> None:
    """What Ctrl-C does where an exception could be lost."""
    os._exit(_INTERRUPTED)
