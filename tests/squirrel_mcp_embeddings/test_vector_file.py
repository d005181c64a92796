"""The vector file as the ranker uses it: rows come back, writers share it, keys change."""

from __future__ import annotations

import ctypes
import os
import stat
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from squirrel_mcp import private_files
from squirrel_mcp.errors import StoreFull, StoreUnavailable, UnsafeFile
from squirrel_mcp_embeddings import vector_file
from squirrel_mcp_embeddings.vector_file import Rows
from tests.squirrel_mcp_embeddings.vector_file_scene import DIMENSION, Scene, listed, ring, rows


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "cache")


def transferred() -> tuple[int, int]:
    """Bytes this process has asked the system to read and to write so far."""
    text = Path("/proc/self/io").read_text()
    counts = dict(line.split(": ") for line in text.splitlines())
    return int(counts["rchar"]), int(counts["wchar"])


def test_no_file_holds_no_rows_and_reading_makes_none(scene: Scene) -> None:
    found = scene.handle().load()
    assert [each.shape for each in found] == [(0, 16), (0,), (0, DIMENSION)]
    assert not scene.cache_dir.exists()


def test_rows_come_back_as_they_were_given(scene: Scene) -> None:
    mine = scene.handle()
    mine.append(rows(3, 1))
    mine.append(rows(2, 2))
    found = scene.handle().load()
    assert listed(found) == listed(rows(3, 1), rows(2, 2))
    assert [each.dtype for each in found] == [np.uint8, np.uint64, np.float16]
    assert all(each.flags.writeable and each.flags.c_contiguous for each in found)


def test_every_value_of_half_precision_survives(scene: Scene) -> None:
    patterns = np.arange(2**16, dtype=np.uint16).view(np.float16).reshape(-1, 4)
    count = len(patterns)
    scene.handle(dimension=4).append(
        Rows(np.zeros((count, 16), np.uint8), np.full(count, 2**64 - 1, np.uint64), patterns)
    )
    assert scene.handle(dimension=4).load().vectors.view(np.uint16).ravel().tolist() == list(range(2**16))


def test_more_rows_than_a_segment_holds_are_split(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    many = rows(6_000, dimension=384)
    mine = scene.handle(dimension=384)
    mine.append(many)
    mine.append(rows(5_296, 2, dimension=384))
    assert listed(scene.handle(dimension=384).load()) == listed(many, rows(5_296, 2, dimension=384))
    mine.rewrite(many)
    assert listed(scene.handle(dimension=384).load()) == listed(many)


def test_folder_and_files_are_private_and_the_name_tells_nothing(scene: Scene) -> None:
    before = os.umask(0)
    try:
        scene.handle().append(rows(1))
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in scene.path.parent.iterdir()}
    assert modes == {scene.path.name: 0o600, scene.path.with_suffix(".lock").name: 0o600}
    assert stat.S_IMODE(scene.path.parent.stat().st_mode) == 0o700
    others = [
        scene.handle(model_id="all-MiniLM-L6-v2"),
        scene.handle(text_format=2),
        scene.handle(account_id=bytes(16)),
        scene.handle(keys=lambda: ring("another")),
    ]
    assert len({scene.path, *(other.path for other in others)}) == 5
    assert b"gte" not in scene.path.read_bytes()


def test_what_another_process_appended_is_handed_over_once(scene: Scene) -> None:
    mine, other = scene.handle(), scene.handle()
    assert listed(mine.append(rows(1, 1))) == []
    assert listed(other.append(rows(2, 2))) == listed(rows(1, 1))
    assert listed(other.append(rows(1, 3))) == []
    assert listed(mine.append(rows(1, 4))) == listed(rows(2, 2), rows(1, 3))
    assert listed(other.append(Rows.none(DIMENSION))) == listed(rows(1, 4))
    assert listed(scene.handle().load()) == listed(rows(1, 1), rows(2, 2), rows(1, 3), rows(1, 4))


def test_after_another_process_rewrote_the_file_all_of_it_is_handed_over(scene: Scene) -> None:
    mine, other = scene.handle(), scene.handle()
    mine.append(rows(5, 1))
    other.rewrite(rows(2, 2))
    assert listed(mine.append(rows(1, 3))) == listed(rows(2, 2))
    # Two rewrites may bring the old inode back: a file is known by its salt.
    other.rewrite(rows(2, 4))
    other.rewrite(rows(2, 5))
    assert listed(mine.append(rows(1, 6))) == listed(rows(2, 5))
    assert listed(mine.load()) == listed(rows(2, 5), rows(1, 6))


def test_a_rewrite_holds_nothing_of_what_was_there(scene: Scene) -> None:
    mine = scene.handle()
    mine.append(rows(5, 1))
    before = scene.path.read_bytes()
    mine.rewrite(rows(1, 1))
    after = scene.path.read_bytes()
    assert before[8:24] == after[8:24] and before[24:80] != after[24:80]  # same key, another salt
    assert listed(mine.load()) == listed(rows(1, 1))
    assert scene.files() == [scene.path.name]


def test_nothing_to_add_writes_nothing(scene: Scene) -> None:
    scene.handle().append(Rows.none(DIMENSION))
    assert scene.files() == []


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="counts of the system")
def test_an_append_to_a_large_file_neither_reads_nor_writes_it_again(scene: Scene) -> None:
    mine = scene.handle(dimension=384)
    mine.rewrite(rows(10_000, dimension=384))
    reads, writes = transferred()
    mine.append(rows(1, 2, dimension=384))
    reads, writes = (after - before for after, before in zip(transferred(), (reads, writes), strict=True))
    assert writes < 64_000 and reads < 64_000
    assert scene.handle(dimension=384).load().size == 10_001


def test_rows_of_other_shapes_or_types_are_refused(scene: Scene) -> None:
    good = rows(2)
    for wrong in (
        good._replace(ids=good.ids[:1]),
        good._replace(revisions=good.revisions.astype(np.int64)),  # type: ignore[arg-type]
        good._replace(vectors=good.vectors.astype(np.float32)),  # type: ignore[arg-type]
        rows(2, dimension=5),
    ):
        with pytest.raises(ValueError, match="shapes"):
            scene.handle().append(wrong)
    assert not scene.cache_dir.exists()


def test_threads_and_processes_append_at_once_and_nothing_is_lost(scene: Scene) -> None:
    handles = [scene.handle() for _ in range(4)]
    start = threading.Barrier(4)

    def write(number: int) -> None:
        start.wait()
        for turn in range(10):
            handles[number].append(rows(1, 100 * number + turn))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    expected = listed(*(rows(1, 100 * number + turn) for number in range(4) for turn in range(10)))
    assert sorted(listed(scene.handle().load())) == sorted(expected)


def test_a_file_under_a_retired_key_is_read_and_rewritten_at_the_next_write(scene: Scene) -> None:
    mine, other = scene.handle(), scene.handle()
    mine.append(rows(2, 1))
    other.append(rows(1, 2))
    name = scene.path.name
    scene.ring = ring("first", "second", "third")
    assert listed(scene.handle().load()) == listed(rows(2, 1), rows(1, 2))
    assert scene.path.read_bytes()[8:24] == ring("first").current.kid
    assert listed(mine.append(rows(1, 3))) == listed(rows(1, 2))
    assert scene.path.read_bytes()[8:24] == ring("third").current.kid
    assert listed(scene.handle().load()) == listed(rows(2, 1), rows(1, 2), rows(1, 3))
    assert scene.files() == [name]


def test_a_file_under_a_key_that_the_account_does_not_have_is_dropped(scene: Scene) -> None:
    scene.ring = ring("first", "second")
    scene.handle().append(rows(2))
    early = scene.handle(keys=lambda: ring("first"))  # a process that has not met the rotation
    assert listed(early.load()) == []
    assert scene.files() == []


BOUND_BY_MODES = """
import ctypes
libc = ctypes.CDLL(None)
header, words = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
assert libc.capget(header, words) == 0
words[0] &= ~0b110  # modes do not bind root unless it gives up these capabilities
assert libc.capset(header, words) == 0
"""
FULL_DISK = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (MOST, MOST))
"""
ATTEMPT = """
import sys
from pathlib import Path
from squirrel_mcp.errors import SquirrelError
from tests.squirrel_mcp_embeddings.vector_file_scene import Scene, listed, rows
handle = Scene(Path(sys.argv[1])).handle()
print(handle.load().size)
for write in (handle.append, handle.rewrite):
    try:
        write(rows(500, 2))
        print("written")
    except SquirrelError as error:
        print(error.code)
"""


def attempt(scene: Scene, before: str) -> list[str]:
    """What a process says that reads the file and then tries to write it; it is left as it was."""
    content = scene.path.read_bytes()
    result = subprocess.run(
        [sys.executable, "-c", before + textwrap.dedent(ATTEMPT), str(scene.cache_dir)],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert scene.path.read_bytes() == content
    assert scene.files() == [scene.path.name]
    return result.stdout.split()


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process")
@pytest.mark.parametrize("most", [0, 1_000, 3_000])
def test_a_full_disk_is_an_error_and_leaves_the_old_file(scene: Scene, most: int) -> None:
    scene.handle().append(rows(50, 1))
    said = attempt(scene, FULL_DISK.replace("MOST", str(most)))
    assert said == ["50", StoreFull.code, StoreFull.code]
    assert listed(scene.handle().append(rows(1, 2))) == listed(rows(50, 1))


@pytest.mark.skipif(sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "capset"), reason="capabilities")
def test_a_folder_that_may_not_be_written_is_an_error_for_who_needs_to_and_is_still_read(scene: Scene) -> None:
    scene.handle().append(rows(50, 1))
    scene.path.parent.chmod(0o500)
    # The file itself may still grow: only a rewrite needs the folder.
    scene.path.with_suffix(".lock").unlink()
    try:
        assert attempt(scene, BOUND_BY_MODES) == ["50", StoreUnavailable.code, StoreUnavailable.code]
    finally:
        scene.path.parent.chmod(0o700)


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_that_cannot_even_be_opened_is_replaced(scene: Scene) -> None:
    scene.handle().append(rows(1))
    os.chown(scene.path, 12345, 12345)
    script = """
from pathlib import Path
import sys
from tests.squirrel_mcp_embeddings.vector_file_scene import Scene, rows
Scene(Path(sys.argv[1])).handle().append(rows(1, 2))
"""
    command = [sys.executable, "-c", BOUND_BY_MODES + script, str(scene.cache_dir)]
    subprocess.run(command, check=True, cwd=Path(__file__).parents[2])
    assert listed(scene.handle().load()) == listed(rows(1, 2))


def test_a_lock_held_for_too_long_is_an_error_and_reading_goes_on(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene.handle().append(rows(1))
    monkeypatch.setattr(private_files, "LOCK_TIMEOUT", 0.01)
    with private_files.lock(scene.path.with_suffix(".lock")):
        with pytest.raises(StoreUnavailable):
            scene.handle().append(rows(1, 2))
        with pytest.raises(StoreUnavailable):
            scene.handle().rewrite(rows(1, 2))
        assert listed(scene.handle().load()) == listed(rows(1))


def test_a_folder_that_is_a_link_is_not_followed(scene: Scene, tmp_path: Path) -> None:
    scene.handle().append(rows(1))
    scene.path.parent.rename(tmp_path / "victim")
    scene.path.parent.symlink_to(tmp_path / "victim")
    assert listed(scene.handle().load()) == []
    with pytest.raises(UnsafeFile):
        scene.handle().append(rows(1, 2))
    with pytest.raises(UnsafeFile):
        scene.handle().rewrite(rows(1, 2))
    scene.path.parent.unlink()
    (tmp_path / "victim").rename(scene.path.parent)
    assert listed(scene.handle().load()) == listed(rows(1))


def test_a_file_never_becomes_larger_than_is_read(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_file, "MAX_FILE_BYTES", 1_000)
    mine = scene.handle()
    mine.append(rows(5, 1))
    for write in (mine.append, mine.rewrite):
        with pytest.raises(StoreFull):
            write(rows(50, 2))
    assert listed(scene.handle().load()) == listed(rows(5, 1))
    assert scene.files() == [scene.path.name]
    monkeypatch.setattr(vector_file, "MAX_FILE_BYTES", scene.path.stat().st_size - 1)
    assert listed(scene.handle().load()) == []
    assert scene.files() == []
