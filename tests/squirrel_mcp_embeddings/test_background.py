"""Vectors are made once, kept in the file, and gone from it with their memory."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from squirrel_mcp.errors import StoreFull
from squirrel_mcp_embeddings import keeper
from squirrel_mcp_embeddings.background import Background
from squirrel_mcp_embeddings.embedder import Embedder
from squirrel_mcp_embeddings.errors import ModelUnavailable
from squirrel_mcp_embeddings.keeper import _packed
from squirrel_mcp_embeddings.vector_file import Rows, VectorFile

from .fakes import DIMENSION, NOW, Bench, FakeEmbedder, memory, numbered, vector_file

HELD = [memory("dark roasted coffee", 1), memory("a blue car", 2), memory("keys beside the door", 3)]


@pytest.fixture
def made(tmp_path: Path) -> Iterator[list[Bench]]:
    """Benches to close at the end."""
    benches: list[Bench] = []
    yield benches
    for bench in benches:
        bench.ranker.close()


@pytest.fixture
def bench(tmp_path: Path, made: list[Bench]) -> Bench:
    made.append(Bench(tmp_path))
    return made[0]


def restarted(tmp_path: Path, made: list[Bench]) -> Bench:
    for bench in made:
        bench.ranker.close()
    made.append(Bench(tmp_path))
    return made[-1]


def test_the_model_is_announced_once_it_is_there(bench: Bench) -> None:
    bench.with_memories(HELD)
    assert bench.said == ["memory: local embeddings ready (fake)"]


def test_a_second_start_reads_the_vectors_and_embeds_nothing(tmp_path: Path, bench: Bench, made: list[Bench]) -> None:
    bench.with_memories(HELD)
    again = restarted(tmp_path, made).with_memories(HELD)
    assert again.embedder.embedded == [] and again.ranker.embedded == 3
    assert [hit.memory for hit in again.ranker.search("tea", now=NOW).hits] == [HELD[0]]


def test_what_changed_meanwhile_is_embedded_and_nothing_else(tmp_path: Path, bench: Bench, made: list[Bench]) -> None:
    bench.with_memories(HELD)
    changed = memory("a green bicycle", 2, revision=2)
    again = restarted(tmp_path, made).with_memories([HELD[0], changed, HELD[2], memory("new", 4)])
    assert sorted(again.embedder.embedded) == ["a green bicycle", "new"]
    assert again.kept() == {numbered(1): 1, numbered(2): 2, numbered(3): 1, numbered(4): 1}


def test_a_forgotten_memory_leaves_the_file_at_once(bench: Bench) -> None:
    bench.with_memories(HELD)
    before = bench.file.path.read_bytes()
    bench.ranker.remove_many([HELD[1].id])
    assert bench.kept().keys() == {numbered(1), numbered(3)}
    after = bench.file.path.read_bytes()
    assert before[32:80] != after[32:80] and before[80:140] not in after  # another salt, so nothing of it is left


def test_one_forgotten_while_nothing_ran_leaves_it_at_the_next_start(
    tmp_path: Path, bench: Bench, made: list[Bench]
) -> None:
    bench.with_memories(HELD)
    restarted(tmp_path, made).with_memories(HELD[:2])
    assert made[-1].kept().keys() == {numbered(1), numbered(2)}


def test_one_forgotten_while_it_is_embedded_never_gets_into_the_file(bench: Bench) -> None:
    bench.with_memories(HELD[:2])
    bench.embedder.held = {HELD[2].text}
    bench.ranker.put_many([HELD[2]])
    bench.ranker.remove_many([HELD[2].id])
    bench.embedder.held = set()
    bench.settle()
    bench.ranker.put_many([memory("another", 5)])
    bench.settle()
    bench.ranker.close()
    assert bench.kept().keys() == {numbered(1), numbered(2), numbered(5)}


def test_rows_of_old_revisions_do_not_pile_up(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeper, "_FEW", 4)
    bench.with_memories(HELD)
    sizes = []
    for revision in range(2, 30):
        bench.ranker.put_many([memory(f"car number {revision}", 2, revision=revision)])
        bench.settle()
        sizes.append(bench.file.path.stat().st_size)
    bench.ranker.close()
    assert max(sizes) < 6 * min(sizes) and bench.kept()[numbered(2)] == 29


def test_two_processes_share_what_either_has_embedded(tmp_path: Path, bench: Bench, made: list[Bench]) -> None:
    bench.with_memories(HELD[:2])
    made.append(Bench(tmp_path).with_memories(HELD[:2]))
    other = made[-1]
    assert other.embedder.embedded == []
    other.ranker.put_many([HELD[2]])
    other.settle()
    other.ranker.close()
    bench.ranker.put_many([memory("a fourth", 4)])
    bench.settle()
    bench.ranker.close()
    assert len(bench.kept()) == 4


def test_a_file_that_was_deleted_while_it_was_in_use_is_made_anew(bench: Bench) -> None:
    bench.with_memories(HELD)
    bench.file.path.unlink()
    bench.ranker.remove_many([HELD[0].id])
    assert bench.kept().keys() == {numbered(2), numbered(3)}


def test_a_file_that_cannot_be_written_is_told_once_and_search_goes_on(
    tmp_path: Path, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: VectorFile, rows: Rows) -> Rows:
        raise StoreFull("There is no space left.")

    monkeypatch.setattr(VectorFile, "append", full)
    monkeypatch.setattr(VectorFile, "rewrite", full)
    bench.with_memories(HELD)
    bench.ranker.put_many([memory("espresso", 4)])
    assert bench.ranker.search("tea", now=NOW).total == 2
    assert set(bench.said) == {
        "memory: local embeddings ready (fake)",
        "memory: vectors cannot be kept for the next start: There is no space left.",
    }


def test_an_end_in_the_middle_of_embedding_keeps_what_was_done(tmp_path: Path, made: list[Bench]) -> None:
    bench = Bench(tmp_path, FakeEmbedder())
    made.append(bench)
    bench.with_memories(HELD)
    bench.embedder.held = {"never embedded"}
    bench.ranker.put_many([memory("never embedded", 4)])
    bench.ranker.close()
    assert bench.embedder.closed and len(bench.kept()) == 3
    assert "embedding" not in {thread.name for thread in threading.enumerate()}


def test_a_patient_ranker_loads_nothing_before_it_is_asked(tmp_path: Path, made: list[Bench]) -> None:
    bench = Bench(tmp_path, patient=True)
    made.append(bench)
    bench.ranker.put_many(HELD)
    assert bench.ranker.similar("coffee") and bench.said == [] and not bench.file.path.exists()
    assert bench.ranker.search("tea", now=NOW).ranking == "hybrid"
    bench.settle()
    assert vector_file(tmp_path).load().ids.shape[0] == 3


@pytest.mark.parametrize("failure", [ModelUnavailable("off"), OSError("a library of another processor")])
def test_without_a_model_what_is_forgotten_takes_the_files_with_it(
    made: list[Bench], tmp_path: Path, failure: Exception
) -> None:
    dropped: list[Path | None] = []
    bench = Bench(tmp_path)
    made.append(bench)

    def load() -> Embedder:
        bench.ranker.remove_many([HELD[0].id])  # while it is loaded: it may still be told which row to erase
        assert dropped == []
        raise failure

    bench.ranker.background = Background(
        bench.ranker, load, lambda model: bench.file, bench.said.append, drop=dropped.append
    )
    bench.ranker.put_many(HELD)
    assert not bench.ranker.wait(30)
    assert dropped == [None]
    bench.ranker.remove_many([HELD[1].id])
    assert dropped == [None, None]
    bench.ranker.close()
    reason = failure.reason if isinstance(failure, ModelUnavailable) else "runtime"
    assert bench.said == [f"memory: local embeddings were not loaded ({reason}); memory search is lexical only"]


def test_what_other_models_have_made_goes_with_a_forgotten_memory(made: list[Bench], tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    made.append(bench)
    dropped: list[Path | None] = []
    bench.ranker.background.keeper._drop = dropped.append  # type: ignore[union-attr]
    bench.with_memories(HELD)
    assert dropped == []
    bench.ranker.remove_many([HELD[1].id])
    assert dropped == [bench.file.path]


def test_an_end_before_the_file_was_read_leaves_nothing_that_was_forgotten(made: list[Bench], tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    made.append(bench)
    loading, dropped = threading.Event(), list[Path | None]()

    def load() -> Embedder:
        loading.wait(30)
        raise ModelUnavailable("runtime")

    def drop(keep: Path | None) -> None:
        dropped.append(keep)
        loading.set()

    bench.ranker.background = Background(bench.ranker, load, lambda model: bench.file, bench.said.append, drop=drop)
    bench.ranker.put_many(HELD)
    bench.ranker.remove_many([HELD[0].id])
    assert dropped == []
    bench.ranker.close()
    assert dropped == [None]


def test_what_nobody_foresaw_keeps_no_search_waiting(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(keeper.Keeper, "keep", broken)
    bench.ranker.put_many(HELD)
    assert not bench.ranker.wait(30)
    assert bench.ranker.search("coffee", now=NOW).ranking == "lexical"
    bench.ranker.close()
    assert bench.said[1:] == [
        "memory: local embeddings broke down (embedding_failed); memory search is lexical only from now on"
    ]


def test_a_row_that_another_process_added_goes_with_its_memory_too(bench: Bench) -> None:
    bench.with_memories(HELD[:2])
    row = _packed([(HELD[2].id, 1, np.zeros(DIMENSION, np.float16))], DIMENSION)
    vector_file(bench.file.path.parent.parent).append(row)
    bench.embedder.held = {HELD[2].text}  # seen here, and not embedded yet
    bench.ranker.put_many([HELD[2]])
    bench.ranker.remove_many([HELD[2].id])
    bench.embedder.held = set()
    assert bench.kept().keys() == {numbered(1), numbered(2)}


def test_where_the_file_cannot_be_written_anew_it_goes(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.with_memories(HELD)
    bench.ranker.background.keeper._drop = lambda keep: keep or bench.file.path.unlink()  # type: ignore[union-attr, func-returns-value]
    with monkeypatch.context() as patch:
        patch.setattr(VectorFile, "rewrite", _full)
        bench.ranker.remove_many([HELD[0].id])
        assert not bench.file.path.exists()
    bench.ranker.put_many([memory("another", 5)])
    bench.settle()
    assert bench.kept().keys() == {numbered(2), numbered(3), numbered(5)}
    assert len(bench.said) == 1


def test_where_it_cannot_go_either_that_is_said_and_tried_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.with_memories(HELD)
    with monkeypatch.context() as patch:
        patch.setattr(VectorFile, "rewrite", _full)
        bench.ranker.remove_many([HELD[0].id])
    assert numbered(1) in bench.kept()
    assert "what is kept of a forgotten memory cannot be erased yet" in bench.said[-1]
    bench.ranker.put_many([memory("another", 5)])
    bench.settle()
    assert bench.kept().keys() == {numbered(2), numbered(3), numbered(5)}


def test_a_file_that_somebody_dropped_is_written_whole_with_the_next_memory(bench: Bench) -> None:
    bench.with_memories(HELD)
    bench.file.path.unlink()
    bench.ranker.put_many([memory("another", 5)])
    bench.settle()
    assert len(bench.kept()) == 4


def _full(self: VectorFile, rows: Rows) -> None:
    raise StoreFull("There is no space left.")
