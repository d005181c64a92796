"""Memories as plain values: what is stored, how it is written as JSON and read back. No I/O.

The JSON form is section 2 of docs/protocol.md: UTF-8, keys sorted by code point, no spaces, at most
`MAX_JSON_BYTES` bytes; unknown keys are kept and written back, so that an older program does not lose what a
newer one added.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from squirrel_mcp.errors import InvalidInput, RecordDamaged

MAX_JSON_BYTES = 63_484  # so that length prefix, padding, header and tag stay within a 65,536-byte record
MAX_TEXT = 16_000  # characters, as are all the limits below
MAX_ENTITY = 200
MAX_SOURCE = 200
MAX_CATEGORY = 64
MAX_REASON = 1_000
MAX_TAGS = 32
MAX_KEYWORDS = 64
MAX_LABEL = 64  # one tag or keyword
MAX_DEPTH = 16  # objects and lists in one another, the memory itself counted; no interpreter's stack decides
DEFAULT_CATEGORY = "fact"
CATEGORIES = ("instruction", "profile", "preference", "fact", "project", "event", "task")  # others keep their name

_KNOWN_KEYS = frozenset(
    ("v", "text", "createdAt", "updatedAt", "entity", "category", "source", "reason", "tags", "keywords")
)
_TIMESTAMP = re.compile(r"\d{4}-\d\d-\d\dT([01]\d|2[0-3]):\d\d:\d\d\.\d{3}Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Memory:
    """One memory at one revision. `id` is 32 lower-case hex digits; times are UTC in whole milliseconds."""

    id: str
    text: str
    created_at: datetime
    updated_at: datetime
    revision: int = 1
    entity: str = ""
    category: str = DEFAULT_CATEGORY
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    source: str = ""
    reason: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Draft:
    """What somebody wants remembered. Empty means absent."""

    text: str
    entity: str = ""
    category: str = DEFAULT_CATEGORY
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class Changes:
    """A correction: None keeps a field, an empty value clears it. `reason` belongs to the new revision."""

    text: str | None = None
    entity: str | None = None
    category: str | None = None
    tags: tuple[str, ...] | None = None
    keywords: tuple[str, ...] | None = None
    source: str | None = None
    reason: str = ""


def to_milliseconds(moment: datetime) -> datetime:
    """`moment` in UTC, cut to whole milliseconds, the resolution of the stored form."""
    utc = moment.astimezone(UTC)
    return utc.replace(microsecond=utc.microsecond // 1000 * 1000)


def format_time(moment: datetime) -> str:
    """UTC, RFC 3339, milliseconds: `2026-03-01T09:30:00.000Z`."""
    utc = moment.astimezone(UTC)
    # isoformat, unlike strftime, pads years below 1000 on every platform.
    return utc.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def parse_time(value: object) -> datetime:
    """The inverse of `format_time`; ValueError for anything that is not in exactly that form."""
    if not isinstance(value, str) or not _TIMESTAMP.fullmatch(value):
        raise ValueError("not a UTC time with milliseconds")
    return datetime.fromisoformat(value)


def from_draft(draft: Draft, memory_id: str, now: datetime) -> Memory:
    """The first revision of a memory; InvalidInput where a limit is passed."""
    moment = to_milliseconds(now)
    memory = Memory(
        id=memory_id,
        text=draft.text,
        created_at=moment,
        updated_at=moment,
        entity=draft.entity,
        category=tidy_category(draft.category),
        tags=tidy_labels(draft.tags),
        keywords=tidy_labels(draft.keywords),
        source=draft.source,
    )
    check(memory)
    return memory


def apply_changes(memory: Memory, changes: Changes, now: datetime) -> Memory:
    """The next revision, or `memory` itself when nothing would differ; InvalidInput where a limit is passed."""
    given: dict[str, Any] = {}
    for name in ("text", "entity", "source"):
        value = getattr(changes, name)
        if value is not None:
            given[name] = value
    if changes.category is not None:
        given["category"] = tidy_category(changes.category)
    if changes.tags is not None:
        given["tags"] = tidy_labels(changes.tags)
    if changes.keywords is not None:
        given["keywords"] = tidy_labels(changes.keywords)
    if all(getattr(memory, name) == value for name, value in given.items()):
        return memory
    # A clock that went back must not make the newer revision look older than the one it replaces.
    moment = max(to_milliseconds(now), memory.updated_at)
    changed = replace(memory, **given, updated_at=moment, revision=memory.revision + 1, reason=changes.reason)
    check(changed)
    return changed


def tidy_category(category: str) -> str:
    """As it is stored: without white space around it, the known ones in lower case, blank as the default."""
    stripped = category.strip()
    return stripped.lower() if stripped.lower() in CATEGORIES else stripped or DEFAULT_CATEGORY


def tidy_labels(labels: Iterable[str]) -> tuple[str, ...]:
    """Tags or keywords without space around them, blank ones or repetitions."""
    return tuple(dict.fromkeys(stripped for label in labels if (stripped := label.strip())))


def check(memory: Memory) -> None:
    """InvalidInput, naming the field, for a memory that may not be stored."""
    if not memory.text.strip():
        raise InvalidInput("text", "text is empty")
    for name, limit in (
        ("text", MAX_TEXT),
        ("entity", MAX_ENTITY),
        ("category", MAX_CATEGORY),
        ("source", MAX_SOURCE),
        ("reason", MAX_REASON),
    ):
        _check_string(name, getattr(memory, name), limit)
    for name, most in (("tags", MAX_TAGS), ("keywords", MAX_KEYWORDS)):
        labels: tuple[str, ...] = getattr(memory, name)
        if len(labels) > most:
            raise InvalidInput(name, f"{name} holds {len(labels)} values; at most {most} are allowed")
        for label in labels:
            _check_string(name, label, MAX_LABEL)
    size = len(to_json(memory))
    if size > MAX_JSON_BYTES:
        raise InvalidInput("text", f"the memory is {size:,} bytes as JSON; at most {MAX_JSON_BYTES:,} fit")


def named_fields(memory: Memory, show: Callable[[str], str] = str) -> dict[str, Any]:
    """A memory under the names that every reply and JSON output has for its fields; `show` is applied to its texts."""
    return {
        "id": memory.id,
        "text": show(memory.text),
        "entity": show(memory.entity),
        "category": show(memory.category),
        "tags": [show(tag) for tag in memory.tags],
        "keywords": [show(keyword) for keyword in memory.keywords],
        "source": show(memory.source),
        "createdAt": format_time(memory.created_at),
        "updatedAt": format_time(memory.updated_at),
        "revision": memory.revision,
    }


def to_json(memory: Memory) -> bytes:
    """The stored form. InvalidInput for what it cannot carry, such as lone surrogates and infinite numbers."""
    fields: dict[str, Any] = dict(memory.extra)
    fields.update(
        v=1,
        text=memory.text,
        createdAt=format_time(memory.created_at),
        updatedAt=format_time(memory.updated_at),
        category=memory.category,
    )
    for key in ("entity", "source", "reason"):
        if getattr(memory, key):
            fields[key] = getattr(memory, key)
    for key in ("tags", "keywords"):
        if getattr(memory, key):
            fields[key] = list(getattr(memory, key))
    if not within_depth(memory.extra):
        raise InvalidInput("text", f"the memory holds brackets in brackets more than {MAX_DEPTH} deep")
    # An error of these holds the text or a part of it, so none travels on as a context.
    try:
        text = json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return text.encode("utf-8")
    except UnicodeEncodeError:
        what = "half of a surrogate pair, which is no text"
    except (ValueError, RecursionError):
        what = "a value that cannot be written as JSON"
    raise InvalidInput("text", f"the memory holds {what}")


def decode_json(text: str) -> Any:
    """The one JSON value that is all of `text`, read so that it can be written back.

    ValueError for keys named twice, numbers no double holds and spaces around it, its kind UnicodeEncodeError for
    half of a surrogate pair; RecursionError for brackets too deep. All of them may carry the text.
    """
    value, end = _DECODER.raw_decode(text)
    if end != len(text):
        raise ValueError
    if "\\u" in text:  # the only way for half a surrogate pair into a text that was UTF-8
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    return value


def within_depth(fields: Mapping[str, Any]) -> bool:
    """Whether objects and lists are at most `MAX_DEPTH` deep in one another, `fields` itself counted."""
    level: list[Any] = [fields]
    for _ in range(MAX_DEPTH):
        items = (item for each in level for item in (each if isinstance(each, list) else each.values()))
        level = [item for item in items if isinstance(item, list | dict)]
        if not level:
            return True
    return False


def from_json(payload: bytes, memory_id: str, revision: int) -> Memory:
    """Read the stored form strictly; RecordDamaged (which never quotes the payload) if it is not one."""
    try:
        if len(payload) > MAX_JSON_BYTES:
            raise ValueError
        fields = decode_json(payload.decode("utf-8"))
        if type(fields) is not dict or type(fields["v"]) is not int or fields["v"] != 1:
            raise ValueError
        created, updated = parse_time(fields["createdAt"]), parse_time(fields["updatedAt"])
        extra = {key: fields[key] for key in fields.keys() - _KNOWN_KEYS}
        if not within_depth(extra):
            raise ValueError
        return Memory(
            id=memory_id,
            text=_string(fields["text"]),
            created_at=created,
            updated_at=updated,
            revision=revision,
            entity=_string(fields.get("entity", "")),
            category=_string(fields.get("category", DEFAULT_CATEGORY)) or DEFAULT_CATEGORY,
            tags=_strings(fields.get("tags", [])),
            keywords=_strings(fields.get("keywords", [])),
            source=_string(fields.get("source", "")),
            reason=_string(fields.get("reason", "")),
            extra=extra or _NO_EXTRA,
        )
    # The cause is dropped on purpose: a JSON error carries the document, which is the plaintext.
    except (ValueError, KeyError, RecursionError):
        pass
    raise RecordDamaged(memory_id)


_NO_EXTRA: Mapping[str, Any] = {}


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError
    return fields


def _no_constant(_: str) -> Any:
    raise ValueError


def _finite(literal: str) -> float:
    value = float(literal)
    if value in (float("inf"), float("-inf")):
        raise ValueError  # 1e999 in an unknown key: it could be read and never be written back
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite)


def _string(value: object) -> str:
    if type(value) is not str:
        raise ValueError
    return value


def _strings(value: object) -> tuple[str, ...]:
    if type(value) is not list:
        raise ValueError
    return tuple(map(_string, value))


def _check_string(name: str, value: str, limit: int) -> None:
    if len(value) > limit:
        raise InvalidInput(name, f"{name} is {len(value):,} characters long; at most {limit:,} are allowed")
