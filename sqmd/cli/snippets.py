"""A chunk in 200 characters: where most of the query's words are, and where in it they stand."""

from __future__ import annotations

import re
from typing import NamedTuple

from sqmd.escaping import visible_line

LENGTH = 200
_WORD = re.compile(r"\w+")
_BEFORE = 40  # characters that lead up to the first match


class Snippet(NamedTuple):
    """`matches` are (start, end) in `text`, which is one line and safe to print."""

    text: str
    matches: list[tuple[int, int]]


def snippet(text: str, query: str) -> Snippet:
    """At most `LENGTH` characters, with an ellipsis at each end where something was left out."""
    line = visible_line(text)
    words = _pattern(query)
    found = [(match.start(), match.end(), match.group().casefold()) for match in words.finditer(line)] if words else []
    start = 0
    if len(line) > LENGTH and found:
        best = max(found, key=lambda each: (_distinct(found, each[0]), -each[0]))
        start = max(0, min(best[0] - _BEFORE, len(line) - LENGTH + 1))
        if start:  # at a word's beginning
            space = line.find(" ", start, best[0])
            start = space + 1 if space >= 0 else start
    head = "…" if start else ""
    end = start + LENGTH - len(head)
    tail = "…" if end < len(line) else ""
    end = min(end - len(tail), len(line))
    shift = len(head) - start
    matches = [(a + shift, b + shift) for a, b, _ in found if a >= start and b <= end]
    return Snippet(f"{head}{line[start:end]}{tail}", matches)


def _pattern(query: str) -> re.Pattern[str] | None:
    """Any word of the query as the beginning of a word; a script without spaces has no such beginnings."""
    words = sorted({word for word in _WORD.findall(query) if len(word) > 1 or not word.isascii()}, key=len)
    if not words:
        return None
    parts = (rf"\b{re.escape(word)}" if word.isascii() else re.escape(word) for word in reversed(words))
    return re.compile("|".join(parts), re.IGNORECASE)


def _distinct(found: list[tuple[int, int, str]], start: int) -> int:
    return len({word for at, end, word in found if at >= start and end <= start + LENGTH - _BEFORE})
