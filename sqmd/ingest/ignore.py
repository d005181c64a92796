"""Which paths the rules of a .gitignore leave out, decided as git does: level by level, the last rule that fits.

Not by pathspec: what it makes of `build` fits what is in that folder too, so that it cannot be asked level by level,
and asked for whole paths it has files back from folders that are left out, which git does not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

# Two stars between slashes, other stars, one character, a set, an escaped character, any other.
_PART = re.compile(
    r"(?:^|(?<=/))(?P<deep>\*\*+(?:/|$))|(?P<stars>\*+)|(?P<one>\?)|\\(?P<escaped>.)|(?P<other>[^\\[])"
    r"|\[(?P<negated>[!^]|(?![!^]))(?P<set>(?:\]|\[:[a-z]*:\]|\\.|[^\]\\])(?:\[:[a-z]*:\]|\\.|[^\]\\])*)\]",
    re.DOTALL,
)
_MEMBER = re.compile(r"\[:([a-z]*):\]|\\?(.)(?:-\\?(.))?", re.DOTALL)
_NAMED = {
    "alnum": "0-9A-Za-z", "alpha": "A-Za-z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r" \t-\r", "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Rule:
    path: re.Pattern[str]
    ignores: bool
    folders_only: bool


class IgnoreRules:
    """Paths are relative to where the rules are anchored, with slashes. ValueError for a line that is no rule."""

    def __init__(self, lines: Sequence[str]) -> None:
        rules = [rule for rule in map(_rule, lines) if rule]
        self._last_first = rules[::-1]
        self._exceptions = not all(rule.ignores for rule in rules)

    def ignore(self, path: str, *, folder: bool) -> bool:
        """Of this path alone: in git, and here, whatever is in an ignored folder is left out too."""
        for rule in self._last_first:
            if not rule.folders_only and folder and not self._exceptions and rule.path.fullmatch(f"{path}/"):
                return True  # `path/**`: git would look into it, and leave out all that it finds
            if (folder or not rule.folders_only) and rule.path.fullmatch(path):
                return rule.ignores
        return False


def _rule(line: str) -> _Rule | None:
    """None for a comment or a blank line."""
    text = re.sub(r"(?<!\\) +$", "", line)
    if not text or text.startswith("#"):
        return None
    ignores = not text.startswith("!")
    text = text if ignores else text[1:]
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    path = "" if "/" in text else "(?:.*/)?"  # a name alone fits at every depth
    text = text.removeprefix("/")
    if not text:
        raise ValueError("names nothing")
    place = 0
    while place < len(text):
        part = _PART.match(text, place)
        if part is None:
            raise ValueError("has a [ or \\ without its end")
        path += _expression(part)
        place = part.end()
    return _Rule(re.compile(path, re.DOTALL), ignores, folders_only)


def _expression(part: re.Match[str]) -> str:
    match part.lastgroup:
        case "deep":
            return "(?:.*/)?" if part["deep"].endswith("/") else ".*"
        case "stars":
            return "[^/]*"
        case "one":
            return "[^/]"
        case "set":
            inside = "".join(map(_member, _MEMBER.finditer(part["set"])))
            return f"(?!/)[{'^' if part['negated'] else ''}{inside}]"
        case _:
            return re.escape(part["escaped"] or part["other"])


def _member(found: re.Match[str]) -> str:
    """Of a set: `[:alpha:]`, `a-z` or `a`."""
    name, first, last = found.groups()
    if first is None:
        if name not in _NAMED:
            raise ValueError(f"has [:{name}:], which is no kind of character")
        return _NAMED[name]
    span = f"{re.escape(first)}-{re.escape(last)}" if last and first <= last else ""
    return re.escape(first) + span
