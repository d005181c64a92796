"""The command line. Without arguments it is the stdio server, which nothing of this package may slow down."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from squirrel_mcp.edition import BASE, Edition

_INTERRUPTED = 130  # as Exit.INTERRUPTED, which is not loaded yet


def main(edition: Edition = BASE) -> None:
    """The entry point of an edition: `squirrel-mcp`, or its companion."""
    # Until what deals with Ctrl-C is imported, nothing has been begun that an end at once could harm.
    handles = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else somebody wants it ignored
    if handles:
        signal.signal(signal.SIGINT, _end_at_once)
    if len(sys.argv) > 1:
        from squirrel_mcp.cli.app import run

        try:
            if handles:
                signal.signal(signal.SIGINT, signal.default_int_handler)
            code = run(sys.argv[1:], edition)
        except KeyboardInterrupt:  # before `run` looks out for it
            code = _INTERRUPTED
        sys.exit(code)
    from squirrel_mcp.mcp_server.lifecycle import main as serve

    serve(edition)


def _end_at_once(_: int, __: FrameType | None) -> None:
    os._exit(_INTERRUPTED)
