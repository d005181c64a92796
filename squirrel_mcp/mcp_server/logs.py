"""What a server process writes to stderr of itself: types, places, durations; never what it was asked or holds."""

from __future__ import annotations

import logging
import os
import sys
import threading
from types import TracebackType

from squirrel_mcp.errors import ConfigurationError


def where(error: BaseException) -> str:
    """Type and place of an error, without its text, which may quote what must not be logged."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else ""
    return f"{type(error).__name__}{place}"


def log_to_stderr() -> None:
    """Only our own loggers speak: libraries log what they handle, and the SDK at DEBUG whole messages."""
    from squirrel_mcp.settings import Settings

    try:
        level = Settings.read().log_level
    except ConfigurationError:
        level = logging.WARNING  # the tools and the start-up line tell what is wrong
    logging.raiseExceptions = False
    logging.getLogger().addHandler(logging.NullHandler())
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_WithoutTraces("%(levelname)s %(name)s: %(message)s"))
    logger = logging.getLogger("squirrel_mcp")
    logger.addHandler(handler)
    logger.setLevel(level)
    logger.propagate = False


def watch_failures() -> None:
    """What nobody catches is told by its type: the text of an exception may quote a memory or a passphrase."""
    sys.excepthook = lambda _, error, __: _tell(error)
    threading.excepthook = lambda failed: _tell(failed.exc_value)
    sys.unraisablehook = lambda failed: _tell(failed.exc_value)


def _tell(error: BaseException | None) -> None:
    logging.getLogger(__name__).error("not handled: %s", where(error) if error else "an error")


class _WithoutTraces(logging.Formatter):
    def formatException(
        self,
        ei: tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None],
    ) -> str:
        return ei[0].__name__ if ei[0] else ""
