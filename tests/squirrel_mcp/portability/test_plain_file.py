"""JSON lines out and in."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.errors import RecordDamaged
from squirrel_mcp.memory import MAX_DEPTH, Memory, from_json, tidy_category, tidy_labels
from squirrel_mcp.portability.plain_file import MAX_LINE_BYTES, PlainFile, encode, read

NOW = datetime(2026, 3, 1, 9, 30, 0, 123456, tzinfo=UTC)
ID = "0123456789abcdef0123456789abcdef"
FULL = {
    "id": ID,
    "revision": 1,
    "v": 1,
    "text": "The router is 10.0.7.1",
    "createdAt": "2026-03-01T09:30:00.000Z",
    "updatedAt": "2026-03-01T09:30:00.000Z",
}

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
MOMENTS = st.datetimes(timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
MEMORIES = st.builds(
    Memory,
    id=st.integers(1, 2**128 - 1).map(lambda number: f"{number:032x}"),
    text=TEXT.map(lambda text: text + "."),
    created_at=MOMENTS,
    updated_at=MOMENTS,
    revision=st.integers(1, 2**53 - 1),
    entity=TEXT,
    category=TEXT.map(tidy_category),
    tags=st.lists(TEXT, max_size=3).map(tidy_labels),
    keywords=st.lists(TEXT, max_size=3).map(tidy_labels),
    source=TEXT,
    reason=TEXT,
    extra=st.dictionaries(st.sampled_from(["later", "newer"]), st.none() | st.integers(0, 9) | TEXT, max_size=2),
)


def _read(*lines: object) -> PlainFile:
    raw = b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines)
    return read(BytesIO(raw), now=NOW)


@given(st.lists(MEMORIES, max_size=4, unique_by=lambda memory: memory.id))
def test_what_was_written_is_read_back(memories: list[Memory]) -> None:
    raw = b"".join(encode(memories))
    found = read(BytesIO(raw), now=NOW)
    assert found.bad == []
    assert found.incoming.revisions == {memory.id: [memory] for memory in memories}


@given(MEMORIES)
def test_a_line_is_one_line_for_every_reader(memory: Memory) -> None:
    (line,) = encode([memory])
    assert len(line.decode().splitlines()) == 1
    assert not any("\x7f" <= char <= "\x9f" for char in line.decode())


def test_a_line_needs_no_more_than_text() -> None:
    (memory,) = _read({"text": "likes tea"}).incoming.fresh
    assert (memory.text, memory.category, memory.revision) == ("likes tea", "fact", 1)
    assert memory.created_at == memory.updated_at == NOW.replace(microsecond=123000)


def test_two_lines_without_id_get_two_ids() -> None:
    first, second = _read({"text": "a"}, {"text": "b"}).incoming.fresh
    assert first.id != second.id


def test_a_line_without_id_may_say_when_it_was() -> None:
    (memory,) = _read({"text": "a", "createdAt": "2020-02-02T10:00:00+02:00"}).incoming.fresh
    assert memory.created_at == memory.updated_at == datetime(2020, 2, 2, 8, tzinfo=UTC)


def test_revisions_come_in_order_whatever_the_order_of_their_lines() -> None:
    second = {**FULL, "revision": 2, "text": "The router is 10.0.9.1"}
    (revisions,) = _read(second, FULL).incoming.revisions.values()
    assert [memory.revision for memory in revisions] == [1, 2]


def test_the_same_line_twice_is_one_memory() -> None:
    found = _read(FULL, FULL)
    assert found.bad == [] and len(found.incoming.revisions[ID]) == 1


def test_empty_lines_a_byte_order_mark_and_crlf_are_no_errors() -> None:
    found = _read(b'\xef\xbb\xbf{"text": "a"}\r\n', b"\r\n", b"  \n", b'{"text": "b"}')
    assert found.bad == [] and [memory.text for memory in found.incoming.fresh] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"not json\n", "is not JSON"),
        (b'{"text": "a", "text": "b"}\n', "names a key twice"),
        (b'{"text": NaN}\n', "is not JSON"),
        (b"[" * 100_000 + b"\n", "deep"),
        (b'{"text": "\xff"}\n', "is not UTF-8"),
        (b'{"text": "\\ud800"}\n', "surrogate"),
        (b'{"text": "' + b"x" * MAX_LINE_BYTES + b'"}\n', "is longer"),
        (["text"], "is not a JSON object"),
        ({}, "has no text"),
        ({"text": 5}, "text that is not a string"),
        ({"text": "  "}, "text is empty"),
        ({"text": "x" * 16_001}, "16,001 characters"),
        ({"text": "a", "tags": "b"}, "tags that is not a list"),
        ({"text": "a", "tags": [5]}, "tags that is not a list"),
        ({"text": "a", "entity": None}, "entity that is not a string"),
        ({"text": "a", "tag": ["b"]}, "key that is not known"),
        ({"text": "a", "revision": 2}, "revision but no id"),
        ({"text": "a", "createdAt": "yesterday"}, "createdAt"),
        ({"text": "a", "createdAt": "2026-03-01T09:30:00"}, "no time with a zone"),
        ({"text": "a", "createdAt": "0001-01-01T00:00:00+14:00"}, "createdAt"),
        ({"text": "a", "createdAt": 5}, "createdAt"),
        ({**FULL, "id": "abc"}, "id that is not"),
        ({**FULL, "id": "0" * 32}, "id that is not"),
        ({**FULL, "id": ID.upper()}, "id that is not"),
        ({**FULL, "revision": True}, "revision that is not"),
        ({**FULL, "revision": 0}, "revision that is not"),
        ({**FULL, "v": 2}, "later version"),
        ({**FULL, "v": True}, "later version"),
        ({"id": ID, "text": "a"}, "lacks createdAt"),
    ],
)
def test_a_bad_line_is_named_by_number_and_the_others_are_read(line: object, problem: str) -> None:
    found = _read({"text": "before"}, line, {"text": "after"})
    ((number, said),) = found.bad
    assert number == 2 and problem in said
    assert [memory.text for memory in found.incoming.fresh] == ["before", "after"]


ODD_VALUES = st.recursive(
    st.sampled_from(["1e999", "-1e999", "NaN", "Infinity", "1e308", "9" * 5_000, r'"\ud800"', '{"a":1,"a":2}', "1"]),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{','.join(items)}]")
        | inner.map(lambda item: f'{{"later":{item}}}')
        | st.tuples(inner, st.integers(1, 2_000)).map(lambda pair: "[" * pair[1] + pair[0] + "]" * pair[1])
    ),
    max_leaves=4,
)


@given(st.lists(ODD_VALUES, min_size=1, max_size=2), st.booleans())
def test_whatever_an_unknown_key_holds_is_kept_or_refused(values: list[str], exported: bool) -> None:
    fields = json.dumps(FULL if exported else {"text": "a"})[:-1]
    lines = "".join(f'{fields},"x":{value}}}\n' for value in values)
    found = read(BytesIO(lines.encode()), now=NOW)
    kept = [memory for memories in found.incoming.revisions.values() for memory in memories]
    again = read(BytesIO(b"".join(encode(kept))), now=NOW)
    assert again.bad == [] and again.incoming.revisions == found.incoming.revisions
    assert kept or found.bad
    assert exported or not found.incoming.fresh


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("1e999", "number that is too large"),
        ("[-1e999]", "number that is too large"),
        ("NaN", "is not JSON"),
        ('{"a":1,"a":1}', "names a key twice"),
        (r'"\ud800"', "surrogate"),
        ("[" * MAX_DEPTH + "]" * MAX_DEPTH, "deep"),
        ("[" * 900 + "]" * 900, "deep"),
        ("[" * 5_000 + "]" * 5_000, "deep"),
    ],
)
def test_an_unknown_key_of_an_exported_line_holds_nothing_that_could_not_be_stored(value: str, problem: str) -> None:
    line = f'{json.dumps(FULL)[:-1]},"x":{value}}}\n'.encode()
    found = _read(line, {"text": "after"})
    ((number, said),) = found.bad
    assert number == 1 and problem in said
    assert len(found.incoming.fresh) == 1


@pytest.mark.parametrize("line", [{"text": "a"}, FULL])
def test_category_tags_and_keywords_are_tidied_as_those_of_a_new_memory(line: dict[str, object]) -> None:
    found = _read({**line, "category": " task ", "tags": [" a", "a", " "], "keywords": ["b ", "c", "b"]})
    (memory,) = [*found.incoming.fresh, *(each for (each,) in found.incoming.revisions.values())]
    assert (memory.category, memory.tags, memory.keywords) == ("task", ("a",), ("b", "c"))


def test_a_blank_category_is_the_default_one() -> None:
    (memory,) = _read({"text": "a", "category": " \t"}).incoming.fresh
    assert memory.category == "fact"


def test_a_problem_does_not_quote_the_memory() -> None:
    found = _read(
        {"text": "hunter2", "createdAt": "hunter2"},
        b'{"text": "hunter2" hunter2\n',
        {"text": "a", "hunter2": 1},
        {**FULL, "hunter2": {"hunter2": [[]]}, "text": 5},
    )
    assert len(found.bad) == 4 and "hunter2" not in repr(found.bad)


def test_a_revision_that_says_two_things_names_the_line_it_differs_from() -> None:
    found = _read(FULL, {"text": "x"}, {**FULL, "text": "something else"})
    assert [(number, "line 1" in said) for number, said in found.bad] == [(3, True)]


@given(st.integers(1, 2 * MAX_DEPTH), st.sampled_from(["[]", '{"a":}']))
def test_an_import_takes_what_can_be_read_back_and_nothing_deeper(depth: int, brackets: str) -> None:
    begin, end = brackets[:-1], brackets[-1]
    line = f'{json.dumps(FULL)[:-1]},"x":{begin * (depth - 1)}[]{end * (depth - 1)}}}\n'
    found = _read(line.encode())
    fits = depth < MAX_DEPTH  # the line itself is the first
    assert [(bad.number, "deep" in bad.problem) for bad in found.bad] == ([] if fits else [(1, True)])
    stored = json.loads(line)
    payload = json.dumps({key: stored[key] for key in stored.keys() - {"id", "revision"}}).encode()
    if fits:
        assert from_json(payload, ID, 1) == found.incoming.revisions[ID][0]
    else:
        with pytest.raises(RecordDamaged):
            from_json(payload, ID, 1)
