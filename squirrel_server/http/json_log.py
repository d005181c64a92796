"""The server's log: one JSON object a line, and of an exception its type and place, never its text.

A text may hold what a client sent; and uvicorn, whose lines come out here too, would print tracebacks.
"""

from __future__ import annotations

import json
import logging
import traceback
from datetime import UTC, datetime
from typing import Any

REQUESTS = "squirrel_server.requests"


class JsonFormatter(logging.Formatter):
    """`extra={"fields": {...}}` adds fields to a line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage().strip(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[1] is not None:
            line["error"] = error_place(record.exc_info[1])
        return json.dumps(line)


def error_place(error: BaseException) -> str:
    """Such as "KeyError in squirrel_server/http/gate.py:120 run"; the innermost frame."""
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return type(error).__name__
    frame = frames[-1]
    return f"{type(error).__name__} in {'/'.join(frame.filename.split('/')[-3:])}:{frame.lineno} {frame.name}"


def log_config() -> dict[str, Any]:
    """For `logging.config.dictConfig`: everything to standard error, as JSON."""
    loggers: dict[str, dict[str, Any]] = {
        name: {"handlers": ["stderr"], "level": "INFO", "propagate": False} for name in ("uvicorn", REQUESTS)
    }
    # Its lines have addresses and paths in them, and ours take their place.
    loggers["uvicorn.access"] = {"handlers": [], "level": "CRITICAL", "propagate": False}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": f"{__name__}.JsonFormatter"}},
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "loggers": loggers,
    }
