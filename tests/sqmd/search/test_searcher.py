"""Any query, in every mode and under every filter: right hits, never an exception."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sqmd.config import Chunking, Watcher
from sqmd.errors import EmbedderDown, InvalidInput
from sqmd.indexer import Indexer
from sqmd.search.results import MODES, Mode
from sqmd.search.searcher import NO_MEANING, NOT_RERANKED, WORDS_ONLY, Reranker, Searcher
from sqmd.store.database import Database
from sqmd.store.schema import Stamp

from ..fakes import FakeEmbedder

NOTES = {
    "car.md": "# Garage\n\nThe vehicle is blue and was bought in spring.\n",
    "coffee.md": "# Kitchen\n\nDark roast goes into the caffeine machine at eight.\n",
    "it's here/odd.md": '# Odd\n\nA "quoted phrase", well-known C++ templates, naïve 日本語 text, 100%_x, it\'s.\n',
    "b%c_d.md": "# Percent\n\nA file whose name holds what LIKE would take for a pattern, and nothing else.\n",
    "dup1.md": "# Twin\n\nThese words are the same in two files of this folder.\n",
    "dup2.md": "# Twin\n\nThese words are the same in two files of this folder.\n",
}
ODD = (
    '"', '"quoted phrase"', '"unbalanced', "well-known", "C++", "it's", "naïve", "日本語", "100%_x", "(unclosed", "a:b",
    "*", "-", "AND OR NOT", "\\", "'; DROP TABLE chunks; --", "\0", "🙂", "\udce9 tea", "x" * 10_000, "word " * 3_000,
)  # fmt: skip


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Database:
    folder = tmp_path_factory.mktemp("searched")
    embedder = FakeEmbedder()
    for name, text in NOTES.items():
        path = folder / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    made = Database.create(str(folder / "index"), Stamp(embedder.name, embedder.dimension))
    Indexer(made, embedder, Chunking(), Watcher()).run([folder / "notes"])
    return made


class Backwards:
    """A cross-encoder that prefers what has more of the letter q."""

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        return [float(text.count("q")) for text in texts]

    def close(self) -> None: ...


class Away(Backwards):
    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        raise EmbedderDown("It cannot be downloaded.")


def searcher(
    database: Database, embedder: FakeEmbedder | None = None, reranker: type[Reranker] = Backwards, top_n: int = 20
) -> Searcher:
    return Searcher(database, embedder or FakeEmbedder(), rrf_k=60, rerank_top_n=top_n, reranker=reranker)


def names(database: Database, query: str, **options: Any) -> list[str]:
    answer = searcher(database).search(query, **{"top_k": 3, **options})
    return [Path(result.file_path).name for result in answer.results]


def test_words_and_meaning_both_find(database: Database) -> None:
    assert names(database, "blue", mode="fts")[0] == "car.md"
    assert names(database, "espresso", mode="fts") == []
    assert names(database, "espresso", mode="vector")[0] == "coffee.md"
    assert names(database, "espresso")[0] == "coffee.md"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("path", ["", "it's", "%", "_", "c_d", "nowhere", "'", "\\"])
def test_no_query_raises_in_any_mode_under_any_filter(database: Database, mode: Mode, path: str) -> None:
    for query in ODD:
        answer = searcher(database).search(query, top_k=5, mode=mode, path=path)
        assert all(path in result.file_path for result in answer.results)


@pytest.mark.parametrize(
    ("query", "name"),
    [('"quoted phrase"', "odd.md"), ("well-known", "odd.md"), ("日本語", "odd.md"), ("naïve", "odd.md"),
     ("100%_x", "odd.md"), ("same in two files", "dup1.md")],
)  # fmt: skip
def test_odd_queries_find_what_they_say(database: Database, query: str, name: str) -> None:
    assert name in names(database, query, mode="fts")


def test_a_filter_is_literal(database: Database) -> None:
    assert names(database, "the", path="it's", top_k=9, mode="vector") == ["odd.md"]
    assert names(database, "the", path="%", top_k=9, mode="vector") == ["b%c_d.md"]
    assert names(database, "the", path="c_d", top_k=9, mode="vector") == ["b%c_d.md"]


def test_identical_files_are_separate_results(database: Database) -> None:
    assert sorted(names(database, "same in two files", top_k=2)) == ["dup1.md", "dup2.md"]


def test_results_carry_lines_that_are_the_text(database: Database) -> None:
    for result in searcher(database).search("blue vehicle", top_k=9).results:
        lines = Path(result.file_path).read_text("utf-8").split("\n")
        assert "\n".join(lines[result.line_start - 1 : result.line_end]) == result.text_raw
        assert result.text.startswith("Section: ") and result.text.endswith(result.text_raw)


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("top_k", {"top_k": 0}),
        ("top_k", {"top_k": 101}),
        ("mode", {"mode": "zzz"}),
        ("filter_path", {"path": "caf\udce9"}),
    ],
)
def test_what_is_out_of_bounds_is_refused(database: Database, field: str, options: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput) as refused:
        names(database, "tea", **options)
    assert refused.value.field == field


def test_an_empty_query_finds_nothing(database: Database) -> None:
    assert names(database, "  \n") == []


def test_without_vectors_a_hybrid_search_goes_by_words_and_says_so(database: Database) -> None:
    embedder = FakeEmbedder()
    embedder.down = True
    answer = searcher(database, embedder).search("blue", top_k=3)
    assert answer.note == WORDS_ONLY and answer.results[0].file_path.endswith("car.md")
    with pytest.raises(EmbedderDown):
        searcher(database, embedder).search("blue", top_k=3, mode="vector")


def test_a_query_that_the_model_cannot_read_goes_by_words_and_says_so(database: Database) -> None:
    answer = searcher(database).search("日本語", top_k=3)
    assert answer.note == NO_MEANING and answer.results[0].file_path.endswith("odd.md")


def test_a_cross_encoder_orders_what_it_was_given(database: Database) -> None:
    plain = searcher(database).search("the same words", top_k=6)
    reranked = searcher(database).search("the same words", top_k=6, rerank=True)
    assert {each.chunk_id for each in plain.results} == {each.chunk_id for each in reranked.results}
    counts = [result.text.count("q") for result in reranked.results]
    assert counts == sorted(counts, reverse=True)


def test_what_lies_behind_the_reranked_stays_as_it_was(database: Database) -> None:
    plain = searcher(database).search("the same words", top_k=6)
    some = searcher(database, top_n=3).search("the same words", top_k=6, rerank=True)
    assert some.results[3:] == plain.results[3:] and set(some.results[:3]) == set(plain.results[:3])


def test_without_the_cross_encoder_the_order_is_the_plain_one_and_the_answer_says_so(database: Database) -> None:
    plain = searcher(database).search("the same words", top_k=6)
    answer = searcher(database, reranker=Away).search("the same words", top_k=6, rerank=True)
    assert answer.results == plain.results and answer.note == NOT_RERANKED


def test_each_leg_gives_three_times_what_is_wanted_and_what_is_reranked_at_least(database: Database) -> None:
    asked: list[int] = []

    class Asked(Database):
        def by_words(self, query: str, limit: int, path: str = "") -> list[tuple[str, float]]:
            asked.append(limit)
            return database.by_words(query, limit, path)

        def by_meaning(self, vector: Any, limit: int, path: str = "") -> list[tuple[str, float]]:
            asked.append(limit)
            return database.by_meaning(vector, limit, path)

    both = Asked.open(database.location)
    for top_k in (1, 10):
        searcher(both).search("the same words", top_k=top_k)
    assert asked == [20, 20, 30, 30]


def test_another_process_s_writes_are_found_by_the_next_search(database: Database, tmp_path: Path) -> None:
    reading = searcher(Database.open(database.location))
    assert reading.search("zebra", top_k=3, mode="fts").results == ()
    note = tmp_path / "new.md"
    note.write_text("# Zoo\n\nA zebra and other animals live here all year round.\n", "utf-8")
    Indexer(Database.open(database.location), FakeEmbedder(), Chunking(), Watcher()).run([note])
    assert reading.search("zebra", top_k=3, mode="fts").results
