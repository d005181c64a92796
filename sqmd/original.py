"""The file behind a row of the index, which may have become something else since it was indexed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from sqmd.errors import Unreadable
from sqmd.ingest import identity
from sqmd.ingest.read import decode, read_bytes

if TYPE_CHECKING:
    from sqmd.store.schema import FileRow


def text_of(row: FileRow, folders: Sequence[Path]) -> str:
    """The text of that file as it is on disk now. Unreadable, also for a link that leads where nobody indexed.

    folders: what may be read through links. Elsewhere a link is followed only to the very bytes that were indexed,
    so that one that took the file's place, or a folder's above it, shows nothing that a search would not.
    """
    path = Path(row.file_path)
    real = Path(os.path.realpath(path))
    raw = read_bytes(real)
    # Who follows no link, or stays inside, reads what belongs to the index.
    if real != path and not is_inside(real, folders) and identity.bytes_hash(raw) != row.file_hash:
        raise Unreadable(path, "it is a link to what is not in the index")
    return decode(path, raw)


def is_inside(path: Path, folders: Sequence[Path]) -> bool:
    """Whether an absolute path, links followed, is one of these folders or below one."""
    if not path.is_absolute() or "\0" in str(path):
        return False
    real = Path(os.path.realpath(path))
    return any(real.is_relative_to(os.path.realpath(folder)) for folder in folders)


def placed(path: Path, folders: Sequence[Path]) -> Path:
    """Where a run over one of `folders` finds this path, if links lead into one; the path made absolute otherwise."""
    real = Path(os.path.realpath(path))
    behind = {os.path.realpath(folder): folder for folder in reversed(folders)}  # of two names the first
    for outer in sorted(behind, key=len):
        if real.is_relative_to(outer):
            return behind[outer] / real.relative_to(outer)
    return Path(os.path.abspath(path))
