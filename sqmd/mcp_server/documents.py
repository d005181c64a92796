"""Documents by what an agent calls them: an address, a path, the end of one."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

from sqmd.config_values import absolute
from sqmd.errors import InvalidInput, NotInIndex

if TYPE_CHECKING:
    from sqmd.service import Service
    from sqmd.store.schema import FileRow

SCHEME = "md://"
_NAMED = 5  # files in a message
_NOT_HERE = "There is no such document in the index; list_documents tells which there are."


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
    found = [path for path in service.paths() if PurePath(path).as_posix().endswith(tail)]
    if len(found) > 1:
        raise InvalidInput("file_path", f"file_path fits {len(found)} documents: {', '.join(found[:_NAMED])}.")
    rows = service.files_at(found)
    if not rows:
        raise NotInIndex(_NOT_HERE)
    return rows[0]


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


def _home(path: str) -> Path:
    try:
        return absolute(path)
    except ValueError:
        raise NotInIndex(_NOT_HERE) from None
