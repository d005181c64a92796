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

from squirrel_mcp import private_files
from squirrel_mcp.crypto.key_set import KeyRing
from squirrel_mcp.crypto.keys import KID_BYTES
from squirrel_mcp.errors import StoreError, UnsafeFile

FOLDER = "squirrel-notes"
PREFIX = "memory-vectors-"
MAGIC = b"SQVC"
KID_AT = 8  # after magic, version and three zeros
_PATIENCE = 1.0  # seconds
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
        names = {path.name.removesuffix(".new") for path in folder.glob(f"{PREFIX}*.bin*")}
        for path in sorted(folder / name for name in names if keep is None or name != keep.name):
            if _is_of(path, kids):
                # Its writer may be in the middle of replacing it; one that never ends is not waited for.
                with suppress(StoreError, UnsafeFile), private_files.lock(path.with_suffix(".lock"), _PATIENCE):
                    _unlink(path, kids)
                _unlink(path, kids)


def _is_of(path: Path, kids: Collection[bytes]) -> bool:
    return any(_kid(each) in kids for each in _with_unfinished(path))


def _unlink(path: Path, kids: Collection[bytes]) -> None:
    for each in _with_unfinished(path):
        with suppress(OSError):
            if _kid(each) in kids:
                each.unlink()


def _with_unfinished(path: Path) -> tuple[Path, Path]:
    return path, path.with_name(f"{path.name}.new")


def _kid(path: Path) -> bytes | None:
    """Whose a file is; None for what is none, or cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | _NO_FOLLOW | _NO_WAIT | _BINARY)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        raw = os.read(fd, KID_AT + KID_BYTES)
    finally:
        os.close(fd)
    return raw[KID_AT:] if raw.startswith(MAGIC) else None
