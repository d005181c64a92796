"""What a file, a chunk and a text are known by. All are SHA-256 in hex, so they stand in any filter as they are."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path


def file_id(path: Path) -> str:
    """Of the absolute path: links in it are left as they are, so that the id follows from the name alone."""
    return hashlib.sha256(os.fsencode(os.path.abspath(path))).hexdigest()


def chunk_id(path: Path, section_index: int, chunk_index: int) -> str:
    """Of a chunk's place. Whatever is written there later has the same id."""
    # No path holds a NUL, so no two places are written alike.
    place = b"%b\0%d\0%d" % (os.fsencode(os.path.abspath(path)), section_index, chunk_index)
    return hashlib.sha256(place).hexdigest()


def bytes_hash(raw: bytes) -> str:
    """Of a file as it lies on disk."""
    return hashlib.sha256(raw).hexdigest()
