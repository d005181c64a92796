"""After whatever happened to the files, the index is the one that a fresh run makes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqmd.config import Chunking, Watcher
from sqmd.errors import EmbedderDown, IndexBusy, NoSuchPath
from sqmd.indexer import Indexer, Silent, Summary
from sqmd.store.database import Database
from sqmd.store.lock import writer_lock
from sqmd.store.schema import Stamp

from .fakes import FakeEmbedder

NOTE = "# Tea\n\nGreen tea at eighty degrees.\n\n## Cups\n\nThe blue cup belongs to Ada.\n"


class Scene:
    """A folder of notes and its index."""

    def __init__(self, folder: Path, index: str = "index") -> None:
        self.notes, self.location = folder / "notes", str(folder / index)
        self.notes.mkdir(exist_ok=True)
        self.embedder = FakeEmbedder()

    @property
    def database(self) -> Database:
        return Database.create(self.location, Stamp(self.embedder.name, self.embedder.dimension))

    def write(self, name: str, text: str | bytes = NOTE) -> Path:
        path = self.notes / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def run(self, *roots: Path, **options: Any) -> Summary:
        indexer = Indexer(self.database, self.embedder, Chunking(), Watcher(), clock=lambda: 1.0)
        return indexer.run(roots or (self.notes,), **options)

    def content(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Files and chunks with their vectors, without the times of indexing."""
        return contents(self.location)


def contents(location: str) -> tuple[dict[str, Any], dict[str, Any]]:
    database = Database.open(location)
    files = {
        path: row._replace(file_mtime=0, indexed_at=0) for path, row in database.files_at(database.paths()).items()
    }
    rows = database._chunks.search().limit(None).to_arrow().to_pylist()
    return files, {row["chunk_id"]: row | {"file_mtime": 0} for row in rows}


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def as_fresh(scene: Scene) -> None:
    fresh = Scene(scene.notes.parent, "fresh")
    shutil.rmtree(fresh.location, ignore_errors=True)
    fresh.run()
    assert scene.content() == fresh.content()


def test_a_first_run_indexes_every_file_and_fills_every_vector(scene: Scene) -> None:
    scene.write("tea.md")
    scene.write("deep/er/car.md", "# Car\n\nThe automobile is blue.\n")
    summary = scene.run()
    assert (summary.indexed, summary.skipped, summary.removed, summary.failed) == (2, 0, 0, [])
    files, chunks, vectors = scene.database.counts()
    assert (files, chunks, vectors) == (2, 3, 3) and summary.chunks == 3


def test_a_run_with_nothing_new_reads_and_embeds_nothing(scene: Scene) -> None:
    scene.write("tea.md")
    scene.run()
    scene.embedder.embedded.clear()
    summary = scene.run()
    assert (summary.indexed, summary.skipped) == (0, 1) and scene.embedder.embedded == []


def test_a_touched_file_is_read_and_not_indexed_again(scene: Scene) -> None:
    path = scene.write("tea.md")
    scene.run()
    before = scene.content()
    os.utime(path, ns=(1, 1))
    summary = scene.run()
    assert (summary.indexed, summary.skipped) == (0, 1) and scene.content() == before
    assert scene.database.files_at([str(path)])[str(path)].file_mtime == 1


def test_a_changed_file_embeds_only_the_chunks_that_changed(scene: Scene) -> None:
    scene.write("tea.md")
    scene.run()
    scene.embedder.embedded.clear()
    scene.write("tea.md", NOTE.replace("blue", "red"))
    assert scene.run().indexed == 1
    (embedded,) = scene.embedder.embedded
    assert "red cup" in embedded
    as_fresh(scene)


def test_a_moved_file_is_told_and_embeds_nothing(scene: Scene) -> None:
    path = scene.write("tea.md")
    scene.run()
    scene.embedder.embedded.clear()
    (scene.notes / "elsewhere").mkdir()
    path.rename(scene.notes / "elsewhere" / "tea.md")
    summary = scene.run()
    assert (summary.moved, summary.indexed, summary.removed) == (1, 0, 0) and scene.embedder.embedded == []
    as_fresh(scene)


def test_a_renamed_folder_moves_all_that_is_in_it(scene: Scene) -> None:
    for number in range(5):
        scene.write(f"old/{number}.md", f"# Note {number}\n\nText number {number} of the folder.\n")
    scene.run()
    (scene.notes / "old").rename(scene.notes / "new")
    assert scene.run().moved == 5
    as_fresh(scene)


def test_two_identical_files_are_two_results(scene: Scene) -> None:
    scene.write("a.md")
    scene.write("b.md")
    summary = scene.run()
    assert summary.indexed == 2 and scene.database.counts()[0] == 2
    found = scene.database.by_words("blue cup", 10)
    assert len(found) == 2


@pytest.mark.parametrize("after", ["gone", "empty", "other"])
def test_the_old_text_is_gone_once_the_file_says_something_else(scene: Scene, after: str) -> None:
    path = scene.write("tea.md")
    scene.run()
    assert scene.database.by_words("eighty degrees", 10)
    if after == "gone":
        path.unlink()
    else:
        path.write_text("" if after == "empty" else "# Car\n\nNothing about hot drinks in here at all.\n")
    scene.run()
    assert scene.database.by_words("eighty degrees", 10) == []
    as_fresh(scene)


def test_a_file_that_cannot_be_read_is_reported_and_the_rest_goes_on(scene: Scene) -> None:
    scene.write("bad.md", b"caf\xe9 in latin-1\n")
    scene.write("tea.md")
    summary = scene.run()
    assert summary.indexed == 1 and [Path(path).name for path, _ in summary.failed] == ["bad.md"]
    (row,) = scene.database.failed().values()
    assert row.status == "error" and "UTF-8" in row.error_msg
    scene.write("bad.md", "now it is right, and long enough to be a chunk of its own\n")
    assert scene.run().failed == [] and scene.database.counts()[0] == 2
    as_fresh(scene)


def test_an_unreadable_file_that_was_indexed_before_keeps_no_old_text(scene: Scene) -> None:
    scene.write("tea.md")
    scene.run()
    scene.write("tea.md", b"\xff\xfe\xff broken")
    scene.run()
    assert scene.database.by_words("eighty degrees", 10) == []


def test_a_run_over_one_folder_leaves_what_lies_elsewhere(scene: Scene) -> None:
    scene.write("a/tea.md")
    other = scene.write("b/car.md", "# Car\n\nThe automobile is blue and has four doors.\n")
    scene.run()
    other.unlink()
    (scene.notes / "ab").mkdir()
    assert scene.run(scene.notes / "a").removed == 0
    assert scene.run(other.parent).removed == 1


def test_one_file_can_be_indexed_by_itself_and_is_removed_with_it(scene: Scene) -> None:
    path = scene.write("tea.md")
    scene.write("other.md")
    assert scene.run(path).indexed == 1 and scene.database.counts()[0] == 1


def test_a_root_that_is_not_there_is_an_error_and_the_index_stays(scene: Scene) -> None:
    scene.write("tea.md")
    scene.run()
    before = scene.content()
    with pytest.raises(NoSuchPath):
        scene.run(scene.notes / "nowhere")
    assert scene.content() == before


def test_force_reads_and_embeds_everything_again(scene: Scene) -> None:
    scene.write("tea.md")
    scene.run()
    scene.embedder.embedded.clear()
    assert scene.run(force=True).indexed == 1 and len(scene.embedder.embedded) == 2
    as_fresh(scene)


def test_text_is_found_by_words_while_vectors_cannot_be_had_and_they_fill_in_later(scene: Scene) -> None:
    scene.write("tea.md")
    scene.embedder.down = True
    with pytest.raises(EmbedderDown):
        scene.run()
    assert scene.database.by_words("blue cup", 10) and scene.database.counts() == (1, 2, 0)
    scene.embedder.down = False
    scene.run()
    as_fresh(scene)


def test_text_in_a_script_that_is_not_read_stays_without_a_vector_and_is_found(scene: Scene) -> None:
    scene.write("ja.md", "# 日本語\n\nこれは日本語の文章です。検索できますか。とても長い文章にしておきます。\n")
    scene.run()
    assert scene.database.counts() == (1, 1, 0) and scene.database.by_words("文章", 5)
    scene.embedder.embedded.clear()
    scene.run()
    assert scene.embedder.embedded == []  # what it reads nothing in is not handed to it again


def test_a_root_by_way_of_another_folder_is_that_root(scene: Scene) -> None:
    scene.write("b/tea.md")
    gone = scene.write("b/gone.md", "# Gone\n\nThis one will be deleted before the second run.\n")
    around = scene.notes / "a/../b"
    (scene.notes / "a").mkdir()
    scene.run(around)
    gone.unlink()
    (scene.notes / "b/tea.md").rename(scene.notes / "b/moved.md")
    summary = scene.run(around)
    assert (summary.moved, summary.removed) == (1, 1)
    as_fresh(scene)


def test_a_file_that_was_deleted_is_forgotten_when_it_is_named(scene: Scene) -> None:
    path = scene.write("tea.md")
    scene.write("car.md", "# Car\n\nThe automobile is blue and has four doors.\n")
    scene.run()
    path.unlink()
    assert scene.run(path).removed == 1 and [Path(each).name for each in scene.database.paths()] == ["car.md"]
    with pytest.raises(NoSuchPath):
        scene.run(path)


def test_other_settings_of_chunks_reach_every_file_and_keep_the_vectors_that_fit(scene: Scene) -> None:
    paragraphs = "".join(f"Sentence number {i} of this long text.\n\n" for i in range(30))
    scene.write("long.md", f"# Long\n\n{paragraphs}")
    scene.write("tea.md")
    scene.run()
    scene.embedder.embedded.clear()
    small = Indexer(scene.database, scene.embedder, Chunking(max_tokens=40), Watcher(), clock=lambda: 1.0)
    assert (small.run([scene.notes]).indexed, small.run([scene.notes]).skipped) == (2, 2)
    assert scene.database.counts()[1] > 5 and not any("Green tea" in text for text in scene.embedder.embedded)
    assert max(map(scene.embedder.count_tokens, scene.embedder.embedded)) <= 40


def test_a_folder_of_its_own_inside_another_keeps_its_files_when_the_other_is_run(scene: Scene) -> None:
    rules = Watcher(ignore_patterns=("build/**",))
    folders = [scene.notes, scene.notes / "build"]
    scene.write("tea.md")
    scene.write("build/car.md", "# Car\n\nThe automobile is blue and has four doors.\n")
    indexer = Indexer(scene.database, scene.embedder, Chunking(), rules, anchors=folders)
    for roots in (folders, folders[:1], folders[1:], [scene.notes / "build/car.md"]):
        indexer.run(roots)
        assert [Path(each).name for each in scene.database.paths()] == ["car.md", "tea.md"]
    (scene.notes / "build/car.md").unlink()
    assert indexer.run(folders).removed == 1


def test_a_folder_whose_name_another_begins_with_is_not_in_it(scene: Scene) -> None:
    scene.write("a/tea.md")
    scene.write("ab/car.md", "# Car\n\nThe automobile is blue and has four doors.\n")
    scene.run()
    shutil.rmtree(scene.notes / "ab")
    assert scene.run(scene.notes / "a").removed == 0 and scene.run().removed == 1


def test_identical_files_in_a_renamed_folder_all_moved(scene: Scene) -> None:
    for number in range(3):
        scene.write(f"a/{number}.md")
    scene.run()
    (scene.notes / "a").rename(scene.notes / "b")
    scene.embedder.embedded.clear()
    summary = scene.run()
    assert (summary.moved, summary.indexed, summary.removed) == (3, 0, 0) and scene.embedder.embedded == []
    as_fresh(scene)


def test_no_chunk_is_longer_than_the_model_reads_and_so_many_at_a_time_are_handed_to_it(scene: Scene) -> None:
    scene.write("long.md", "# Long\n\n" + "".join(f"Sentence number {i} of this long text.\n\n" for i in range(80)))
    scene.embedder.max_tokens = 40
    sizes: list[int] = []
    embed = scene.embedder.embed_documents
    scene.embedder.embed_documents = lambda texts: sizes.append(len(texts)) or embed(texts)  # type: ignore[method-assign, func-returns-value]
    indexer = Indexer(scene.database, scene.embedder, Chunking(), Watcher(), batch_size=3)
    indexer.run([scene.notes])
    assert max(map(scene.embedder.count_tokens, scene.embedder.embedded)) <= 40
    assert len(scene.embedder.embedded) > 10 and set(sizes[:-1]) == {3} and sizes[-1] <= 3


def test_a_second_writer_is_told_to_wait(scene: Scene) -> None:
    scene.write("tea.md")
    with writer_lock(scene.location), pytest.raises(IndexBusy):
        scene.run()


def test_a_stopped_run_is_completed_by_the_next(scene: Scene) -> None:
    for number in range(6):
        scene.write(f"{number}.md", f"# Note {number}\n\nText number {number} of the notes in this folder.\n")
    looks = iter(range(100))
    scene.run(stop=lambda: next(looks) >= 3)
    assert scene.database.counts()[0] < 6
    scene.run()
    as_fresh(scene)


def test_progress_counts_files_and_then_chunks(scene: Scene) -> None:
    scene.write("tea.md")
    told: list[tuple[str, int, int]] = []

    class Told(Silent):
        def text(self, done: int, total: int) -> None:
            told.append(("text", done, total))

        def vectors(self, done: int, total: int) -> None:
            told.append(("vectors", done, total))

    scene.run(progress=Told())
    assert told == [("text", 0, 0), ("text", 0, 1), ("text", 1, 1), ("vectors", 2, 2)]


NAMES = st.sampled_from(["a.md", "b.md", "x/a.md", "x/y/c.mdx", "d.txt"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, st.integers(0, 3)),
        st.tuples(st.just("delete"), NAMES, st.just(0)),
        st.tuples(st.just("move"), NAMES, st.integers(0, 4)),
        st.tuples(st.just("run"), NAMES, st.just(0)),
    ),
    max_size=12,
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(STEPS)
def test_any_history_of_files_ends_in_the_index_of_a_fresh_run(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, int]]
) -> None:
    scene = Scene(tmp_path_factory.mktemp("history"))
    for kind, name, number in steps:
        path = scene.notes / name
        if kind == "write":
            scene.write(name, f"# Note {number}\n\nText number {number} of the notes, long enough to be kept alone.\n")
        elif kind == "delete":
            path.unlink(missing_ok=True)
        elif kind == "move" and path.exists():
            path.rename(scene.notes / f"moved-{number}.md")
        elif kind == "run":
            scene.run()
    scene.run()
    as_fresh(scene)


KILLED = """
import sys, time
from pathlib import Path
from sqmd.config import Chunking, Watcher
from sqmd.indexer import Indexer
from sqmd import indexer
from sqmd.store.database import Database
from sqmd.store.schema import Stamp
from tests.sqmd.fakes import FakeEmbedder
indexer.COMMIT_CHUNKS = 5
print("ready", flush=True)
embedder = FakeEmbedder()
database = Database.create(sys.argv[2], Stamp(embedder.name, embedder.dimension))
Indexer(database, embedder, Chunking(), Watcher(), clock=lambda: 1.0).run([Path(sys.argv[1])])
print("done", flush=True)
"""


def test_a_killed_run_and_another_give_what_a_fresh_run_gives(scene: Scene, full: bool) -> None:
    choose = Random(7)
    for number in range(40):
        scene.write(f"{number}.md", f"# Note {number}\n\nText number {number} of the notes in this folder.\n")
    root = Path(__file__).resolve().parents[2]
    killed = 0
    for turn in range(60 if full else 8):
        scene.write(f"{turn % 40}.md", f"# Note {turn}\n\nChanged at turn {turn}, and long enough to be a chunk.\n")
        child = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(scene.notes), scene.location],
            cwd=root, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(choose.uniform(0, 0.4))
        child.send_signal(signal.SIGKILL)
        killed += child.stdout.read() != "done\n"
        child.stdout.close()
        child.wait()
    scene.run()
    as_fresh(scene)
    assert killed
