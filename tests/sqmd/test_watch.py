"""What changes in a folder gets into the index by itself, whatever way it changed."""

from __future__ import annotations

import errno
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from sqmd import watch
from sqmd.config import Config, Paths
from sqmd.errors import DatabaseUnavailable
from sqmd.indexer import Summary
from sqmd.service import Service
from sqmd.store.lock import writer_lock
from sqmd.watch import Watcher

from .fakes import FakeEmbedder

NOTE = "# Tea\n\nGreen tea at eighty degrees.\n"


class Scene:
    """A folder of notes, a service over its index, and a watcher whose runs and complaints are kept."""

    def __init__(self, folder: Path, debounce_ms: int = 100, poll: bool = False) -> None:
        self.notes = folder / "notes"
        self.notes.mkdir()
        config = Config(paths=Paths(watch_dirs=(self.notes,), db_path=str(folder / "index")))
        watcher = replace(config.watcher, debounce_ms=debounce_ms, poll=poll)
        self.embedder = FakeEmbedder()
        self.service = Service(replace(config, watcher=watcher), embedder=self.embedder)
        self.said: list[str] = []
        self.runs: list[Summary] = []
        self.asked: list[list[Path]] = []
        self._news = threading.Condition()
        index = self.service.index

        def noted(paths: Any, **options: Any) -> Summary:
            self.asked.append(list(paths))
            return index(paths, **options)

        self.service.index = noted  # type: ignore[method-assign]

    def write(self, name: str, text: str = NOTE) -> Path:
        path = self.notes / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def watching(self, *roots: Path, **options: Any) -> Watcher:
        def indexed(summary: Summary) -> None:
            with self._news:
                self.runs.append(summary)
                self._news.notify_all()

        def say(message: str) -> None:
            with self._news:
                self.said.append(message)
                self._news.notify_all()

        return Watcher(self.service, roots or (self.notes,), say=say, indexed=indexed, **options)

    def until(self, happened: Callable[[], bool]) -> None:
        """Wait for a run or a complaint after which it is true."""
        with self._news:
            assert self._news.wait_for(happened, 60), (self.runs, self.said, self.asked)

    def holds(self, words: str) -> bool:
        return bool(self.runs) and bool(self.service.search(words, mode="fts").results)

    def names(self) -> list[str]:
        if not self.service.status().indexed:
            return []
        return [Path(path).relative_to(self.notes).as_posix() for path in self.service.paths()]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    scene = Scene(tmp_path)
    yield scene
    scene.service.close()


@pytest.fixture(params=["native", "polling"])
def either(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Scene]:
    """Told by the system, or looked through."""
    scene = Scene(tmp_path, poll=request.param == "polling")
    yield scene
    scene.service.close()


def test_new_changed_renamed_and_deleted_files_are_followed(either: Scene) -> None:
    either.write("tea.md")
    either.service.index([either.notes])
    with either.watching(poll_seconds=0.1) as watcher:
        assert watcher.ready(30)
        either.write("new.md", "# New\n\nThe zebra arrived.\n")
        either.until(lambda: either.names() == ["new.md", "tea.md"])
        either.write("new.md", "# New\n\nThe giraffe arrived.\n")
        either.until(lambda: either.holds("giraffe") and either.service.status().vectors == 2)
        either.embedder.embedded.clear()
        (either.notes / "new.md").rename(either.notes / "moved.md")
        either.until(lambda: either.names() == ["moved.md", "tea.md"])
        assert sum(run.moved for run in either.runs) == 1 and either.embedder.embedded == []
        (either.notes / "moved.md").unlink()
        either.until(lambda: either.names() == ["tea.md"])
    assert either.said == []


def test_a_folder_that_is_renamed_takes_its_files_along_and_one_that_goes_takes_them_away(either: Scene) -> None:
    either.write("deep/er/tea.md")
    either.service.index([either.notes])
    with either.watching(poll_seconds=0.1) as watcher:
        assert watcher.ready(30)
        (either.notes / "deep").rename(either.notes / "shallow")
        either.until(lambda: either.names() == ["shallow/er/tea.md"])
        shutil.rmtree(either.notes / "shallow")
        either.until(lambda: either.names() == [])


def test_a_folder_that_comes_with_files_is_indexed(either: Scene, tmp_path: Path) -> None:
    (tmp_path / "elsewhere/in").mkdir(parents=True)
    (tmp_path / "elsewhere/in/tea.md").write_text(NOTE, "utf-8")
    with either.watching(poll_seconds=0.1) as watcher:
        assert watcher.ready(30)
        (tmp_path / "elsewhere").rename(either.notes / "came")
        either.until(lambda: bool(either.runs) and either.names() == ["came/in/tea.md"])


def test_a_file_that_an_editor_puts_in_place_of_the_old_one_is_read_again(scene: Scene, tmp_path: Path) -> None:
    path = scene.write("tea.md")
    scene.service.index([scene.notes])
    with scene.watching(path) as watcher:  # one file alone is watched too
        assert watcher.ready(30)
        for word in ("zebra", "giraffe"):
            temporary = scene.write(".tea.md.tmp", f"# Tea\n\nThe {word} drinks it.\n")
            temporary.replace(path)
            scene.until(partial(scene.holds, word))


def test_only_real_changes_of_markdown_are_indexed(scene: Scene) -> None:
    path = scene.write("tea.md")
    scene.service.index([scene.notes])
    scene.asked.clear()
    with scene.watching() as watcher:
        assert watcher.ready(30)
        scene.write("other.txt")
        scene.write("node_modules/x/readme.md")
        scene.write(".git/notes.md")
        (scene.notes / "empty").mkdir()
        (scene.notes / "empty").rmdir()
        (scene.notes / "other.txt").unlink()
        os.utime(path)
        scene.until(lambda: bool(scene.runs))
    # Only the touched file was looked at, and found to be the same.
    assert scene.asked == [[path]] and [run.indexed for run in scene.runs] == [0]


def test_what_is_written_at_once_is_indexed_at_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path, debounce_ms=500)
    with scene.watching() as watcher:
        assert watcher.ready(30)
        for number in range(30):
            scene.write(f"{number}.md", f"# {number}\n\nNote number {number}.\n")
        scene.until(lambda: sum(run.indexed for run in scene.runs) == 30)
    assert len([run for run in scene.runs if run.indexed]) <= 3


def test_where_the_system_tells_nothing_the_folder_is_looked_through_and_that_is_said_once(scene: Scene) -> None:
    def silent(folder: Path, recursive: bool, stopped: threading.Event) -> Iterator[set[Path]]:
        while not stopped.wait(0.02):
            yield set()

    with scene.watching(native=silent, check_seconds=0.2, poll_seconds=0.1) as watcher:
        assert watcher.ready(30)
        stop = threading.Event()

        def write() -> None:
            number = 0
            while not stop.wait(0.1):
                number += 1
                scene.write("tea.md", f"# Tea\n\nCup number {number}.\n")

        writer = threading.Thread(target=write)
        writer.start()
        scene.until(lambda: bool(scene.said))
        stop.set()
        writer.join()
        scene.write("new.md")
        scene.until(lambda: scene.names() == ["new.md", "tea.md"])
    assert len(scene.said) == 1 and "looked through every second" in scene.said[0]


def test_where_the_system_does_tell_it_is_left_at_that(scene: Scene) -> None:
    with scene.watching(check_seconds=0.1) as watcher:
        assert watcher.ready(30)
        for number in range(10):
            scene.write("tea.md", f"# Tea\n\nCup number {number}.\n")
            scene.until(partial(scene.holds, f'"cup number {number}"'))
    assert scene.said == []


def test_where_the_system_refuses_the_folder_is_looked_through(scene: Scene) -> None:
    def refusing(folder: Path, recursive: bool, stopped: threading.Event) -> Iterator[set[Path]]:
        raise OSError(28, "OS file watch limit reached")
        yield set()

    with scene.watching(native=refusing, poll_seconds=0.1) as watcher:
        assert watcher.ready(30)
        scene.write("tea.md")
        scene.until(lambda: bool(scene.runs) and scene.names() == ["tea.md"])
    reason = "the system cannot tell its changes (OS file watch limit reached)"
    assert scene.said == [f"{scene.notes} is looked through every second: {reason}."]


def test_a_folder_that_is_not_there_yet_is_watched_once_it_is_and_what_was_indexed_stays(scene: Scene) -> None:
    scene.write("tea.md")
    scene.service.index([scene.notes])
    away = scene.notes.with_name("away")
    with scene.watching(poll_seconds=0.05) as watcher:
        assert watcher.ready(30)
        scene.notes.rename(away)
        scene.until(lambda: bool(scene.said))
        assert scene.names() == ["tea.md"]
        (away / "new.md").write_text(NOTE, "utf-8")
        away.rename(scene.notes)
        scene.until(lambda: scene.names() == ["new.md", "tea.md"])
    assert scene.said == [f"{scene.notes} is not there; it is watched as soon as it is."]


def test_a_file_that_cannot_be_read_is_said_once(scene: Scene) -> None:
    bad = scene.notes / "bad.md"
    with scene.watching() as watcher:
        assert watcher.ready(30)
        for number in range(3):
            bad.write_bytes(b"\xe9" + b" " * number)
            scene.until(partial(lambda least: len(scene.runs) > least, number))
    assert len(scene.said) == 1 and str(bad) in scene.said[0]


def test_while_another_process_indexes_it_waits_and_then_indexes_what_changed(scene: Scene) -> None:
    with scene.watching() as watcher:
        assert watcher.ready(30)
        with writer_lock(scene.service.config.paths.db_path):
            scene.write("tea.md")
            while not scene.asked:
                time.sleep(0.01)
        scene.until(lambda: scene.names() == ["tea.md"])
    assert scene.said == []


def test_an_embedder_that_is_down_is_said_once_and_the_vectors_follow_when_it_is_back(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "_RETRY", 0.05)
    scene.embedder.down = True
    with scene.watching() as watcher:
        assert watcher.ready(30)
        scene.write("tea.md")
        scene.until(lambda: bool(scene.said))
        while len(scene.asked) < 3:
            time.sleep(0.01)
        scene.embedder.down = False
        scene.until(lambda: bool(scene.runs) and scene.service.status().vectors == 1)
    assert scene.said == ["The embedding server does not answer."]


def test_it_ends_at_once_and_says_whether_it_runs(scene: Scene) -> None:
    watcher = scene.watching(check_seconds=3600)
    watcher.start()
    assert watcher.ready(30) and scene.service.watching
    watcher.stop()
    assert not scene.service.watching and not [each for each in threading.enumerate() if each.name == "watching"]


def test_a_server_indexes_the_watched_folders_first_and_then_follows_them(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.write("tea.md")
    said: list[str] = []
    with watch.following(scene.service, said.append):
        job = scene.service.jobs.latest()
        assert job is not None and scene.service.watching
        while job.status in ("queued", "running"):
            time.sleep(0.01)
        assert scene.names() == ["tea.md"]
    assert said == [] and not scene.service.watching


def test_without_the_watcher_a_server_makes_the_first_index_and_no_other(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    config = replace(scene.service.config, watcher=replace(scene.service.config.watcher, enabled=False))
    scene.write("tea.md")
    for first in (True, False):
        service = Service(config, embedder=scene.embedder)
        with watch.following(service, pytest.fail):
            job = service.jobs.latest()
            assert (job is not None) is first and not service.watching
            while job is not None and job.status in ("queued", "running"):
                time.sleep(0.01)
        service.close()


def test_a_mistake_in_one_run_does_not_end_the_watching(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_RETRY", 0.05)
    index, failures = scene.service.index, [KeyError("the text of a document"), PermissionError(13, "denied")]

    def failing(paths: Any, **options: Any) -> Summary:
        if failures:
            raise failures.pop()
        return index(paths, **options)

    scene.service.index = failing  # type: ignore[method-assign]
    with scene.watching() as watcher:
        assert watcher.ready(30)
        scene.write("tea.md")
        scene.until(lambda: scene.names() == ["tea.md"])
    kinds = [said.rpartition("(")[2].partition(")")[0] for said in scene.said]
    assert kinds == ["PermissionError", "KeyError"] and "document" not in "".join(scene.said)


def test_a_change_is_indexed_while_vectors_are_computed_that_take_long(scene: Scene) -> None:
    for number in range(300):
        scene.write(f"{number}.md", f"# {number}\n\nNote number {number}.\n")
    embed, begun, go = scene.embedder.embed_documents, threading.Event(), threading.Event()

    def slow(texts: Sequence[str]) -> Any:
        begun.set()
        assert go.wait(60)
        return embed(texts)

    scene.embedder.embed_documents = slow  # type: ignore[method-assign]
    with scene.watching() as watcher:
        assert watcher.ready(30)
        job = scene.service.trigger()
        assert begun.wait(60)
        scene.write("new.md", "# New\n\nThe zebra arrived.\n")
        while [scene.notes / "new.md"] not in scene.asked:
            time.sleep(0.01)
        go.set()  # one batch of several is done, and gives way
        scene.until(lambda: scene.holds("zebra"))
        while job.status in ("queued", "running"):
            time.sleep(0.01)
        scene.until(lambda: scene.service.status().vectors == 301)
    assert job.summary is not None and job.summary.indexed == 300 and scene.said == []


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[Path, int]]:
    """Paths that a drive fails for, each with the error's number."""
    failing: dict[Path, int] = {}
    stat = os.stat

    def failing_stat(path: Any, **options: Any) -> os.stat_result:
        number = failing.get(Path(path)) if isinstance(path, str | os.PathLike) else None
        if number is not None:
            raise OSError(number, os.strerror(number))
        return stat(path, **options)

    monkeypatch.setattr(os, "stat", failing_stat)
    yield failing
    monkeypatch.undo()


@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.EACCES, errno.ENOTCONN])
def test_a_drive_that_fails_ends_no_watching(tmp_path: Path, failing: dict[Path, int], number: int) -> None:
    scene = Scene(tmp_path)
    scene.write("tea.md")
    failing[scene.notes] = number
    with scene.watching(poll_seconds=0.05) as watcher:
        assert watcher.ready(30)
        scene.until(lambda: bool(scene.said))
        watch.begin(scene.service, pytest.fail)
        failing.clear()
        scene.until(lambda: bool(scene.runs) and scene.names() == ["tea.md"])
    assert scene.said == [f"{scene.notes} is not there; it is watched as soon as it is."]
    assert scene.service.jobs.latest() is None
    scene.service.close()


def told(*paths: Path) -> Callable[[Path, bool, threading.Event], Iterator[set[Path]]]:
    """A system that tells these changes, and then nothing."""

    def native(folder: Path, recursive: bool, stopped: threading.Event) -> Iterator[set[Path]]:
        yield set(paths)
        while not stopped.wait(0.02):
            yield set()

    return native


def test_what_cannot_be_looked_at_below_a_folder_does_not_change_how_it_is_watched(
    scene: Scene, failing: dict[Path, int]
) -> None:
    tea = scene.write("tea.md")
    shut, inside = scene.notes / "shut", scene.notes / "shut/a.md"
    failing |= {shut: errno.EACCES, inside: errno.EACCES}
    with scene.watching(native=told(shut, inside, tea)) as watcher:
        assert watcher.ready(30)
        scene.until(lambda: bool(scene.runs) and scene.names() == ["tea.md"])
    assert scene.said == []


def test_a_mistake_in_what_tells_the_changes_does_not_end_the_watching(scene: Scene) -> None:
    def mistaken(folder: Path, recursive: bool, stopped: threading.Event) -> Iterator[set[Path]]:
        raise KeyError("the text of a document")
        yield set()

    with scene.watching(native=mistaken, poll_seconds=0.05) as watcher:
        assert watcher.ready(30)
        scene.write("tea.md")
        scene.until(lambda: bool(scene.runs) and scene.names() == ["tea.md"])
    assert [said.rpartition("(")[2] for said in scene.said] == ["KeyError)."]


def test_where_the_index_cannot_tell_what_it_had_of_a_folder_that_went_all_is_looked_at(scene: Scene) -> None:
    scene.write("deep/tea.md")
    scene.service.index([scene.notes])

    def away(prefix: str = "") -> list[str]:
        raise DatabaseUnavailable("The database cannot be reached.")

    scene.service.paths = away  # type: ignore[method-assign]
    shutil.rmtree(scene.notes / "deep")
    with scene.watching(native=told(scene.notes / "deep")) as watcher:
        assert watcher.ready(30)
        scene.until(lambda: bool(scene.runs) and scene.service.status().files == 0)
    assert scene.said == []


def test_rules_are_anchored_at_the_folder_of_watch_dirs_wherever_the_watching_begins(tmp_path: Path) -> None:
    for poll in (False, True):
        folder = tmp_path / str(poll)
        folder.mkdir()
        scene = Scene(folder, poll=poll)
        watcher = replace(scene.service.config.watcher, ignore_patterns=("build/**", "/sub/out/"))
        scene.service.config = replace(scene.service.config, watcher=watcher)
        for name in ("sub/out/a.md", "sub/build/b.md", "build/c.md"):
            scene.write(name)
        with scene.watching(scene.notes / "sub", scene.notes / "build", rescan=True, poll_seconds=0.05) as watching:
            assert watching.ready(30)
            scene.until(lambda scene=scene: bool(scene.runs) and scene.names() == ["sub/build/b.md"])  # type: ignore[misc]
            for name in ("sub/out/a.md", "sub/build/b.md", "build/c.md"):
                scene.write(name, "# Zebra\n\nThe zebra arrived.\n")
            scene.until(lambda scene=scene: scene.holds("zebra"))  # type: ignore[misc]
            assert scene.names() == ["sub/build/b.md"]
        scene.service.close()


def test_a_folder_under_two_names_is_watched_and_indexed_once(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    alias = tmp_path / "alias"
    alias.symlink_to(scene.notes, target_is_directory=True)
    paths = replace(scene.service.config.paths, watch_dirs=(scene.notes, alias))
    scene.service.config = replace(scene.service.config, paths=paths)
    with scene.watching(scene.notes, alias, rescan=True) as watcher:
        assert watcher.ready(30)
        assert len([each for each in threading.enumerate() if each.name == "watching"]) == 2  # one fills in vectors
        scene.write("tea.md")
        scene.until(lambda: bool(scene.runs) and scene.service.status().files > 0)
    assert scene.names() == ["tea.md"]
    scene.service.close()


def test_a_first_run_that_fails_is_said_and_tried_again(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "_RETRY", 0.2)
    scene.write("tea.md")
    scene.embedder.down = True
    said: list[str] = []
    with watch.following(scene.service, said.append):
        while not said:  # the run's own time limit ends what never happens
            time.sleep(0.01)
        scene.embedder.down = False
        while scene.service.status().vectors == 0:
            time.sleep(0.01)
    assert said == ["The embedding server does not answer."]


def test_an_index_of_two_folders_that_is_deleted_meanwhile_is_made_of_both(tmp_path: Path) -> None:
    folders = [tmp_path / "a", tmp_path / "b"]
    for folder in folders:
        folder.mkdir()
        (folder / "old.md").write_text(NOTE, "utf-8")
    config = Config(paths=Paths(watch_dirs=tuple(folders), db_path=str(tmp_path / "index")))
    service = Service(replace(config, watcher=replace(config.watcher, debounce_ms=100)), embedder=FakeEmbedder())
    service.index(folders)
    said: list[str] = []
    with Watcher(service, folders, say=said.append) as watcher:
        assert watcher.ready(30)
        shutil.rmtree(tmp_path / "index")
        (folders[0] / "new.md").write_text(NOTE, "utf-8")
        while not service.is_indexed() or len(service.paths()) < 3:  # the run's own time limit ends what never happens
            time.sleep(0.02)
    service.close()
    assert said == []


def test_an_index_that_is_deleted_meanwhile_is_made_whole_and_not_of_one_file(scene: Scene) -> None:
    scene.write("tea.md")
    scene.service.index([scene.notes])
    with scene.watching() as watcher:
        assert watcher.ready(30)
        shutil.rmtree(scene.service.config.paths.db_path)
        scene.write("new.md", "# New\n\nThe zebra arrived.\n")
        scene.until(lambda: scene.names() == ["new.md", "tea.md"])
