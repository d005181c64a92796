"""The companion's vector files, as much as this package knows of them: where they lie and whose they are.

Which model made a file only the companion can tell. Every file starts with the same words and the id of its key,
so that a memory can be forgotten, and an account deleted, without the companion. docs/protocol.md, section 1.6.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from squirrel_mcp.crypto.key_set import KeyRing
from squirrel_mcp.crypto.keys import KID_BYTES

FOLDER = "squirrel-notes"
PREFIX = "memory-vectors-"
MAGIC = b"SQVC"
KID_AT = 8  # after magic, version and three zeros
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_BINARY = getattr(os, "O_BINARY", 0)


def drop(cache_dir: Path, ring: KeyRing, *, keep: Path | None = None) -> None:
    """Delete the vector files under the cache directory that one of these keys made, unfinished ones included.

    `keep`: the one to leave, as its owner knows what is in it.
    What cannot be read or deleted is left: vectors are a cache, and what called this has already happened.
    """
    drop_of(cache_dir, {ring.current.kid, *(key.dek.kid for key in ring.retired)}, keep=keep)


def drop_of(cache_dir: Path, kids: Collection[bytes], *, keep: Path | None = None) -> None:
    """`drop` for who knows no more of the keys than their ids."""
    folder = cache_dir / FOLDER
    with suppress(OSError):
        if not stat.S_ISDIR(os.lstat(folder).st_mode):
            return
        for path in [*folder.glob(f"{PREFIX}*.bin"), *folder.glob(f"{PREFIX}*.bin.new")]:
            if keep is not None and path.name in (keep.name, f"{keep.name}.new"):
                continue
            with suppress(OSError):
                if _kid(path) in kids:
                    path.unlink()


def _kid(path: Path) -> bytes | None:
    fd = os.open(path, os.O_RDONLY | _NO_FOLLOW | _NO_WAIT | _BINARY)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        raw = os.read(fd, KID_AT + KID_BYTES)
    finally:
        os.close(fd)
    return raw[KID_AT:] if raw.startswith(MAGIC) else None
