from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from squirrel_mcp.errors import InvalidInput, RecordDamaged
from squirrel_mcp.memory import MAX_DEPTH, Memory, format_time, from_json, parse_time, to_json
from tests.squirrel_mcp.crypto.secrets_walk import spilled
from tests.squirrel_mcp.crypto.vector_readers import MEMORY_ID, outcome, read_memory_json
from tests.vectors.making.files import Case, cases, unpack

CANARY = "canary-in-the-text"

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
MOMENTS = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
JSON_VALUES = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), TEXTS
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=8,
)
KNOWN = {"v", "text", "createdAt", "updatedAt", "entity", "category", "source", "reason", "tags", "keywords"}
MEMORIES = st.builds(
    Memory,
    id=st.just(MEMORY_ID),
    text=TEXTS,
    created_at=MOMENTS,
    updated_at=MOMENTS,
    revision=st.integers(1, 2**40),
    entity=TEXTS,
    category=TEXTS.filter(bool),
    tags=st.lists(TEXTS, max_size=4).map(tuple),
    keywords=st.lists(TEXTS, max_size=4).map(tuple),
    source=TEXTS,
    reason=TEXTS,
    extra=st.dictionaries(TEXTS.filter(lambda key: key not in KNOWN), JSON_VALUES, max_size=4),
)


@pytest.mark.parametrize("case", cases("memory_json.json"), ids=lambda case: case["name"])
def test_memory_json_reads_exactly_as_the_vector_says(case: Case) -> None:
    if case["expect"] != "ok":
        assert outcome(lambda: read_memory_json(case)) == case["expect"]
        return
    assert to_json(read_memory_json(case)) == unpack(case["canonical"])


@given(memory=MEMORIES)
def test_a_memory_comes_back_from_its_json_with_everything_that_was_unknown(memory: Memory) -> None:
    assert from_json(to_json(memory), memory.id, memory.revision) == memory


@given(memory=MEMORIES)
def test_the_json_is_canonical(memory: Memory) -> None:
    payload = to_json(memory)
    text = payload.decode("utf-8")
    pairs: list[tuple[str, Any]] = []

    def ordered(members: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in members]
        assert names == sorted(names, key=lambda name: [ord(letter) for letter in name])
        assert len(set(names)) == len(names)
        pairs[:] = members
        return dict(members)

    decoded = json.loads(text, object_pairs_hook=ordered)
    assert json.dumps(decoded, ensure_ascii=False, separators=(",", ":")) == text
    assert None not in [value for name, value in pairs if name in KNOWN]
    assert to_json(from_json(payload, MEMORY_ID, 1)) == payload


def test_keys_are_in_the_order_of_code_points_and_not_of_utf_16() -> None:
    memory = Memory(MEMORY_ID, "t", datetime.now(UTC), datetime.now(UTC), extra={"\U0001f43f": 1, "\uffee": 2})
    text = to_json(memory).decode()
    assert text.index("\uffee") < text.index("\U0001f43f")
    assert "\U0001f43f".encode("utf-16-be") < "\uffee".encode("utf-16-be")


def leaks(payload: bytes) -> list[str]:
    """Reads a payload that holds the canary; what of it an error would give away."""
    try:
        from_json(payload, MEMORY_ID, 1)
    except RecordDamaged as error:
        return spilled(error, [CANARY])
    return []


@given(payload=st.binary(max_size=300))
def test_random_bytes_are_a_damaged_record_and_nothing_worse(payload: bytes) -> None:
    assert outcome(lambda: from_json(payload, MEMORY_ID, 1)) == "record_damaged"


@given(fields=st.dictionaries(st.sampled_from([*sorted(KNOWN), "later"]), JSON_VALUES), shape=st.integers(0, 3))
@example(fields={"later": float("inf")}, shape=0)
def test_any_json_is_a_memory_or_a_damaged_record(fields: dict[str, Any], shape: int) -> None:
    required = {
        "v": 1,
        "text": CANARY,
        "createdAt": "2026-03-01T09:30:00.000Z",
        "updatedAt": "2026-03-01T09:30:00.000Z",
    }
    value: Any = [required | fields, fields, [required, fields], required | {"text": [CANARY, fields]}][shape]
    assert leaks(json.dumps(value).encode()) == []


@given(text=st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")), at=st.integers(0, 60))
def test_no_error_carries_the_payload(text: bytes, at: int) -> None:
    payload = f'{{"text":"{CANARY}","v":1}}'.encode()
    for damaged in (payload[:at] + text + payload[at:], payload + text, text + payload, payload[: at % len(payload)]):
        assert leaks(damaged) == []


@pytest.mark.parametrize("depth", [1, MAX_DEPTH - 1, MAX_DEPTH, 100, 900, 5_000, 30_000])
def test_json_however_deep_is_written_back_or_damaged(depth: int) -> None:
    times = '"createdAt":"2026-03-01T09:30:00.000Z","later":{},"text":"t","updatedAt":"2026-03-01T09:30:00.000Z"'
    payload = f'{{"category":"fact",{times},"v":1}}'.replace("{}", "[" * depth + "]" * depth).encode()
    try:
        memory = from_json(payload, MEMORY_ID, 1)
    except RecordDamaged:
        assert depth >= MAX_DEPTH
        return
    assert depth < MAX_DEPTH and to_json(memory) == payload


@pytest.mark.parametrize("field", ["text", "entity", "category", "source", "reason"])
def test_half_a_surrogate_pair_is_not_written_and_not_quoted(field: str) -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    fields: dict[str, Any] = {"text": "t", field: CANARY + "\ud83d"}
    with pytest.raises(InvalidInput) as caught:
        to_json(Memory(id=MEMORY_ID, created_at=moment, updated_at=moment, **fields))
    assert spilled(caught.value, [CANARY]) == []


@pytest.mark.parametrize(
    "value", [float("inf"), float("-inf"), float("nan"), {"deep": "\ud83d"}, {"long": 10**5_000}], ids=type
)
def test_what_json_cannot_carry_is_invalid_input_and_not_quoted(value: object) -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    with pytest.raises(InvalidInput) as caught:
        to_json(Memory(MEMORY_ID, CANARY, moment, moment, extra={"later": [CANARY, value]}))
    assert spilled(caught.value, [CANARY]) == []


@pytest.mark.parametrize("depth", [MAX_DEPTH, 100_000])
def test_what_is_nested_too_deep_to_write_is_invalid_input(depth: int) -> None:
    moment = datetime(2026, 3, 1, tzinfo=UTC)
    value: list[object] = []
    for _ in range(depth - 1):
        value = [value]
    with pytest.raises(InvalidInput):
        to_json(Memory(MEMORY_ID, "t", moment, moment, extra={"later": value}))


@given(moment=MOMENTS)
def test_a_time_comes_back_from_its_text(moment: datetime) -> None:
    assert parse_time(format_time(moment)) == moment


@given(moment=MOMENTS, hours=st.integers(-12, 12))
def test_a_time_is_written_in_utc(moment: datetime, hours: int) -> None:
    try:
        elsewhere = moment.astimezone(timezone(timedelta(hours=hours)))
    except OverflowError:
        return
    assert format_time(elsewhere) == format_time(moment)


@given(text=st.one_of(st.text(max_size=30), st.from_regex(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", fullmatch=True)))
@example(text="2026-03-01T24:00:00.000Z")  # Python 3.13 and later read it as the next day
@example(text="2026-03-01T09:30:00.000Z\n")
@example(text="2026-12-31T23:59:60.000Z")
def test_what_reads_as_a_time_is_written_the_same(text: str) -> None:
    try:
        moment = parse_time(text)
    except ValueError:
        return
    assert format_time(moment) == text
