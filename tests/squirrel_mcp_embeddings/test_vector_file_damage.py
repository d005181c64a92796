"""A vector file that is not as it was written: its torn end goes, or all of it, and nothing else is touched."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from squirrel_mcp_embeddings.vector_format import MAX_FILE_BYTES, Layout
from tests.squirrel_mcp_embeddings.vector_file_scene import (
    DIMENSION,
    MODEL,
    SHA256,
    TEXT_FORMAT,
    Row,
    Scene,
    listed,
    rows,
)

FIRST_ROWS = 80 + 4 + 28 + len(Layout(MODEL, SHA256, DIMENSION, TEXT_FORMAT).metadata)  # where segment 1 begins
SEGMENTS = [rows(1, 1), rows(2, 2), rows(1, 3)]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    """A file of three segments with rows."""
    made = Scene(tmp_path / "cache")
    mine = made.handle()
    for each in SEGMENTS:
        mine.append(each)
    return made


def place(scene: Scene, raw: bytes) -> None:
    scene.path.write_bytes(raw)
    scene.path.chmod(0o600)


def starts(raw: bytes) -> list[int]:
    """Where each segment begins, and the end of the last."""
    found = [80]
    while found[-1] < len(raw):
        found.append(found[-1] + 4 + struct.unpack_from(">I", raw, found[-1])[0])
    return found


def check_made_anew(scene: Scene) -> None:
    """After a write the file holds what was written, whatever was there before."""
    scene.handle().append(rows(1, 9))
    assert listed(scene.handle().load()) == listed(rows(1, 9))
    assert scene.files() == [scene.path.name]


def test_a_file_cut_off_anywhere_keeps_the_segments_that_are_whole(scene: Scene) -> None:
    raw = scene.path.read_bytes()
    ends = starts(raw)
    for size in range(len(raw)):
        place(scene, raw[:size])
        whole = sum(end <= size for end in ends[1:])
        expected = listed(*SEGMENTS[: whole - 1]) if whole else []
        assert listed(scene.handle().load()) == expected, size
        assert scene.path.exists() == (whole > 0)
        if whole:  # a reader leaves the torn end where it is: a writer may be at it
            assert scene.path.stat().st_size == size
        if size % 7 == 0:
            assert listed(scene.handle().append(rows(1, 9))) == expected
            assert listed(scene.handle().load()) == expected + listed(rows(1, 9))
            assert starts(scene.path.read_bytes())[-1] == scene.path.stat().st_size


def test_a_torn_end_is_cut_off_by_who_knew_the_file_as_well(scene: Scene) -> None:
    mine = scene.handle()
    mine.load()
    with scene.path.open("ab") as file:
        file.write(struct.pack(">I", 28 + 30 * 30) + b"x" * 900)
    assert listed(mine.append(rows(1, 9))) == []
    assert listed(scene.handle().load()) == listed(*SEGMENTS, rows(1, 9))


def test_a_bit_altered_anywhere_drops_the_file(scene: Scene) -> None:
    raw = scene.path.read_bytes()
    lengths = {start + i for start in starts(raw)[:-1] for i in range(4)}
    for at in range(len(raw)):
        for bit in range(8) if at in lengths else (at % 8,):
            changed = bytearray(raw)
            changed[at] ^= 1 << bit
            place(scene, bytes(changed))
            assert listed(scene.handle().load()) == []
            assert not scene.path.exists(), f"byte {at}"
    place(scene, raw)
    assert listed(scene.handle().load()) == listed(*SEGMENTS)


@pytest.mark.parametrize("at", [0, 30, FIRST_ROWS + 20, -1])
def test_a_writer_replaces_an_altered_file(scene: Scene, at: int) -> None:
    raw = bytearray(scene.path.read_bytes())
    raw[at] ^= 1
    place(scene, bytes(raw))
    assert listed(scene.handle().append(rows(1, 9))) == []
    assert listed(scene.handle().load()) == listed(rows(1, 9))


def test_segments_moved_repeated_or_taken_from_another_file_drop_the_file(scene: Scene) -> None:
    raw = scene.path.read_bytes()
    parts = [raw[a:b] for a, b in zip(starts(raw), starts(raw)[1:], strict=False)]
    scene.handle().rewrite(rows(1, 1))
    other = scene.path.read_bytes()
    other_parts = [other[a:b] for a, b in zip(starts(other), starts(other)[1:], strict=False)]
    for name, wrong in (
        ("moved", [parts[0], parts[2], parts[1]]),
        ("repeated", [parts[0], parts[1], parts[1]]),
        ("left out", [parts[0], parts[2]]),
        ("of another file", [parts[0], other_parts[1]]),
        ("another file's metadata", [other_parts[0], parts[1]]),
    ):
        place(scene, raw[:80] + b"".join(wrong))
        assert listed(scene.handle().load()) == [], name
        assert not scene.path.exists()
    check_made_anew(scene)


@pytest.mark.parametrize(
    "other",
    [
        {"account_id": b"b" * 16},
        {"model_id": "all-MiniLM-L6-v2"},
        {"model_sha256": bytes(32)},
        {"dimension": 8},
        {"text_format": 2},
    ],
    ids=lambda other: next(iter(other)),
)
def test_the_file_of_another_account_or_model_is_dropped(scene: Scene, other: dict[str, object]) -> None:
    theirs = scene.handle(**other)  # type: ignore[arg-type]
    theirs.rewrite(rows(1, dimension=8 if "dimension" in other else DIMENSION))
    raw = theirs.path.read_bytes()
    theirs.path.unlink()
    place(scene, raw)
    assert listed(scene.handle().load()) == []
    assert not scene.path.exists()
    place(scene, raw)
    check_made_anew(scene)


def a_link(path: Path, victim: Path) -> None:
    path.symlink_to(victim)


def a_dangling_link(path: Path, victim: Path) -> None:
    path.symlink_to(victim.with_name("nothing"))


def a_hard_link(path: Path, victim: Path) -> None:
    path.hardlink_to(victim)


def a_fifo(path: Path, _: Path) -> None:
    os.mkfifo(path, 0o600)


def open_to_the_group(path: Path, victim: Path) -> None:
    path.write_bytes(victim.read_bytes())
    path.chmod(0o640)


def open_to_all(path: Path, victim: Path) -> None:
    path.write_bytes(victim.read_bytes())
    path.chmod(0o602)


def too_large(path: Path, victim: Path) -> None:
    path.write_bytes(victim.read_bytes())
    path.chmod(0o600)
    os.truncate(path, MAX_FILE_BYTES + 1)


def of_another_user(path: Path, victim: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    path.write_bytes(victim.read_bytes())
    path.chmod(0o600)
    os.chown(path, 12345, 12345)


@pytest.mark.parametrize(
    "make",
    [a_link, a_dangling_link, a_hard_link, a_fifo, open_to_the_group, open_to_all, too_large, of_another_user],
)
@pytest.mark.parametrize("use", ["load", "append", "rewrite"])
def test_what_is_no_file_of_ours_alone_is_dropped_and_its_victim_untouched(
    scene: Scene, tmp_path: Path, make: Callable[[Path, Path], None], use: str
) -> None:
    victim = tmp_path / "victim"
    scene.path.rename(victim)
    content = victim.read_bytes()
    make(scene.path, victim)
    mine = scene.handle()
    expected: list[Row] = []
    if use == "load":
        assert listed(mine.load()) == []
        assert not os.path.lexists(scene.path)
    elif use == "append":
        assert listed(mine.append(rows(1, 9))) == []
        expected = listed(rows(1, 9))
    else:
        mine.rewrite(rows(1, 9))
        expected = listed(rows(1, 9))
    assert listed(scene.handle().load()) == expected
    assert victim.read_bytes() == content and not victim.is_symlink()
    assert not (tmp_path / "nothing").exists()
    if use == "load":
        check_made_anew(scene)


def test_a_link_or_a_fifo_put_there_between_two_appends_is_replaced(scene: Scene, tmp_path: Path) -> None:
    mine = scene.handle()
    mine.load()
    scene.path.rename(tmp_path / "victim")
    content = (tmp_path / "victim").read_bytes()
    for make in (a_link, a_fifo):
        scene.path.unlink(missing_ok=True)
        make(scene.path, tmp_path / "victim")
        mine.append(rows(1, 9))
        assert listed(scene.handle().load()) == listed(rows(1, 9))
    assert (tmp_path / "victim").read_bytes() == content


@pytest.mark.parametrize("length", [0, 27, 29, 28 + 31, 28 + 139_810 * 30 + 30, 2**32 - 1])
def test_a_length_out_of_bounds_drops_the_file_before_anything_is_read(scene: Scene, length: int) -> None:
    raw = scene.path.read_bytes()
    place(scene, raw + struct.pack(">I", length))
    assert listed(scene.handle().load()) == []
    assert not scene.path.exists()
