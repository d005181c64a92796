#!/usr/bin/env python3
"""Keeps the demo in README.md true: `--check` compares it with what the command prints, `--write` renews it.

What differs from run to run (ids, dates, times, sizes of ciphertext on disk) is not compared; all words are.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
BLOCK = re.compile(r"(?s)(<!-- demo:begin [^\n]* -->\n```\n)(.*?)(```\n<!-- demo:end -->)")
# Each run of characters that may differ becomes one mark, and so does the padding that follows it in a table.
VARIABLE = (
    re.compile(r"\b[0-9a-f]{8,}\b…?"),
    re.compile(r"\b\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?Z?)?"),
    re.compile(r"\b\d+(?:[.,]\d+)* ?(?:ms|s|bytes|B|KiB|KB)\b"),
)
COLUMNS = "100"


def demo() -> str:
    """What the demo of this checkout prints into a pipe, 100 columns wide."""
    command = [str(Path(sys.executable).with_name("squirrel-mcp-embeddings")), "demo"]
    environment = {**os.environ, "COLUMNS": COLUMNS, "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}
    result = subprocess.run(command, env=environment, capture_output=True, encoding="utf-8", check=False)
    if result.returncode:
        raise SystemExit(f"squirrel-mcp-embeddings demo ended with {result.returncode}:\n{result.stderr}")
    # Where this checkout lies is nobody else's business.
    printed = result.stdout.replace(command[0], "/path/to/squirrel/.venv/bin/squirrel-mcp-embeddings")
    return "".join(f"{line.rstrip()}\n" for line in printed.strip("\n").splitlines())


def shown(readme: str) -> str:
    """The demo as README.md has it."""
    found = BLOCK.search(readme)
    if found is None:
        raise SystemExit("README.md has lost the marks around its demo")
    return found[2]


def comparable(text: str) -> list[str]:
    """The lines of `text` without what differs from run to run."""
    for pattern in VARIABLE:
        text = pattern.sub("#", text)
    return [re.sub(r"\s+", " ", line).strip() for line in text.splitlines()]


def main(arguments: list[str]) -> int:
    if arguments not in (["--check"], ["--write"]):
        print("usage: scripts/readme_demo.py --check | --write", file=sys.stderr)
        return 2
    readme, printed = README.read_text("utf-8"), demo()
    if arguments == ["--write"]:
        written = BLOCK.sub(lambda found: found[1] + printed + found[3], readme)
        README.write_text(written, "utf-8", newline="\n")
        return 0
    difference = difflib.unified_diff(
        comparable(shown(readme)), comparable(printed), "README.md", "squirrel-mcp demo", lineterm=""
    )
    lines = list(difference)
    if lines:
        print("\n".join(lines), "\nrun scripts/readme_demo.py --write", sep="\n", file=sys.stderr)
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
