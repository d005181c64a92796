"""The tools' schemas, written by hand so that every client takes them.

No anyOf, oneOf, $ref, const, type arrays or formats, every array has items, every property a type
(tests/squirrel_mcp/mcp_server/schema_lint.py). `semanticScore` may be null, which such a schema cannot say: it stands
in no `properties`, and additional ones are allowed.
"""

from __future__ import annotations

from typing import Any

from squirrel_mcp.memory import MAX_TAGS, MAX_TEXT

Schema = dict[str, Any]


def _typed(kind: str, description: str) -> Schema:
    return {"type": kind, "description": description} if description else {"type": kind}


def text(description: str = "") -> Schema:
    return _typed("string", description)


def whole(description: str = "") -> Schema:
    return _typed("integer", description)


def number(description: str = "") -> Schema:
    return _typed("number", description)


def flag(description: str = "") -> Schema:
    return _typed("boolean", description)


def one_of(choices: tuple[str, ...], description: str = "") -> Schema:
    return {**text(description), "enum": list(choices)}


def many(items: Schema, description: str = "") -> Schema:
    return {**_typed("array", description), "items": items}


def counts(description: str = "") -> Schema:
    return {**_typed("object", description), "additionalProperties": {"type": "integer"}}


def record(properties: dict[str, Schema], required: tuple[str, ...] = (), description: str = "") -> Schema:
    schema = {**_typed("object", description), "properties": properties}
    return {**schema, "required": list(required)} if required else schema


def limit(default: int) -> Schema:
    return {**whole("How many at most."), "minimum": 1, "maximum": 50, "default": default}


_FIELDS: dict[str, Schema] = {
    "id": text(),
    "text": text(),
    "entity": text(),
    "category": text(),
    "tags": many(text()),
    "keywords": many(text()),
    "source": text(),
    "createdAt": text("UTC"),
    "updatedAt": text("UTC"),
    "revision": whole(),
}
MEMORY = record(_FIELDS, tuple(_FIELDS))
_FRESHNESS = {
    "note": text("Something to know about this answer."),
    "stale": flag("The store could not be asked: others may have written since asOf."),
    "asOf": text("UTC"),
    "truncated": flag("Not everything fitted into one reply; get_memory gives a text whole."),
}

# What a memory holds, as arguments of save_memory and update_memory.
CONTENT: dict[str, Schema] = {
    "text": text(f"The memory: self-contained, in words it will be asked by. At most {MAX_TEXT:,} characters."),
    "entity": text("Who or what it is about, for example a person, project or machine."),
    "category": text(
        "profile, instruction, preference, fact (the default), project, event, task, or a name of your own."
    ),
    "tags": many(text(), f"Labels to filter by, at most {MAX_TAGS}."),
    "keywords": many(text(), "Other words that somebody may search it by: synonyms, other spellings, translations."),
    "source": text("Where it comes from, for example a conversation, a file, an address."),
}
FILTERS: dict[str, Schema] = {
    "category": text("Only this category."),
    "entity": text("Only about this entity."),
    "tags": many(text(), "Only with all of these tags."),
}
MEMORY_ID = text("The memory's id.")
EXPECTED_REVISION = whole(
    "The revision you read. If somebody changed the memory since, nothing happens and you get the current one."
)

_HIT = record(
    {
        **_FIELDS,
        "score": number("Compare within one answer only."),
        "lexicalScore": number("Which part of the query's words it holds, 0 to 1."),
        "nearMiss": flag("A candidate to check, not an answer."),
    },
    (*_FIELDS, "score", "lexicalScore"),
    "Also semanticScore: the cosine, or null where meaning was not compared.",
)
_REVISION = record({**_FIELDS, "reason": text("Why it was changed.")}, tuple(_FIELDS))

CONTEXT = record(
    {
        "today": text("The user's date."),
        "groups": many(record({"category": text(), "memories": many(MEMORY)}, ("category", "memories"))),
        "omitted": counts("How many memories of each category are not shown."),
        "total": whole(),
        **_FRESHNESS,
    },
    ("today", "groups", "omitted", "total"),
)
SEARCH = record(
    {
        "query": text(),
        "ranking": one_of(("lexical", "hybrid")),
        "total": whole("How many memories match."),
        "searched": whole("How many memories were looked at."),
        "hits": many(_HIT),
        **_FRESHNESS,
    },
    ("query", "ranking", "total", "searched", "hits"),
)
SAVED = record(
    {
        "status": one_of(("saved", "already_present")),
        "id": text(),
        "revision": whole(),
        "similar": many(
            record({"id": text(), "text": text(), "score": number()}, ("id", "text", "score")),
            "Memories that look like this one: correct one of them if it is about the same thing.",
        ),
        "note": text(),
    },
    ("status", "id", "revision", "similar"),
)
UPDATED = record(
    {
        "status": one_of(("updated", "unchanged", "conflict", "not_found")),
        "id": text(),
        "revision": whole(),
        "current": {**MEMORY, "description": "With a conflict: the memory as it is now."},
        "note": text(),
    },
    ("status", "id"),
)
FORGOTTEN = record(
    {
        "status": one_of(("forgotten", "not_found", "conflict")),
        "id": text(),
        "revision": whole("With a conflict: the one there is now."),
        "current": {**MEMORY, "description": "With a conflict: the memory as it is now."},
        "note": text(),
    },
    ("status", "id"),
)
FOUND = record(
    {
        **_FIELDS,
        "reason": text("Why this revision was made."),
        "history": many(_REVISION, "Earlier revisions, latest first."),
        **_FRESHNESS,
    },
    tuple(_FIELDS),
)
PAGE = record(
    {
        "memories": many(MEMORY),
        "total": whole(),
        "nextCursor": text("There is more: pass it as cursor."),
        **_FRESHNESS,
    },
    ("memories", "total"),
)
STATUS = record(
    {
        "unlocked": flag(),
        "vault": text("Where the memories are."),
        "problem": record(
            {"code": text(), "message": text(), "whatToDo": text()},
            ("code", "message"),
            "Why the memories cannot be used, or only read.",
        ),
        "total": whole(),
        "counts": counts("Memories in each category."),
        "damaged": many(text(), "Ids of memories whose record does not open."),
        "lastSync": text("UTC"),
        "ranking": one_of(("lexical", "hybrid")),
        "model": text("Empty where words alone rank."),
        "embedded": whole("How many memories have a vector."),
        "recoveryCode": flag("Whether there is a recovery code."),
        "lastExport": text("UTC; absent if there was none."),
        "fingerprint": text("Head of the log, to compare with another device."),
        "version": text(),
        "note": text(),
    },
    ("unlocked", "embedded", "version"),
)
