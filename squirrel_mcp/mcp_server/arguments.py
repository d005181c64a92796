"""What a client sends as arguments, read forgivingly where the meaning is clear.

null is absent, "5" is 5, a JSON string or a single string is a list, `expected_revision` is `expectedRevision`. What
is not clear is an InvalidInput that names the field; no message quotes a value, which may be a secret or very long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from squirrel_mcp import moments
from squirrel_mcp.errors import InvalidInput

MAX_QUERY = 16_000  # characters, as many as a memory's text
MAX_SHORT = 1_000  # ids, names, dates, cursors
_MAX_LIST = 100_000  # characters of a list written as JSON; the longest that may be stored needs a tenth
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}", re.ASCII)
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}


class Arguments:
    """The arguments of one call. A getter gives None for what is absent, InvalidInput for what it cannot read."""

    def __init__(self, given: Mapping[str, Any], known: Collection[str]) -> None:
        """`known` are the names that the tool has; `unknown` lists the others, which are ignored, for the reply."""
        self._given: dict[str, Any] = {}
        self.unknown: list[str] = []
        for name, value in given.items():
            plain = name if name in known else _camel_case(name)
            if plain not in known:
                self.unknown.append(name)
            elif plain == name or plain not in given:
                self._given[plain] = value

    def string(self, name: str, limit: int = MAX_SHORT) -> str | None:
        value = self._given.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise InvalidInput(name, f"{name} must be a string")
        return _checked(name, value, limit)

    def required(self, name: str, limit: int = MAX_SHORT, *, empty: bool = False) -> str:
        value = self.string(name, limit)
        if value is None or not (empty or value.strip()):
            raise InvalidInput(name, f"{name} is required" + ("" if empty else " and must not be empty"))
        return value

    def whole(self, name: str) -> int | None:
        value = self._given.get(name)
        if isinstance(value, str):
            stripped = value.strip()
            value = int(stripped) if _WHOLE.fullmatch(stripped) else None if not stripped else value
        elif isinstance(value, float) and value.is_integer():
            value = int(value)
        if value is None or type(value) is int:
            return value
        raise InvalidInput(name, f"{name} must be a whole number")

    def revision(self, name: str) -> int | None:
        value = self.whole(name)
        if value is not None and value < 1:
            # 0 would be no guard at all, and who sends one wants one.
            raise InvalidInput(name, f"{name} must be 1 or more; leave it out to change whatever is there")
        return value

    def flag(self, name: str) -> bool:
        value = self._given.get(name)
        if value is None:
            return False
        if isinstance(value, str):
            value = _BOOLEANS.get(value.strip().lower())
        if type(value) is bool:
            return value
        if type(value) is int and value in (0, 1):
            return bool(value)
        raise InvalidInput(name, f"{name} must be true or false")

    def labels(self, name: str) -> tuple[str, ...] | None:
        """A list of strings, a JSON string of one, or a single string; "" is the empty list."""
        value = self._given.get(name)
        if isinstance(value, str):
            value = _parsed_list(name, value)
        if value is None:
            return None
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise InvalidInput(name, f"{name} must be a list of strings")
        return tuple(_checked(name, each, MAX_SHORT) for each in value)

    def choice(self, name: str, choices: Collection[str]) -> str | None:
        value = self.string(name)
        if value is None or not value.strip():
            return None
        value = value.strip().lower()
        if value not in choices:
            raise InvalidInput(name, f"{name} must be one of {', '.join(choices)}")
        return value

    def moment(self, name: str, *, end: bool = False) -> datetime | None:
        """A date or a time, in the user's zone where it names none. A date is its first moment, or its last."""
        return moments.read(name, self.string(name), end=end)

    def memory_id(self, name: str = "id") -> str:
        """As it stands in replies; its resource address is taken too."""
        return self.required(name).strip().removeprefix("memory://").lower()

    def remark(self) -> str:
        """What to tell about unknown arguments; names only, and only what looks like one."""
        if not self.unknown:
            return ""
        names = ", ".join([name for name in self.unknown if _NAME.fullmatch(name)][:5])
        return f"Ignored arguments that this tool does not have: {names or len(self.unknown)}."


def _checked(name: str, value: str, limit: int) -> str:
    if len(value) > limit:
        raise InvalidInput(name, f"{name} is {len(value):,} characters long; at most {limit:,} are allowed")
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            # Without `from None` the error would carry the text along.
            raise InvalidInput(name, f"{name} holds half of a surrogate pair, which is no text") from None
    return value


def _parsed_list(name: str, value: str) -> Any:
    stripped = value.strip()
    if not stripped:
        return []
    if len(stripped) > _MAX_LIST:
        raise InvalidInput(name, f"{name} is too long")
    if stripped.startswith("["):
        try:
            return json.loads(stripped)
        except (ValueError, RecursionError):
            pass  # a label may begin with a bracket
    return [value]


def _camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(other.capitalize() for other in others)
