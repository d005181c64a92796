"""What a client sends as arguments, read forgivingly where the meaning is clear.

null is absent, "5" is 5, "true" is true, a single string or a JSON string is a list. What is not clear is an
InvalidInput that names the field; no message quotes a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from typing import Any

from sqmd.errors import InvalidInput
from sqmd.escaping import visible
from sqmd.mcp_server.bounds import cut

MAX_STRING = 10_000  # characters
MAX_STRINGS = 1_000  # in a list
_REMARK = 300  # bytes of the names in it
_WHOLE = re.compile(r"[+-]?\d{1,18}", re.ASCII)
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False, "": False}


class Arguments:
    """The arguments of one call. A getter gives its default for what is absent."""

    def __init__(self, given: Mapping[str, Any], known: Collection[str]) -> None:
        self._given = {name: value for name, value in given.items() if name in known and value is not None}
        self._unknown = [name for name in given if name not in known]

    def string(self, name: str) -> str:
        value = self._given.get(name, "")
        if not isinstance(value, str):
            raise InvalidInput(name, f"{name} must be a string.")
        if len(value) > MAX_STRING:
            raise InvalidInput(name, f"{name} is {len(value):,} characters long; at most {MAX_STRING:,} are allowed.")
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise InvalidInput(name, f"{name} holds half of a surrogate pair, which is no text.") from None
        return value.replace("\0", "")

    def required(self, name: str) -> str:
        value = self.string(name).strip()
        if not value:
            raise InvalidInput(name, f"{name} is required and must not be empty.")
        return value

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        value = self.string(name).strip().lower() or default
        if value not in choices:
            raise InvalidInput(name, f"{name} must be one of {', '.join(choices)}.")
        return value

    def whole(self, name: str, default: int, most: int) -> int:
        """Clamped to 1 .. most."""
        value = self._given.get(name, default)
        if isinstance(value, str):
            stripped = value.strip()
            value = int(stripped) if _WHOLE.fullmatch(stripped) else value if stripped else default
        elif isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int:
            raise InvalidInput(name, f"{name} must be a whole number.")
        return max(1, min(value, most))

    def flag(self, name: str) -> bool:
        value = self._given.get(name, False)
        if isinstance(value, str):
            value = _TRUTHS.get(value.strip().lower())
        elif type(value) is int and value in (0, 1):
            value = bool(value)
        if not isinstance(value, bool):
            raise InvalidInput(name, f"{name} must be true or false.")
        return value

    def strings(self, name: str) -> list[str]:
        value = self._given.get(name, [])
        if isinstance(value, str):
            value = _listed(value.strip())
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise InvalidInput(name, f"{name} must be a list of strings.")
        if len(value) > MAX_STRINGS:
            raise InvalidInput(name, f"{name} has {len(value):,} entries; at most {MAX_STRINGS:,} are allowed.")
        # Each is looked at as a string by itself.
        return [text for each in value if (text := Arguments({name: each}, (name,)).string(name).strip())]

    def remark(self) -> str:
        """What to tell about arguments that the tool does not have."""
        names = [visible(name) for name in self._unknown if len(name) <= 40][:5]
        return f"Ignored arguments that this tool does not have: {cut(', '.join(names), _REMARK)}." if names else ""


def _listed(value: str) -> Any:
    if value.startswith("["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            pass  # a file's name may begin with a bracket
    return [value]
