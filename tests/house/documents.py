"""The documents people read, and what they claim: commands, variables, links."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.house.sources import ROOT

PROGRAM = "squirrel-mcp"
# A command stands in backticks or begins a line of a block; what follows two spaces there explains it.
_INLINE = re.compile(r"`([^`\n]+)`")
_FENCE = re.compile(r"(?ms)^```[a-z]*\n(.*?)^```$")
_GENERATED = re.compile(r"(?s)<!-- demo:begin.*?<!-- demo:end -->")
_COMMAND = re.compile(rf"(?:\.venv/bin/|uvx )?{PROGRAM}((?: [^\s]+)*)")
_VARIABLE = re.compile(r"\bSQUIRREL_[A-Z_]*[A-Z]\b")
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


@dataclass(frozen=True)
class Claim:
    """Something that `file` says there is."""

    file: str
    text: str


def documents() -> list[Path]:
    """README, the other papers at the root, docs/ and the skill."""
    return [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("skills/**/*.md"))]


def _read(path: Path) -> tuple[str, str]:
    return path.relative_to(ROOT).as_posix(), path.read_text("utf-8")


def commands_in(text: str) -> Iterator[str]:
    """The arguments of every `squirrel-mcp ...` that `text` shows, such as "passphrase change"."""
    text = _GENERATED.sub("", text)
    lines = [line.split("  ")[0] for block in _FENCE.findall(text) for line in block.splitlines()]
    for candidate in [*_INLINE.findall(_FENCE.sub("", text)), *lines]:
        found = _COMMAND.fullmatch(candidate.strip())
        if found:
            yield found[1].strip()


def claimed_commands() -> list[Claim]:
    """Every command line that a document shows."""
    return [
        Claim(file, command) for file, text in map(_read, documents()) for command in sorted(set(commands_in(text)))
    ]


def named_variables() -> dict[str, str]:
    """Every SQUIRREL_ variable that a document names, with one of those documents."""
    return {name: file for file, text in map(_read, documents()) for name in _VARIABLE.findall(text)}


def variables_in(source: str) -> set[str]:
    """The SQUIRREL_ variables that a source file names."""
    return set(_VARIABLE.findall(source))


def links() -> list[Claim]:
    """Every link of every document that leads to a place in this repository."""
    return [
        Claim(file, target)
        for file, text in map(_read, documents())
        for target in _LINK.findall(_FENCE.sub("", text))
        if "://" not in target
    ]


def anchors(path: Path) -> set[str]:
    """The anchors of a document's headings, as the common hosts make them."""
    headings = re.findall(r"(?m)^#+ (.+)$", _FENCE.sub("", path.read_text("utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
