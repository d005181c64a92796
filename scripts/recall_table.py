#!/usr/bin/env python3
"""Keeps the table of recall in docs/ranking.md true: `--check` measures and compares, `--write` renews it.

Memories, questions and the way of counting are those of tests/recall; the model is the first of the manifest that is
there. Without arguments it only shows what comes out. The date in the
document says when that was, and is not compared.
"""

from __future__ import annotations

import difflib
import re
import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "ranking.md"
_BLOCK = re.compile(
    r"<!-- recall:begin \(scripts/recall_table\.py --write\) -->\n"
    r"Measured on (?P<date>\d{4}-\d\d-\d\d) with (?P<model>[\w.-]+):\n\n(?P<table>.*?)\n?<!-- recall:end -->",
    re.DOTALL,
)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"], ["--write"]):
        print("usage: scripts/recall_table.py [--check | --write]", file=sys.stderr)
        return 2
    sys.path.insert(0, str(ROOT))
    from squirrel_mcp_embeddings import embedder, model_files
    from squirrel_mcp_embeddings.errors import ModelUnavailable

    measure: Any = import_module("tests.recall.measure")
    try:
        measured = measure.measure(embedder.load(model_files.read(None)))
    except ModelUnavailable as error:
        print(f"{error} Run scripts/fetch_model.py.", file=sys.stderr)
        return 1
    made = measure.table(measured)
    if not arguments:
        print(measured.model, "", *made, sep="\n")
        return 0
    if arguments == ["--write"]:
        _write(measured.model, made)
        return 0
    model, found = documented()
    lines = list(
        difflib.unified_diff([model, *found], [measured.model, *made], "docs/ranking.md", "measured", lineterm="")
    )
    if lines:
        print("\n".join(lines), "\nrun scripts/recall_table.py --write", sep="\n", file=sys.stderr)
    return 1 if lines else 0


def documented() -> tuple[str, list[str]]:
    """The model that docs/ranking.md names, and the lines of its tables."""
    block = _BLOCK.search(DOCUMENT.read_text("utf-8"))
    if block is None:
        raise SystemExit("docs/ranking.md has no place for the table of recall")
    return block["model"], block["table"].rstrip("\n").split("\n")


def _write(model: str, table: list[str]) -> None:
    date = datetime.now(UTC).date().isoformat()
    block = "\n".join(
        [
            "<!-- recall:begin (scripts/recall_table.py --write) -->",
            f"Measured on {date} with {model}:",
            "",
            *table,
            "<!-- recall:end -->",
        ]
    )
    text, count = _BLOCK.subn(lambda _: block, DOCUMENT.read_text("utf-8"))
    if count != 1:
        raise SystemExit("docs/ranking.md has no place for the table of recall")
    DOCUMENT.write_text(text, "utf-8", newline="\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
