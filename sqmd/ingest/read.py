"""Bytes of a file to text, or the reason why they are none."""

from __future__ import annotations

import codecs
import os
import stat
from pathlib import Path

from sqmd.errors import Unreadable

# Far above any text that somebody wrote, and what parsing it may cost in memory is still bearable.
MAX_BYTES = 32 << 20
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a fifo must not hang
_BINARY = getattr(os, "O_BINARY", 0)
# UTF-32's little-endian mark begins with that of UTF-16.
_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_bytes(path: Path) -> bytes:
    """All of a plain file, or what a link to one leads to. Unreadable if it is none, too large, or not to be opened."""
    try:
        with open(os.open(path, os.O_RDONLY | _NO_WAIT | _BINARY), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise Unreadable(path, "it is no plain file")
            raw = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise Unreadable(path, (error.strerror or "it does not open").lower()) from error
    if len(raw) > MAX_BYTES:
        raise Unreadable(path, f"it is larger than {MAX_BYTES >> 20} MB")
    return raw


def decode(path: Path, raw: bytes) -> str:
    """The text of UTF-8, or UTF-16 with its mark: without it, lines end in "\\n". Unreadable, of `path`, for others."""
    if raw.startswith(_UTF_32):
        raise Unreadable(path, "it is UTF-32, and only UTF-8 and UTF-16 are read")
    encoding, name = ("utf-16", "UTF-16") if raw.startswith(_UTF_16) else ("utf-8-sig", "UTF-8")
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        # Guessing an encoding would put wrong words into the index without a word to anybody.
        raise Unreadable(path, f"it is not {name} at byte {error.start}") from error
    if "\0" in text:
        raise Unreadable(path, "it holds NUL characters, as binary files do")
    return text.replace("\r\n", "\n").replace("\r", "\n")
