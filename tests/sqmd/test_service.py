"""One object behind all fronts: jobs, models that change, models that are away, and where a path lies."""

from __future__ import annotations

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from sqmd.config import Config, Paths, Search, Watcher
from sqmd.errors import DatabaseDamaged, EmbedderDown, IndexBusy, InvalidInput, ModelMismatch, NotIndexed
from sqmd.indexer import Indexer
from sqmd.jobs import Job
from sqmd.search.searcher import WORDS_ONLY
from sqmd.service import Service
from sqmd.store.lock import writer_lock

from .fakes import FakeEmbedder

TEA = "# Tea\n\nGreen tea wants water of eighty degrees.\n"
CAR = "# Car\n\nThe automobile is parked behind the house.\n"


class Away(FakeEmbedder):
    """A server that is down: its dimension cannot be had either."""

    @property
    def dimension(self) -> int:
        raise EmbedderDown("The embedding server does not answer.")

    @dimension.setter
    def dimension(self, value: int) -> None: ...

    def embed_documents(self, texts: object) -> list[None]:  # type: ignore[override]
        raise EmbedderDown("The embedding server does not answer.")

    embed_query = embed_documents  # type: ignore[assignment]


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    (folder / "build").mkdir(parents=True)
    (folder / "tea.md").write_text(TEA, "utf-8")
    (folder / "build/car.md").write_text(CAR, "utf-8")
    return folder


def config_of(notes: Path, **watcher: object) -> Config:
    paths = Paths(watch_dirs=(notes,), db_path=str(notes.parent / "index"))
    return Config(paths=paths, watcher=replace(Watcher(), **watcher))  # type: ignore[arg-type]


Make = Callable[..., Service]


@pytest.fixture
def make(notes: Path) -> Iterator[Make]:
    """Another service over the same index, as another process is."""
    made: list[Service] = []

    def make_one(embedder: FakeEmbedder | None = None, **watcher: object) -> Service:
        made.append(Service(config_of(notes, **watcher), embedder=embedder or FakeEmbedder()))
        return made[-1]

    yield make_one
    for service in made:
        service.close()


def names(service: Service) -> list[str]:
    return [Path(path).name for path in service.paths()]


def ended(service: Service, job: Job) -> Job:
    while job.completed_at is None:  # the run's own time limit ends what never ends
        time.sleep(0.01)
    return job


# Models that change.


def test_a_server_notices_that_another_process_made_the_index_anew_with_another_model(make: Make, notes: Path) -> None:
    server = make()
    server.index([notes])
    assert server.search("tea", top_k=1).results
    for other in (FakeEmbedder("other"), FakeEmbedder("wider", 256)):
        make(other).index([notes], force=True)
        with pytest.raises(ModelMismatch, match=f"{other.name} and fake .*sqmd index --force"):
            server.search("tea", top_k=1)
        assert server.status().embedder == other.name
    make().index([notes], force=True)
    assert server.search("tea", top_k=1).results


def test_an_index_that_is_deleted_under_a_server_is_none_and_a_new_one_is_used(make: Make, notes: Path) -> None:
    import shutil

    server = make()
    server.index([notes])
    shutil.rmtree(notes.parent / "index")
    with pytest.raises(NotIndexed):
        server.search("tea", top_k=1)
    make().index([notes])
    assert server.search("tea", top_k=1).results


@pytest.mark.skipif(sys.platform != "linux", reason="only there it is seen which files are open")
def test_a_server_that_runs_for_long_keeps_no_file_of_every_change_open(
    make: Make, notes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sqmd.store.database._MOST_VERSIONS", 8)
    for number in range(200):
        (notes / f"{number}.md").write_text(f"# Note {number}\n\nWord{number} and others stand here.\n", "utf-8")
    server, writer = make(), make()
    writer.index([notes])
    opened = []
    for turn in range(12):
        (notes / "tea.md").write_text(f"# Tea\n\nAt turn {turn} it wants water of eighty degrees.\n", "utf-8")
        writer.index([notes / "tea.md"])
        assert server.search(f"turn {turn}", top_k=1).results
        opened.append(len(os.listdir("/proc/self/fd")))
    assert max(opened[6:]) <= max(opened[:6]) + 2


def test_another_model_by_force_over_a_part_reads_all_that_was_indexed_again(make: Make, notes: Path) -> None:
    elsewhere = notes.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "zoo.md").write_text("# Zoo\n\nA zebra lives here all year round.\n", "utf-8")
    make().index([notes, elsewhere])
    other = make(FakeEmbedder("other"))
    with pytest.raises(ModelMismatch):
        other.index([notes / "tea.md"])
    other.index([notes / "tea.md"], force=True)
    assert names(other) == ["zoo.md", "car.md", "tea.md"] and other.status().vectors == 3


def test_a_kill_while_another_models_index_is_read_again_leaves_the_rest_to_the_next_run(
    make: Make, notes: Path
) -> None:
    make().index([notes])
    other = make(FakeEmbedder("other"))
    other.index([notes / "tea.md"], force=True, stop=lambda: True)  # as if it ended after the drop
    assert other.status().chunks == 0 and len(other.status().errors) == 2
    other.index([notes / "tea.md"])
    assert names(other) == ["car.md", "tea.md"] and other.status().errors == [] and other.status().vectors == 2


def test_vectors_do_not_get_into_an_index_that_became_another_models_meanwhile(make: Make, notes: Path) -> None:
    embedder = FakeEmbedder()
    first, other = make(embedder), make(FakeEmbedder("other"))
    indexer = Indexer(first._prepared(False)[0], embedder, first.config.chunking, first.config.watcher)
    other.index([notes], force=True, vectors=False)
    with pytest.raises(ModelMismatch):
        indexer.run(())
    assert embedder.embedded == [] and other.pending() == 2


def test_what_waits_when_a_service_ends_is_not_begun(make: Make, notes: Path) -> None:
    embedder = FakeEmbedder()
    service = make(embedder)
    with writer_lock(service.config.paths.db_path):
        jobs = [service.trigger([notes / f"{number}.md"]) for number in range(4)]
        service.close()
    for job in jobs:
        assert ended(service, job).status == "failed" and "It was stopped" in job.failure
    assert embedder.embedded == [] and not make().is_indexed()


def test_force_drops_nothing_that_is_damaged_or_cannot_be_made_again(make: Make, notes: Path) -> None:
    make().index([notes])
    with pytest.raises(EmbedderDown):
        make(Away("other")).index([notes], force=True)
    assert len(names(make())) == 2
    for manifest in (notes.parent / "index/files.lance/_versions").iterdir():
        manifest.write_bytes(b"")
    with pytest.raises(DatabaseDamaged):
        make().index([notes], force=True)
    assert (notes.parent / "index/chunks.lance").exists()


# Models that are away.


def test_text_is_indexed_while_the_embedding_server_of_an_index_is_away(make: Make, notes: Path) -> None:
    make().index([notes])
    (notes / "new.md").write_text("# New\n\nThe zebra arrived by ship.\n", "utf-8")
    away = make(Away())
    with pytest.raises(EmbedderDown):
        away.index([notes])
    answer = away.search("zebra", top_k=1)
    assert answer.results[0].file_path.endswith("new.md") and answer.note == WORDS_ONLY


# Settings.


def test_settings_of_the_search_reach_it(notes: Path) -> None:
    config = replace(config_of(notes), search=Search(default_top_k=1, rrf_k=1, rerank=True, rerank_top_n=1))
    asked: list[int] = []

    class Counted:
        def scores(self, query: str, texts: Sequence[str]) -> list[float]:
            asked.append(len(texts))
            return [0.0] * len(texts)

        def close(self) -> None: ...

    service = Service(config, embedder=FakeEmbedder(), reranker=Counted())
    service.index([notes])
    (only,) = service.search("green tea").results
    assert only.score == pytest.approx(1 / 2 + 1 / 2) and asked == [1]
    service.search("green tea", rerank=False)
    assert asked == [1]
    service.close()


# Jobs.


def test_jobs_run_one_after_the_other_and_the_same_one_waits_once(make: Make, notes: Path) -> None:
    service = make()
    with writer_lock(service.config.paths.db_path):
        first = service.trigger()
        waiting = [service.trigger([notes / "tea.md"]) for _ in range(20)]
        assert len({job.job_id for job in waiting}) == 1 and waiting[0].job_id != first.job_id
        assert service.trigger([notes / "tea.md"], force=True) not in (first, waiting[0])
        assert waiting[0].status == "queued" and waiting[0].started_at is None
        assert sum(thread.name == "indexing" for thread in threading.enumerate()) == 1
    for job in service.jobs.all():
        assert ended(service, job).status == "done" and job.started_at is not None
    assert ended(service, service.trigger([notes / "tea.md"])) is not waiting[0]


def test_more_jobs_than_are_kept_are_refused(make: Make, notes: Path) -> None:
    service = make()
    with writer_lock(service.config.paths.db_path), pytest.raises(IndexBusy, match="100 jobs wait already"):
        for number in range(102):
            service.trigger([notes / f"{number}.md"])
    service.close()


def test_a_mistake_of_ours_ends_one_job_and_shows_no_text(
    make: Make, notes: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    embedder = FakeEmbedder()
    service = make(embedder)
    embedder.embed_documents = lambda texts: [][texts[0]]  # type: ignore[method-assign, call-overload]
    failed = ended(service, service.trigger())
    assert (
        failed.status == "failed" and "(TypeError at test_service.py:" in failed.failure and "Tea" not in failed.failure
    )
    del embedder.embed_documents  # type: ignore[method-assign]
    assert ended(service, service.trigger()).status == "done"
    assert capfd.readouterr().err == ""


def test_a_database_that_cannot_be_there_is_a_sentence(notes: Path) -> None:
    for place in (notes / "tea.md", notes / "tea.md/index"):
        paths = Paths(watch_dirs=(notes,), db_path=str(place))
        service = Service(Config(paths=paths), embedder=FakeEmbedder())
        job = ended(service, service.trigger())
        assert job.status == "failed" and "cannot be used" in job.failure
        service.close()


# Where a path lies.


def test_a_part_of_a_folder_is_ignored_as_it_is_with_the_whole(make: Make, notes: Path) -> None:
    service = make(ignore_patterns=("build/**",))
    (notes / "sub/build").mkdir(parents=True)
    (notes / "sub/build/kept.md").write_text(CAR, "utf-8")
    service.index([notes])
    whole = names(service)
    assert whole == ["kept.md", "tea.md"]
    for part in (notes / "sub", notes / "build", notes / "build/car.md", notes / "sub/build/kept.md"):
        service.index([part])
        assert names(service) == whole


def test_a_path_through_a_link_is_the_one_below_the_folder_that_is_watched(make: Make, notes: Path) -> None:
    service = make()
    service.index([notes])
    (notes.parent / "alias").symlink_to(notes, target_is_directory=True)
    before = service.paths()
    for path in (notes.parent / "alias", notes.parent / "alias/tea.md", notes.parent / "alias/build"):
        assert ended(service, service.trigger([path])).status == "done"
    service.index([notes.parent / "alias"])
    assert service.paths() == before
    (notes / "tea.md").unlink()
    service.index([notes.parent / "alias"])
    assert names(service) == ["car.md"]


def test_what_is_outside_is_not_triggered(make: Make, notes: Path) -> None:
    (notes / "out").symlink_to(notes.parent, target_is_directory=True)
    for path in (notes.parent, notes / "../index", notes / "out", Path("tea.md")):
        with pytest.raises(InvalidInput):
            make().trigger([path])


# Several at once.


def _index(notes: Path, barrier: object, failures: object) -> None:
    service = Service(config_of(notes), embedder=FakeEmbedder())
    barrier.wait()  # type: ignore[attr-defined]
    try:
        job = service.trigger()
        while job.completed_at is None:
            time.sleep(0.01)
        failures.put(job.failure)  # type: ignore[attr-defined]
    finally:
        service.close()


def test_several_processes_that_begin_the_first_index_at_once_make_one(make: Make, notes: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier, failures = context.Barrier(3), context.Queue()
    processes = [context.Process(target=_index, args=(notes, barrier, failures)) for _ in range(3)]
    for process in processes:
        process.start()
    assert [failures.get(timeout=120) for _ in processes] == ["", "", ""]
    for process in processes:
        process.join()
    assert names(make()) == ["car.md", "tea.md"] and make().status().vectors == 2
