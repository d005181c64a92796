"""Files to text: what is read, and why the rest is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sqmd.errors import Unreadable
from sqmd.ingest import read as room
from sqmd.ingest.read import decode, read_bytes


def read(path: Path) -> str:
    return decode(path, read_bytes(path))


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (b"", ""),
        (b"na\xc3\xafve\n", "naïve\n"),
        (b"\xef\xbb\xbf# Title\r\ntext\rmore\n", "# Title\ntext\nmore\n"),
        ("# 日本語\r\n".encode("utf-16"), "# 日本語\n"),
        (b"\xfe\xff" + "ab".encode("utf-16-be"), "ab"),
        ("a\u2028b\x0cc\x85d".encode(), "a\u2028b\x0cc\x85d"),
    ],
)
def test_utf_8_and_utf_16_are_read_without_their_mark_and_with_our_line_ends(
    raw: bytes, text: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(raw)
    assert read(path) == text


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        ("naïve".encode("latin-1"), "it is not UTF-8 at byte 2"),
        (b"\xff\xfea", "it is not UTF-16 at byte 2"),
        (b"\xff\xfe\x00\xd8", "it is not UTF-16 at byte 2"),
        ("ab".encode("utf-32"), "it is UTF-32, and only UTF-8 and UTF-16 are read"),
        (b"\x89PNG\r\n", "it is not UTF-8 at byte 0"),
        (b"a\0b", "it holds NUL characters, as binary files do"),
        ("ab".encode("utf-16-le"), "it holds NUL characters, as binary files do"),
    ],
)
def test_what_is_no_such_text_is_reported_with_the_reason(raw: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_bytes(raw)
    with pytest.raises(Unreadable) as caught:
        read(path)
    assert caught.value.reason == reason


def test_a_file_that_is_gone_or_a_folder_is_reported(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone.md"):
        with pytest.raises(Unreadable):
            read(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no fifos here")
def test_a_fifo_does_not_hang_the_reader(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.md")
    with pytest.raises(Unreadable, match="no plain file"):
        read(tmp_path / "a.md")


def test_a_file_without_measure_is_not_read_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "MAX_BYTES", 1 << 20)
    (tmp_path / "a.md").write_bytes(b"a" * ((1 << 20) + 1))
    with pytest.raises(Unreadable, match="larger than 1 MB"):
        read(tmp_path / "a.md")
