"""memory_json.json: the JSON inside a memory record."""

from __future__ import annotations

from typing import Any

from tests.vectors.making.files import Case, case

_TIMES = '"createdAt":"2026-03-01T09:30:00.000Z"', '"updatedAt":"2026-03-02T10:00:00.123Z"'


def build() -> dict[str, Any]:
    return {
        "about": "Memory JSON: section 2 of the protocol. `payload` is what a reader gets, `canonical` what a writer "
        "makes of it again; `utf8` spells a payload for people.",
        "cases": [*_positive(), *_refused()],
    }


def _json(*members: str) -> str:
    """An object of these members, as they are, with the required ones where they belong."""
    return "{" + ",".join(sorted([*members, *_TIMES, '"v":1'], key=lambda member: member.encode("utf-32-be"))) + "}"


def _positive() -> list[Case]:
    minimal = _json('"category":"fact"', '"text":"t"')
    canonical = [
        ("minimal", minimal, "What every memory has."),
        (
            "everything",
            _json(
                '"category":"preference"',
                '"entity":"Ada"',
                '"keywords":["oak","tree"]',
                '"reason":"a typing error"',
                '"source":"chat"',
                '"tags":["work"]',
                '"text":"Acorns.\\nUnder the oak \\"Otto\\"."',
            ),
            "Every field.",
        ),
        (
            "scripts",
            _json('"category":"fact"', '"text":"\u00e9 \u0430 \u4e2d \U0001f43f"'),
            "Non-ASCII is not escaped.",
        ),
        (
            "key_order",
            _json('"category":"fact"', '"text":"t"', '"\uffee":1', '"\U0001f43f":2', '"Z":3', '"a":4', '"z":5'),
            "By code point: U+FFEE before U+1F43F, though its UTF-16 is the other way round.",
        ),
        (
            "unknown_keys",
            _json('"category":"fact"', '"later":{"a":[1,2.5,null,true,"\u00e9"],"b":{}}', '"text":"t"', '"x":-7'),
            "What a newer version added is kept and written back.",
        ),
        (
            "control_characters",
            _json('"category":"fact"', '"text":"\\u0000\\b\\t\\u001f\x7f\u2028"'),
            "Escaped where JSON asks for it and nowhere else.",
        ),
    ]
    found = [
        case(name, "ok", comment, utf8=text, payload=text.encode(), canonical=text.encode())
        for name, text, comment in canonical
    ]
    for name, text, comment in (
        ("no_category", _json('"text":"t"'), "An absent category is `fact`."),
        ("empty_values", _json('"category":"fact"', '"entity":""', '"tags":[]', '"text":"t"'), "Empty is absent."),
        ("escaped", _json('"category":"fact"', '"text":"\\u0074"'), "Escapes are read, and not written back."),
        ("surrogate_pair", _json('"category":"fact"', '"text":"\\ud83d\\udc3f"'), "A pair is a character."),
    ):
        again = {"escaped": minimal, "surrogate_pair": _json('"category":"fact"', '"text":"\U0001f43f"')}
        found.append(
            case(name, "ok", comment, utf8=text, payload=text.encode(), canonical=again.get(name, minimal).encode())
        )
    fill = 63_484 - len(minimal)
    before, after = minimal.split('"t"')
    found.append(
        case(
            "longest",
            "ok",
            "63,484 bytes.",
            payload=_long(before, after, fill + 1),
            canonical=_long(before, after, fill + 1),
        )
    )
    for name, text, comment in (
        ("deepest_arrays", _nested(15, "[", "]"), "16 deep, the memory itself counted."),
        ("deepest_objects", _nested(15, '{"a":', "}", "{}"), "16 deep, the memory itself counted."),
    ):
        found.append(case(name, "ok", comment, utf8=text, payload=text.encode(), canonical=text.encode()))
    return found


def _nested(depth: int, opening: str, closing: str, innermost: str = "[]") -> str:
    """A memory with an unknown key whose value is that many arrays or objects in one another."""
    value = opening * (depth - 1) + innermost + closing * (depth - 1)
    return _json('"category":"fact"', f'"later":{value}', '"text":"t"')


def _long(before: str, after: str, times: int) -> list[Any]:
    return [(before + '"').encode().hex(), ["61", times], ('"' + after).encode().hex()]


def _refused() -> list[Case]:
    minimal = _json('"category":"fact"', '"text":"t"')
    before, after = minimal.split('"t"')
    texts = [
        ("duplicate_key", _json('"text":"t"', '"text":"u"'), "A key twice."),
        ("duplicate_key_escaped", _json('"text":"t"', '"t\\u0065xt":"u"'), "The same key, spelt differently."),
        ("duplicate_key_inside", _json('"later":{"a":1,"a":2}', '"text":"t"'), "A key twice, in an unknown value."),
        ("lone_surrogate", _json('"text":"\\ud83d"'), "Half of a pair."),
        ("lone_surrogate_low", _json('"text":"\\udc3f\\ud83d"'), "A pair the wrong way round."),
        ("lone_surrogate_in_tag", _json('"tags":["\\ud83d"]', '"text":"t"'), "Half of a pair in a tag."),
        ("lone_surrogate_in_unknown", _json('"later":{"a":["\\ud83d"]}', '"text":"t"'), "In an unknown value."),
        ("lone_surrogate_in_key", _json('"\\ud83d":1', '"text":"t"'), "In an unknown key."),
        ("no_text", _json('"category":"fact"'), "A required key is missing."),
        ("no_created_at", minimal.replace(_TIMES[0] + ",", ""), "A required key is missing."),
        ("no_version", minimal.replace(',"v":1', ""), "A required key is missing."),
        ("version_2", minimal.replace('"v":1', '"v":2'), "A version that does not exist."),
        ("version_true", minimal.replace('"v":1', '"v":true'), "No number."),
        ("version_float", minimal.replace('"v":1', '"v":1.0'), "Not an integer."),
        ("text_null", minimal.replace('"t"', "null"), "Absent is omitted, never null."),
        ("text_number", minimal.replace('"t"', "1"), "Not a string."),
        ("entity_null", _json('"entity":null', '"text":"t"'), "Absent is omitted, never null."),
        ("tags_string", _json('"tags":"a"', '"text":"t"'), "Not an array."),
        ("tags_number", _json('"tags":[1]', '"text":"t"'), "Not an array of strings."),
        ("keywords_null", _json('"keywords":[null]', '"text":"t"'), "Not an array of strings."),
        ("nan", _json('"later":NaN', '"text":"t"'), "Not JSON."),
        ("infinity", _json('"later":-Infinity', '"text":"t"'), "Not JSON."),
        ("float_overflow", _json('"later":1e999', '"text":"t"'), "A number no double holds: it could not be kept."),
        ("time_without_milliseconds", minimal.replace("00.000Z", "00Z"), "Another precision."),
        ("time_with_offset", minimal.replace("00.000Z", "00.000+00:00"), "Another spelling of UTC."),
        ("time_lower_case", minimal.replace("00.000Z", "00.000z"), "Another spelling of UTC."),
        ("time_february_30", minimal.replace("2026-03-01T", "2026-02-30T"), "No day."),
        ("time_24", minimal.replace("T09:30:00.000", "T24:00:00.000"), "No hour."),
        ("time_other_digits", minimal.replace("2026-03-01", "202\uff16-03-01"), "Digits of another script."),
        ("time_number", minimal.replace('"2026-03-01T09:30:00.000Z"', "1772357400000"), "Not a string."),
        ("array", "[" + minimal + "]", "Not an object."),
        ("string", '"t"', "Not an object."),
        ("null", "null", "Not an object."),
        ("two_values", minimal + minimal, "Something after the object."),
        ("comma_at_the_end", minimal[:-1] + ",}", "Not JSON."),
        ("control_character", minimal.replace('"t"', '"\n"'), "A control character that is not escaped."),
        ("byte_order_mark", "\ufeff" + minimal, "A mark before the object."),
    ]
    found = [case(name, "record_damaged", comment, payload=text.encode(), utf8=text) for name, text, comment in texts]
    found += [
        case("empty", "record_damaged", "Nothing.", payload=b""),
        case("utf_16", "record_damaged", "Another encoding.", payload=minimal.encode("utf-16-le")),
        case(
            "not_utf_8",
            "record_damaged",
            "A byte that is no UTF-8.",
            payload=minimal.encode().replace(b'"t"', b'"\xff"'),
        ),
        case(
            "surrogate_in_utf_8",
            "record_damaged",
            "Half of a pair as three bytes, which is no UTF-8.",
            payload=minimal.encode().replace(b'"t"', b'"\xed\xa0\xbd"'),
        ),
        case("too_long", "record_damaged", "63,485 bytes.", payload=_long(before, after, 63_484 - len(minimal) + 2)),
        case("deep", "record_damaged", "Arrays in arrays.", payload=[["5b", 30_000], ["5d", 30_000]]),
    ]
    for name, text in (
        ("one_too_deep_arrays", _nested(16, "[", "]")),
        ("one_too_deep_objects", _nested(16, '{"a":', "}", "{}")),
    ):
        found.append(case(name, "record_damaged", "17 deep.", payload=text.encode(), utf8=text))
    return found
