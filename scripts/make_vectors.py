#!/usr/bin/env python3
"""Writes tests/vectors/*.json. The same code gives the same bytes: all randomness is seeded.

`--check` writes nothing and fails where a file differs. A vector that changes is a format that changed: what decrypts
today has to decrypt with every later 1.x, so a file is only ever added to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.vectors.making import (  # noqa: E402  (a script's own folder is on the path, not the checkout's root)
    files,
    key_sets,
    keys,
    logs,
    memories,
    padding,
    pins,
    records,
    recovery,
    vector_files,
    wraps,
)

BUILDERS: dict[str, Callable[[], dict[str, Any]]] = {
    "keys.json": keys.build,
    "wrap.json": wraps.build,
    "recovery.json": recovery.build,
    "key_set.json": key_sets.build,
    "padding.json": padding.build,
    "record.json": records.build,
    "memory_json.json": memories.build,
    "log.json": logs.build,
    "pin.json": pins.build,
    "vector_file.json": vector_files.build,
}


def render(name: str) -> str:
    """The text of one vector file."""
    return files.render({"protocol": 1, **BUILDERS[name]()})


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: scripts/make_vectors.py [--check]", file=sys.stderr)
        return 2
    different = []
    for name in BUILDERS:
        path, text = files.FOLDER / name, render(name)
        if not path.is_file() or path.read_bytes() != text.encode("ascii"):
            different.append(name)
            if not arguments:
                path.write_bytes(text.encode("ascii"))
    print("\n".join(different) or "Nothing changed.")
    return 1 if arguments and different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
