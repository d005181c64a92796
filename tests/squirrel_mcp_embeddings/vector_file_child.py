"""A process that writes a vector file.

`append CACHE_DIR FIRST COUNT`, or `die CACHE_DIR LINE`: killed at that line of the code under test, 0 for never.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import filelock  # noqa: F401  (or its import would be what a kill meets most)

from squirrel_mcp import private_files
from squirrel_mcp_embeddings import vector_file, vector_format
from tests.squirrel_mcp_embeddings.vector_file_scene import Scene, rows

STEPS = (("append", 2, 1), ("append", 1, 2), ("rewrite", 3, 3), ("append", 1, 4), ("rewrite", 1, 5))
"""What the dying process does: method, rows, seed."""

_CODE = {module.__file__ for module in (private_files, vector_file, vector_format)}


def say(value: object) -> None:
    print(value, flush=True)  # noqa: T201


def append(cache_dir: Path, first: int, count: int) -> None:
    mine = Scene(cache_dir).handle()
    say("ready")
    sys.stdin.readline()
    for seed in range(first, first + count):
        mine.append(rows(1, seed))
        say(seed)


def die(cache_dir: Path, line: int) -> None:
    """Says how many steps are done after each, and at the end how many lines were run."""
    done = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal done
        if frame.f_code.co_filename not in _CODE:
            return None
        if event == "line":
            done += 1
            if done == line:
                os.kill(os.getpid(), signal.SIGKILL)
        return trace

    mine = Scene(cache_dir).handle()
    for number, (method, count, seed) in enumerate(STEPS, 1):
        new = rows(count, seed)
        sys.settrace(trace)
        getattr(mine, method)(new)
        sys.settrace(None)
        say(number)
    say(done)


if __name__ == "__main__":
    mode, folder, *numbers = sys.argv[1:]
    {"append": append, "die": die}[mode](Path(folder), *map(int, numbers))
