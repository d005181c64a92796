"""Replies of bounded size: long texts are cut with a mark, pages end early and say so."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Any

from squirrel_mcp.escaping import to_json

Json = dict[str, Any]

REPLY_BYTES = 23_500  # of compact JSON; a reply stays under 24,000 with its notes
WHOLE_BYTES = 68_000  # get_memory gives one memory whole: 63,484 bytes as stored, and what escapes add to honest text
_SHORTEST = 160  # bytes of text from which a memory is worth showing
_LABELS = 600  # bytes of tags, and of keywords, in a page that would not fit otherwise
_MARK_BYTES = 60
_HALF_ESCAPE = re.compile(r"\\(?:u(?:\{[0-9a-f]{0,6})?)?\Z")
_NOT_ALONE = "\u200d\u200c\ufe0e\ufe0f"


def size(value: Any) -> int:
    """Bytes of a value as compact JSON in UTF-8."""
    text = to_json(value)
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def fit(items: Sequence[Json], room: int) -> tuple[list[Json], bool]:
    """The leading items that go into `room` bytes of JSON, and whether anything of them is missing.

    Items have a "text", perhaps "tags" and "keywords". Short texts stay whole and long ones share what is left. At
    least one item comes back.
    """
    if size(items) <= room:
        return list(items), False
    shown: list[Json] = []
    texts: list[int] = []
    least = 0  # bytes that the texts need at least
    for item in map(_with_few_labels, items):
        rest, text = size({**item, "text": ""}) + 1, size(item["text"])
        least += min(text, _SHORTEST)
        if shown and rest + least > room:
            break
        room -= rest
        shown.append(item)
        texts.append(text)
    level = _water_level(texts, room)
    return [{**item, "text": cut(item["text"], level)} for item in shown], True


def cut(text: str, room: int) -> str:
    """The beginning of `text` with a mark that says how long it is, in `room` bytes of JSON."""
    if size(text) <= room:
        return text
    return f"{_beginning(text, room - _MARK_BYTES)} […cut, {len(text):,} characters in all]"


def cut_name(text: str, room: int) -> str:
    """The beginning of a name, with a mark that takes little of it, in `room` bytes of JSON."""
    return text if size(text) <= room else f"{_beginning(text, room - len('…'.encode()))}…"


def _beginning(text: str, room: int) -> str:
    low, high = 0, min(len(text), max(room, 0))
    while low < high:
        middle = (low + high + 1) // 2
        if size(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    # Neither half an escape nor a letter without its accent.
    while 0 < low < len(text) and (text[low] in _NOT_ALONE or unicodedata.combining(text[low])):
        low -= 1
    return _HALF_ESCAPE.sub("", text[:low])


def _water_level(sizes: Sequence[int], room: int) -> int:
    """The size to which the largest are cut so that all go into `room`."""
    left = len(sizes)
    for each in sorted(sizes):
        if each * left > room:
            return max(room // left, _SHORTEST)
        room -= each
        left -= 1
    return max(sizes, default=0)


def _with_few_labels(item: Json) -> Json:
    return {**item, **{name: _few(item[name]) for name in ("tags", "keywords") if name in item}}


def _few(labels: list[str]) -> list[str]:
    shown: list[str] = []
    used = 0
    for label in labels:
        used += size(label) + 1
        if used > _LABELS:
            break
        shown.append(label)
    return shown
