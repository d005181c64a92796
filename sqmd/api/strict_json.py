"""JSON as it is meant: UTF-8, one value, no name twice, no NaN, not nested deeply."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from sqmd.api.problems import invalid


def parse(body: bytes) -> Any:
    """The value, or a `Problem` that repeats nothing of the body."""
    try:
        # Decoded here: json would take UTF-16, and UTF-8 with a byte order mark, as well.
        return _parse(body.decode("utf-8"))
    except (ValueError, RecursionError):  # huge integers are a ValueError
        raise invalid("The body is not JSON in UTF-8.") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise invalid("The body has an object with the same name twice.")
    return found


def _no_number(_: str) -> NoReturn:
    raise invalid("The body has a number that JSON does not know.")


_parse = json.JSONDecoder(object_pairs_hook=_object, parse_constant=_no_number).decode
