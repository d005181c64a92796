"""What a setting may hold: from a plain value of YAML, or the text of a variable, to what the program uses.

A kind's `read` raises ValueError whose text continues "search.rrf_k ": "must be a whole number from 1 to 10000". No
text holds the value, which may be a key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from sqmd.ingest.ignore import IgnoreRules

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")  # two letters at least: C:// is a drive
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


@dataclass(frozen=True, slots=True)
class Kind:
    """`read(value, folder)`: relative paths start at `folder`. `parse` makes a value of a variable's text."""

    expects: str
    read: Callable[[object, Path], Any]
    parse: Callable[[str], object] = str


def text(*, empty: bool = False) -> Kind:
    expects = "text" if empty else "text that is not empty"

    def read(value: object, _: Path) -> str:
        if not isinstance(value, str) or not (value.strip() or empty):
            raise ValueError(_must(expects, value))
        return value

    return Kind(expects, read)


def choice(*names: str) -> Kind:
    expects = f"one of {', '.join(names)}"

    def read(value: object, _: Path) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError(_must(expects, value))
        return value

    return Kind(expects, read)


def whole(least: int, most: int) -> Kind:
    expects = f"a whole number from {least} to {most}"

    def read(value: object, _: Path) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise ValueError(_must(expects, value))
        return value

    def parse(raw: str) -> object:
        return int(raw) if re.fullmatch(r"[+-]?[0-9]{1,18}", raw) else raw

    return Kind(expects, read, parse)


def truth() -> Kind:
    expects = "true or false"

    def read(value: object, _: Path) -> bool:
        if not isinstance(value, bool):
            raise ValueError(_must(expects, value))
        return value

    return Kind(expects, read, lambda raw: _TRUTHS.get(raw.lower(), raw))


def folder() -> Kind:
    """A path: absolute afterwards, `~` expanded, links left as they are."""
    expects = "a path"

    def read(value: object, base: Path) -> Path:
        return absolute(_text_of(expects, value), base)

    return Kind(expects, read)


def place() -> Kind:
    """Where the database lies: a path as above, or the URI of an object store as it is written. Both as text."""
    expects = "a path or a URI such as s3://bucket/folder"

    def read(value: object, base: Path) -> str:
        given = _text_of(expects, value)
        return given if is_uri(given) else str(absolute(given, base))

    return Kind(expects, read)


def url() -> Kind:
    expects = "a URL that starts with http:// or https://"

    def read(value: object, _: Path) -> str:
        if not isinstance(value, str) or not _is_url(value):
            raise ValueError(_must(expects, value))
        return value.rstrip("/")

    return Kind(expects, read)


def extension() -> Kind:
    expects = "an ending with its dot, such as .md"

    def read(value: object, _: Path) -> str:
        if not isinstance(value, str) or not re.fullmatch(r"(\.[^./\\\s]+)+", value):
            raise ValueError(_must(expects, value))
        return value.lower()

    return Kind(expects, read)


def rule() -> Kind:
    expects = "a rule as in a .gitignore"

    def read(value: object, _: Path) -> str:
        if not isinstance(value, str) or not value.strip():
            raise ValueError(_must(expects, value))
        try:
            IgnoreRules([value])
        except ValueError as error:
            raise ValueError(f"{_must(expects, value)}, not one that {error}") from None
        return value

    return Kind(expects, read)


def many(kind: Kind) -> Kind:
    """A list. In a variable its parts are parted by commas; a comma that belongs to one is written as `\\,`."""
    expects = f"a list, and each part of it {kind.expects}"

    def read(value: object, base: Path) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(_must(expects, value))
        return tuple(kind.read(each, base) for each in value)

    def parse(raw: str) -> object:
        parts = (part.replace("\\,", ",").strip() for part in re.split(r"(?<!\\),", raw))
        return [kind.parse(part) for part in parts if part]

    return Kind(expects, read, parse)


def is_uri(value: str) -> bool:
    """Whether a `db_path` names an object store rather than a folder."""
    return bool(_URI.match(value))


def without_login(value: str) -> str:
    """A URL as it may be shown: without `user:password@`. Other text stays as it is."""
    return re.sub(r"(?<=://)[^/?#]*@", "", value)


def absolute(given: str | Path, base: Path | None = None) -> Path:
    """`given` with `~` and `~name` expanded and without `..`, below `base`, or where we are, if relative.

    Links are left as they are. ValueError as of a kind: its text continues "~nobody/notes ".
    """
    if "\0" in str(given):
        raise ValueError("holds a NUL, which no path does")
    try:
        return Path(os.path.abspath((base or Path()) / Path(given).expanduser()))
    except RuntimeError:
        raise ValueError("starts with a home folder that cannot be found") from None
    except OSError:
        raise ValueError("is relative, and the folder that we are in is gone") from None


def _is_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
        _ = parts.port  # ValueError where it is no number, as in the http://user:pass/word@host that somebody meant
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and not re.search(r"\s", value)


def _text_of(expects: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError(_must(expects, value))
    return value


def _must(expects: str, value: object) -> str:
    """Names the type where that is what is wrong."""
    match value:
        case None:
            return f"is empty; it must be {expects}"
        case bool():
            return f"must be {expects}, not true or false"
        case int() | float():
            return f"must be {expects}" if "number" in expects else f"must be {expects}; a number needs quotes there"
        case list():
            return f"must be {expects}, not a list"
        case dict():
            return f"must be {expects}, not keys and values"
        case _:
            return f"must be {expects}"
