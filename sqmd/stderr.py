"""What a process says on stderr: single lines, and of a bug its kind and place without its text.

The text of an exception may quote a document.
"""

from __future__ import annotations

import logging
import os
import sys
import threading

from sqmd.escaping import visible_line


def say(message: str) -> None:
    """One line, if anybody listens."""
    try:
        sys.stderr.write(f"{visible_line(message)}\n")
        sys.stderr.flush()
    except (OSError, ValueError):  # it is closed
        pass


def kind_and_place(error: BaseException) -> str:
    """`KeyError at searcher.py:12`"""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f" at {os.path.basename(trace.tb_frame.f_code.co_filename)}:{trace.tb_lineno}" if trace else ""
    return f"{type(error).__name__}{place}"


def tell_bugs_by_place() -> None:
    """From now on what nobody catches is told so, and only our own loggers speak: libraries log what they handle."""
    threading.excepthook = _on_end_of_thread
    sys.unraisablehook = lambda failed: _tell("something was let go of", failed.exc_value)
    logging.raiseExceptions = False
    logging.getLogger().addHandler(logging.NullHandler())
    logger = logging.getLogger("sqmd")
    logger.addHandler(_Lines())
    logger.propagate = False


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        say(f"{record.name}: {record.getMessage()}")


def _on_end_of_thread(failed: threading.ExceptHookArgs) -> None:
    if failed.exc_type is not SystemExit:
        _tell("a thread ended", failed.exc_value)


def _tell(what: str, error: BaseException | None) -> None:
    say(f"sqmd: {what}: {kind_and_place(error) if error else 'no reason'}")
