"""Text as a literal in LanceDB's SQL: nothing in it means anything."""

from __future__ import annotations

import os
from collections.abc import Iterable


def literal(text: str) -> str:
    """A string literal; quotes are doubled, NUL cannot be in one."""
    return "'" + text.replace("\0", "").replace("'", "''") + "'"


def one_of(column: str, values: Iterable[str]) -> str:
    """`column IN (...)`, and false for no values."""
    listed = ", ".join(map(literal, values))
    return f"{column} IN ({listed})" if listed else "false"


def contains(column: str, text: str) -> str:
    """Whether the column holds the text literally: unlike LIKE, `%` and `_` are themselves."""
    return f"contains({column}, {literal(text)})"


def starts_with(column: str, text: str) -> str:
    """The same of the column's beginning."""
    return f"starts_with({column}, {literal(text)})"


def below(column: str, path: str) -> str:
    """Whether the column holds this absolute path or one below it."""
    return f"({column} = {literal(path)} OR {starts_with(column, path.rstrip(os.sep) + os.sep)})"


def any_of(conditions: Iterable[str]) -> str:
    """Whether one of them holds, and false for none."""
    return " OR ".join(conditions) or "false"
