"""Addresses of documents, and parts of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote

from sqmd.errors import InvalidInput, NotInIndex
from sqmd.escaping import visible

if TYPE_CHECKING:
    from sqmd.ingest.parse import Document
    from sqmd.service import Service
    from sqmd.store.schema import FileRow

SCHEME = "md://"
_LINES = re.compile(r"L?(\d{1,9})(?:\s*[-–:]\s*L?(\d{1,9}))?", re.IGNORECASE)
_NAMED = 5  # files or sections in a message
_NOT_HERE = "There is no such document in the index; list_documents tells which there are."


class Part(NamedTuple):
    """Lines of a document, from 1, both included. A note where there was more than one to choose from."""

    line_start: int
    line_end: int
    note: str = ""


def uri_of(path: str) -> str:
    """`md:///notes/a%20b.md`"""
    posix = PurePath(path).as_posix()
    return SCHEME + quote(posix if posix.startswith("/") else f"/{posix}", safe="/:")


def path_of(uri: str) -> str:
    """The absolute path that a uri names. NotInIndex for anything else."""
    path = unquote(uri.removeprefix(SCHEME), errors="surrogateescape")
    if re.match(r"/[A-Za-z]:/", path):  # a drive
        path = path[1:]
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        raise NotInIndex(_NOT_HERE) from None
    if not uri.startswith(SCHEME) or "\0" in path or not Path(path).is_absolute():
        raise NotInIndex(_NOT_HERE)
    return path


def find(service: Service, given: str) -> FileRow:
    """The file of the index that an agent means: by its uri, its path, or the end of its path."""
    wanted = path_of(given) if given.startswith(SCHEME) else given
    if wanted.startswith("~"):
        wanted = str(_home(wanted))
    if Path(wanted).is_absolute():
        try:
            return service.document_at(wanted)[0]
        except NotInIndex:
            raise NotInIndex(_NOT_HERE) from None
    tail = "/" + PurePath(wanted).as_posix().removeprefix("./")
    found = [row for row in service.files() if PurePath(row.file_path).as_posix().endswith(tail)]
    if not found:
        raise NotInIndex(_NOT_HERE)
    if len(found) > 1:
        named = ", ".join(row.file_path for row in found[:_NAMED])
        raise InvalidInput("file_path", f"file_path fits {len(found)} documents: {named}.")
    return found[0]


def prefixes(service: Service, given: str) -> tuple[str, ...]:
    """What the path of a file begins with that an agent means by `given`; ("",) for any."""
    if not given:
        return ("",)
    if given.startswith(SCHEME):
        return (path_of(given),)
    if given.startswith("~"):
        return (str(_home(given)),)
    if Path(given).is_absolute():
        return (given,)
    return tuple(f"{folder.as_posix()}/{given.removeprefix('./')}" for folder in service.config.paths.watch_dirs)


def part_of(document: Document, wanted: str) -> Part:
    """The lines that `wanted` names: all for "", a range, a heading path or a heading. NotInIndex."""
    last = len(document.lines)
    if not wanted:
        return Part(1, last)
    lines = _LINES.fullmatch(wanted)
    if lines:
        start = int(lines[1])
        end = min(int(lines[2] or start), last)
        if not 1 <= start <= end:
            raise InvalidInput("section", f"section names lines that are not there; the document has {last}.")
        return Part(start, end)
    found = [number for number, names in enumerate(_names(document)) if _plain(wanted) in names]
    if not found:
        some = ", ".join(heading for heading, _, _ in list(outline(document))[:_NAMED])
        raise NotInIndex(f"The document has no such section; it begins with {some or 'no heading'}.")
    first = document.sections[found[0]]
    end = first.line_end
    for section in document.sections[found[0] + 1 :]:
        # With what is below it.
        if not first.heading_path or section.heading_path[: len(first.heading_path)] != first.heading_path:
            break
        if section.heading_path == first.heading_path:
            break
        end = section.line_end
    note = f"There are {len(found)} sections of this name; this is the first." if len(found) > 1 else ""
    return Part(first.line_start, end, note)


def outline(document: Document) -> Iterator[tuple[str, int, int]]:
    """(heading path, first line, last line) of every section that has a heading."""
    for section in document.sections:
        if section.heading_path:
            yield visible(" > ".join(section.heading_path)), section.line_start, section.line_end


def _names(document: Document) -> Iterator[set[str]]:
    """What each section may be called."""
    for section in document.sections:
        if section.heading_path:
            forms = (" > ".join(section.heading_path), section.heading_path[-1], section.heading_text)
            yield set(map(_plain, forms))
        else:
            yield set()


def _plain(heading: str) -> str:
    return " ".join(visible(heading).casefold().lstrip("# ").split())


def _home(path: str) -> Path:
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise NotInIndex(_NOT_HERE) from None
