"""The plain export: JSON lines, one per revision, that people and other programs can read (docs/export.md).

A line of an export has `id` and `revision` and otherwise the stored form of a memory. A line that somebody else
wrote needs no more than `text`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, BinaryIO, NamedTuple

from squirrel_mcp.crypto import entropy
from squirrel_mcp.errors import InvalidInput
from squirrel_mcp.memory import (
    MAX_DEPTH,
    Memory,
    check,
    decode_json,
    tidy_category,
    tidy_labels,
    to_json,
    to_milliseconds,
    within_depth,
)
from squirrel_mcp.portability.incoming import Incoming

MAX_LINE_BYTES = 1 << 20  # a memory has at most 64 KiB; escapes can make six of one byte

_STRINGS = ("entity", "category", "source", "reason")
_LISTS = ("tags", "keywords")
_TIMES = ("createdAt", "updatedAt")
_KNOWN = frozenset(("id", "revision", "v", "text", *_STRINGS, *_LISTS, *_TIMES))
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_TOO_DEEP = f"has brackets in brackets more than {MAX_DEPTH} deep"
_BLANKS = " \t\r\n"  # JSON's own
# Legal inside a JSON string, but a line end or a command to a terminal for programs that look at the file.
_TROUBLE = re.compile("[\x7f-\x9f\u2028\u2029]")


class BadLine(NamedTuple):
    """A line that cannot be imported: its number, from 1, and why in a sentence that quotes nothing of it."""

    number: int
    problem: str


class PlainFile(NamedTuple):
    incoming: Incoming
    bad: list[BadLine]


def encode(revisions: Iterable[Memory]) -> Iterator[bytes]:
    """One line per revision, UTF-8 with LF."""
    for memory in revisions:
        fields = {"id": memory.id, "revision": memory.revision, **json.loads(to_json(memory))}
        line = json.dumps(fields, ensure_ascii=False, separators=(",", ":"))
        yield _TROUBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", line).encode() + b"\n"


def read(
    file: BinaryIO,
    *,
    now: datetime,
    random: entropy.Random = entropy.system,
    progress: Callable[[int], None] = lambda size: None,
) -> PlainFile:
    """All lines; empty ones are left out. `now` dates what has no date, `progress` is told the bytes read so far."""
    bad: list[BadLine] = []
    fresh: list[Memory] = []
    numbered: dict[str, dict[int, tuple[int, Memory]]] = {}
    size = 0
    for number, raw in enumerate(_lines(file), 1):
        size += len(raw)
        progress(size)
        try:
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")  # what some editors put first
            if not raw.strip():
                continue
            fields = _parse(raw)
            if "id" in fields:
                memory = _exported(fields)
                same_id = numbered.setdefault(memory.id, {})
                before = same_id.setdefault(memory.revision, (number, memory))
                if before[1] != memory:
                    raise _Problem(f"differs from line {before[0]}, which has the same id and revision")
            else:
                fresh.append(_written(fields, random(16).hex(), now))
        except _Problem as problem:
            bad.append(BadLine(number, str(problem)))
    revisions = {
        memory_id: [memory for _, (_, memory) in sorted(same_id.items())] for memory_id, same_id in numbered.items()
    }
    return PlainFile(Incoming(revisions=revisions, fresh=fresh), bad)


class _Problem(Exception):
    """Why a line is refused."""


def _lines(file: BinaryIO) -> Iterator[bytes]:
    while raw := file.readline(MAX_LINE_BYTES + 1):
        yield raw
        while len(raw) > MAX_LINE_BYTES and not raw.endswith(b"\n"):
            raw = file.readline(MAX_LINE_BYTES + 1)  # the rest of a line that is refused anyway


def _parse(raw: bytes) -> dict[str, Any]:
    if len(raw) > MAX_LINE_BYTES:
        raise _Problem(f"is longer than {MAX_LINE_BYTES:,} bytes")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        raise _Problem("is not UTF-8 text") from None
    try:
        fields = decode_json(text.strip(_BLANKS))
    except UnicodeEncodeError:
        raise _Problem("holds half of a surrogate pair, which is no text") from None
    except ValueError:
        raise _Problem("is not JSON, names a key twice, or holds a number that is too large") from None
    except RecursionError:  # thousands deep, how many depends on the interpreter
        raise _Problem(_TOO_DEEP) from None
    if type(fields) is not dict:
        raise _Problem("is not a JSON object")
    if not within_depth(fields):
        raise _Problem(_TOO_DEEP)
    return fields


def _exported(fields: dict[str, Any]) -> Memory:
    """A line with an id: dates are required, and what a later version added is kept."""
    memory_id, revision = fields["id"], fields.get("revision", 1)
    if type(memory_id) is not str or not _ID.fullmatch(memory_id) or not int(memory_id, 16):
        raise _Problem("has an id that is not 32 lower-case hex digits")
    if type(revision) is not int or not 1 <= revision < 2**53:
        raise _Problem("has a revision that is not a whole number from 1")
    if fields.get("v", 1) != 1 or type(fields.get("v", 1)) is not int:
        raise _Problem("was written by a later version: update this program")
    times = [_time(fields, key) for key in _TIMES]
    if times[0] is None or times[1] is None:
        raise _Problem("has an id but lacks createdAt or updatedAt")
    extra = {key: fields[key] for key in fields.keys() - _KNOWN}
    return _memory(fields, memory_id, revision, times[0], times[1], extra)


def _written(fields: dict[str, Any], memory_id: str, now: datetime) -> Memory:
    """A line without an id. A key that is not known is refused: it is a typing error, and its value would be lost."""
    if fields.keys() - _KNOWN:
        raise _Problem("has a key that is not known")  # which may be a secret in the wrong place
    if "revision" in fields:
        raise _Problem("has a revision but no id")
    moment = to_milliseconds(now)
    created = _time(fields, "createdAt") or _time(fields, "updatedAt") or moment
    return _memory(fields, memory_id, 1, created, _time(fields, "updatedAt") or created, {})


def _memory(
    fields: dict[str, Any],
    memory_id: str,
    revision: int,
    created: datetime,
    updated: datetime,
    extra: dict[str, Any],
) -> Memory:
    if type(fields.get("text")) is not str:
        raise _Problem("has no text" if "text" not in fields else "has a text that is not a string")
    strings = {key: fields.get(key, "") for key in _STRINGS}
    for key, value in strings.items():
        if type(value) is not str:
            raise _Problem(f"has a value of {key} that is not a string")
    lists = {key: fields.get(key, []) for key in _LISTS}
    for key, value in lists.items():
        if type(value) is not list or any(type(item) is not str for item in value):
            raise _Problem(f"has a value of {key} that is not a list of strings")
    memory = Memory(
        id=memory_id,
        text=fields["text"],
        created_at=created,
        updated_at=updated,
        revision=revision,
        entity=strings["entity"],
        category=tidy_category(strings["category"]),
        tags=tidy_labels(lists["tags"]),
        keywords=tidy_labels(lists["keywords"]),
        source=strings["source"],
        reason=strings["reason"],
    )
    memory = replace(memory, extra=extra) if extra else memory
    try:
        check(memory)
    except InvalidInput as error:
        raise _Problem(f"cannot be stored: {error}") from None
    return memory


def _time(fields: dict[str, Any], key: str) -> datetime | None:
    """Any RFC 3339 time; without a zone it would be another moment on another machine."""
    value = fields.get(key)
    if value is None:
        return None
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            return to_milliseconds(moment)
    except (TypeError, ValueError, OverflowError):
        pass
    raise _Problem(f"has a value of {key} that is no time with a zone, such as 2026-03-01T09:30:00.000Z")
