"""JSON as it is meant: UTF-8, one value, no duplicate names, no floats, NaN or huge integers, not nested deeply."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from squirrel_server.http.problems import malformed

_MOST = 2**53  # integers stay below, so that every JSON library reads them exactly
_DIGITS = len(str(_MOST)) + 1


def parse(body: bytes) -> Any:
    """The value, or a `Problem` that repeats nothing of the body."""
    try:
        # Decoded here: json would take UTF-16, and UTF-8 with a byte order mark, as well.
        return _parse(body.decode("utf-8"))
    except (ValueError, RecursionError):
        raise malformed("The body is not JSON in UTF-8.") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise malformed("The body has an object with the same name twice.")
    return found


def _integer(digits: str) -> int:
    if len(digits) > _DIGITS or not -_MOST < (number := int(digits)) < _MOST:
        raise malformed("The body has an integer of 2^53 or more.")
    return number


def _no_number(_: str) -> NoReturn:
    raise malformed("The body has a number that is no integer.")


_parse = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_no_number, parse_constant=_no_number
).decode
