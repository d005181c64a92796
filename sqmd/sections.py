"""Parts of a document by the names that people and agents give them: a heading path, a heading, lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from sqmd.errors import InvalidInput, NotInIndex
from sqmd.escaping import visible

if TYPE_CHECKING:
    from sqmd.ingest.parse import Document

_NAMED, _NAMED_CHARACTERS = 5, 200  # sections in a message, and of each
_LINES = re.compile(r"L?(\d{1,9})(?:\s*[-–:]\s*L?(\d{1,9}))?", re.IGNORECASE)


class Part(NamedTuple):
    """Lines of a document, from 1, both included. A note where there was more than one to choose from."""

    line_start: int
    line_end: int
    note: str = ""


def part_of(document: Document, wanted: str) -> Part:
    """The lines that `wanted` names: all for "", a range, a heading path or a heading. NotInIndex."""
    last = len(document.lines)
    if not wanted:
        return Part(1, last)
    lines = _LINES.fullmatch(wanted)
    if lines:
        start = int(lines[1])
        end = min(int(lines[2] or start), last)
        if not 1 <= start <= end:
            raise InvalidInput("section", f"section names lines that are not there; the document has {last}.")
        return Part(start, end)
    found = [number for number, names in enumerate(_names(document)) if _plain(wanted) in names]
    if not found:
        some = ", ".join(heading[:_NAMED_CHARACTERS] for heading, _, _ in islice(outline(document), _NAMED))
        raise NotInIndex(f"The document has no such section; it begins with {some or 'no heading'}.")
    first = document.sections[found[0]]
    end = first.line_end
    for section in document.sections[found[0] + 1 :]:
        # With what is below it.
        if not first.heading_path or section.heading_path[: len(first.heading_path)] != first.heading_path:
            break
        if section.heading_path == first.heading_path:
            break
        end = section.line_end
    note = f"There are {len(found)} sections of this name; this is the first." if len(found) > 1 else ""
    return Part(first.line_start, end, note)


def outline(document: Document) -> Iterator[tuple[str, int, int]]:
    """(heading path, first line, last line) of every section that has a heading."""
    for section in document.sections:
        if section.heading_path:
            yield visible(" > ".join(section.heading_path)), section.line_start, section.line_end


def _names(document: Document) -> Iterator[set[str]]:
    """What each section may be called."""
    for section in document.sections:
        if section.heading_path:
            forms = (" > ".join(section.heading_path), section.heading_path[-1], section.heading_text)
            yield set(map(_plain, forms))
        else:
            yield set()


def _plain(heading: str) -> str:
    return " ".join(visible(heading).casefold().lstrip("# ").split())
