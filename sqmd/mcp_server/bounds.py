"""Replies of bounded size: long texts are cut with a mark, and what does not fit is said to be missing."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

REPLY_BYTES = 23_000  # of compact JSON, leaving room for a note: a reply stays under 24,000
_LEAST = 200  # bytes of text from which a passage is worth showing
_MARK = 48
_T = TypeVar("_T")

to_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def size(value: Any) -> int:
    """Bytes of a value as compact JSON in UTF-8."""
    return len(to_json(value).encode("utf-8", "surrogatepass"))


def leading(items: Iterable[_T], room: int) -> list[_T]:
    """Those at the front that go into `room` bytes of JSON; one at least, where there is one."""
    kept: list[_T] = []
    for item in items:
        room -= size(item) + 1
        if kept and room < 0:
            break
        kept.append(item)
    return kept


def fit(items: Sequence[dict[str, Any]], key: str, room: int) -> list[dict[str, Any]]:
    """The leading items that go into `room` bytes of JSON; one at least. Their texts under `key` share what is left."""
    kept: list[dict[str, Any]] = []
    texts: list[int] = []
    for item in items:
        fixed, text = size({**item, key: ""}) + 1, size(item[key])
        if kept and room - fixed < sum(min(each, _LEAST) for each in [*texts, text]):
            break
        room -= fixed
        kept.append(item)
        texts.append(text)
    level = _level(texts, room)
    return [{**item, key: cut(item[key], level)} for item in kept]


def cut(text: str, room: int) -> str:
    """The beginning of `text` with a mark that says how long it is, in `room` bytes of JSON."""
    if size(text) <= room:
        return text
    return f"{beginning(text, room - _MARK)} […cut, {len(text):,} characters in all]"


def beginning(text: str, room: int) -> str:
    """As much of `text` as goes into `room` bytes of JSON."""
    low, high = 0, min(len(text), max(room, 0))
    while low < high:
        middle = (low + high + 1) // 2
        if size(text[:middle]) <= room:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def _level(sizes: Sequence[int], room: int) -> int:
    """The size to which the longest are cut so that all go into `room`."""
    left = len(sizes)
    for each in sorted(sizes):
        if each * left > room:
            return max(room // left, _LEAST)
        room -= each
        left -= 1
    return max(sizes, default=0)
