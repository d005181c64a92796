#!/usr/bin/env python3
"""Writes the one version of all four distributions, and the exact pins between them.

uv's `workspace = true` ignores a `==` pin: this script, and the test that reads the built wheels, keep them equal.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VERSION_FILE = ROOT / "squirrel_mcp" / "_version.py"
PYPROJECTS = (ROOT / "pyproject.toml", *sorted(ROOT.glob("*/pyproject.toml")))
OURS = ("squirrel-mcp", "squirrel-mcp-embeddings", "squirrel-server", "sqmd")

_VERSION_LINE = re.compile(r'(?m)^(__version__ = ")[^"]*(")$')
_PIN = re.compile(rf'("(?:{"|".join(OURS)})(?:\[[a-z,]+\])?==)[^"]*(")')


def with_version(text: str, version: str) -> str:
    """`text` of a pyproject.toml with every pin on one of our distributions set to `version`."""
    return _PIN.sub(rf"\g<1>{version}\g<2>", text)


def main(arguments: list[str]) -> int:
    if len(arguments) != 1 or not re.fullmatch(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?", arguments[0]):
        print("usage: scripts/bump_version.py VERSION   (such as 0.2.0 or 1.0.0rc1)", file=sys.stderr)
        return 2
    version = arguments[0]
    changed = {
        VERSION_FILE: _VERSION_LINE.sub(rf"\g<1>{version}\g<2>", VERSION_FILE.read_text("utf-8")),
        **{path: with_version(path.read_text("utf-8"), version) for path in PYPROJECTS},
    }
    for path, text in changed.items():
        path.write_text(text, "utf-8", newline="\n")
    print(f"{version}: now write CHANGELOG.md and run scripts/test")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
