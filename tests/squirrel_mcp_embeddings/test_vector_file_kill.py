"""Writers that run at the same time, and writers killed at any line: the file is old or new, never a mixture."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.squirrel_mcp_embeddings.vector_file_child import STEPS
from tests.squirrel_mcp_embeddings.vector_file_scene import Row, Scene, listed, rows

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "tests.squirrel_mcp_embeddings.vector_file_child"]

pytestmark = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no such signal")


@contextmanager
def appending(cache_dir: Path, first: int, count: int) -> Iterator[subprocess.Popen[str]]:
    """A process that appends the rows of `count` seeds once it is told to start."""
    command = [*COMMAND, "append", str(cache_dir), str(first), str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT) as child:
        assert child.stdout is not None
        try:
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.kill()


def start(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("\n")
    child.stdin.flush()


def states() -> list[list[Row]]:
    """What the file holds before the first step of a dying process, and after each."""
    found: list[list[Row]] = [[]]
    for method, count, seed in STEPS:
        found.append((found[-1] if method == "append" else []) + listed(rows(count, seed)))
    return found


def dying(cache_dir: Path, line: int) -> list[int]:
    result = subprocess.run([*COMMAND, "die", str(cache_dir), str(line)], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == (-signal.SIGKILL if line else 0), result.stderr
    return [int(each) for each in result.stdout.split()]


def test_two_processes_append_at_the_same_time_and_nothing_is_lost_or_twice(tmp_path: Path) -> None:
    with appending(tmp_path, 0, 60) as one, appending(tmp_path, 1_000, 60) as other:
        for child in (one, other):
            start(child)
        # Who reads meanwhile takes no lock, and never sees less than before.
        reader, seen = Scene(tmp_path).handle(), list[Row]()
        while one.poll() is None or other.poll() is None:
            found = listed(reader.load())
            assert found[: len(seen)] == seen
            seen = found
        for child in (one, other):
            assert child.stdout is not None and len(child.stdout.read().split()) == 60
    expected = [rows(1, seed) for seed in (*range(60), *range(1_000, 1_060))]
    assert sorted(listed(Scene(tmp_path).handle().load())) == sorted(listed(*expected))


def test_a_writer_killed_at_any_line_leaves_old_or_new(tmp_path: Path, full: bool) -> None:
    *steps, lines = dying(tmp_path / "alive", 0)
    assert steps == list(range(1, len(STEPS) + 1))
    expected = states()
    kills = 300 if full else 30
    # One line out of each of so many stretches, so that no part of the code is passed over.
    draw = random.Random(7)
    for turn in range(kills):
        line = draw.randint(turn * lines // kills + 1, max((turn + 1) * lines // kills, turn * lines // kills + 1))
        scene = Scene(tmp_path / str(turn))
        done = len(dying(scene.cache_dir, line))
        found = listed(scene.handle().load())
        assert found in expected[done : done + 2], f"line {line}"
        # Its lock is free again, what it left half done is in nobody's way.
        assert listed(scene.handle().append(rows(1, 9))) == found
        assert listed(scene.handle().load()) == found + listed(rows(1, 9))
        scene.handle().rewrite(rows(1, 9))
        assert scene.files() == [scene.path.name]


def test_a_writer_killed_at_any_moment_loses_nothing_it_had_stored(tmp_path: Path, full: bool) -> None:
    draw = random.Random(7)
    scene = Scene(tmp_path)
    stored: list[int] = []
    for turn in range(100 if full else 5):
        first = turn * 1_000
        with appending(tmp_path, first, 1_000) as child:
            start(child)
            assert child.stdout is not None
            said = [child.stdout.readline() for _ in range(draw.randint(0, 25))]
            child.kill()
            said += child.stdout.read().split("\n")[:-1]
        acknowledged = [int(line) for line in said]
        found = listed(scene.handle().load())
        once_more = listed(*(rows(1, seed) for seed in [*stored, *acknowledged, first + len(acknowledged)]))
        assert found in (once_more, once_more[:-1])  # a kill may come between the write and its acknowledgement
        stored += range(first, first + len(found) - len(stored))
