"""Answers by words and meaning: who is in them, in which order, and what is said where meaning is not to be had."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squirrel_mcp.memory import Memory
from squirrel_mcp.search.lexical import NOTHING_TO_SEARCH, WordRanker
from squirrel_mcp.search.results import Filters, Hit, Ranking
from squirrel_mcp_embeddings import hybrid
from squirrel_mcp_embeddings.errors import ModelUnavailable
from squirrel_mcp_embeddings.hybrid import LOADING, OTHER_SCRIPT, HybridRanker

from .fakes import MODEL, NOW, Bench, FakeEmbedder, memory, numbered, vector

COFFEE = memory("dark roasted coffee", 1)
CAR = memory("the automobile is blue", 2)
KEYS = memory("keys hang beside the door", 3)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    yield made
    made.ranker.close()


def search(ranker: HybridRanker, query: str, **options: object) -> Ranking:
    return ranker.search(query, now=NOW, **options)  # type: ignore[arg-type]


def texts(ranking: Ranking) -> list[str]:
    return [hit.memory.text for hit in ranking.hits]


def test_a_question_finds_what_it_has_no_word_in_common_with(bench: Bench) -> None:
    bench.with_memories([COFFEE, CAR, KEYS])
    answer = search(bench.ranker, "espresso")
    assert texts(answer) == [COFFEE.text]
    assert (answer.ranking, answer.total, answer.searched, answer.note) == ("hybrid", 1, 3, "")
    (hit,) = answer.hits
    assert hit.lexical_score == 0 and hit.semantic_score is not None and hit.semantic_score >= MODEL.min_similarity
    assert bench.ranker.model == MODEL.id and bench.ranker.embedded == 3


def test_where_nothing_is_stored_about_it_nothing_comes_back(bench: Bench) -> None:
    answer = search(bench.with_memories([COFFEE, CAR, KEYS]).ranker, "philosophy")
    assert answer.hits == () and answer.total == 0 and answer.searched == 3


def test_near_misses_are_the_three_nearest_that_are_no_members_and_do_not_count(bench: Bench) -> None:
    long = "one two three four five six seven eight nine ten eleven twelve".split()
    others = [memory(" ".join([*long[:count], "tea"]), count) for count in range(8, 13)]
    bench.with_memories([COFFEE, KEYS, *others])
    answer = search(bench.ranker, "espresso", near_misses=True)
    members, near = answer.hits[: answer.total], answer.hits[answer.total :]
    assert [hit.memory for hit in members] == [COFFEE] and len(near) == 3
    assert all(hit.near_miss and hit.score == 0 and hit.lexical_score == 0 for hit in near)
    assert [hit.memory for hit in near] == others[:3]
    assert near[0].semantic_score is not None and 0.3 < near[0].semantic_score < MODEL.min_similarity
    assert not any(hit.near_miss for hit in search(bench.ranker, "espresso").hits)


def test_filters_narrow_members_and_near_misses_before_anything_is_ranked(bench: Bench) -> None:
    bench.with_memories([COFFEE, memory("espresso machine", 4, category="task"), CAR])
    answer = search(bench.ranker, "tea", filters=Filters(category="task"), near_misses=True)
    assert texts(answer) == ["espresso machine"] and answer.searched == 1
    other = search(bench.ranker, "blue", filters=Filters(since=NOW + timedelta(days=1)), near_misses=True)
    assert other.hits == () and other.searched == 0


def test_a_memory_id_finds_that_memory_and_asks_for_no_meaning(bench: Bench) -> None:
    answer = search(bench.with_memories([COFFEE, CAR]).ranker, numbered(2))
    assert [hit.memory for hit in answer.hits] == [CAR] and answer.ranking == "lexical" and answer.note == ""


@pytest.mark.parametrize(
    ("query", "note"),
    [
        ("кофе и чай", OTHER_SCRIPT),
        ("コーヒー", OTHER_SCRIPT),
        ("🙂", NOTHING_TO_SEARCH),
        ("", NOTHING_TO_SEARCH),
    ],
)
def test_a_query_that_the_model_cannot_read_is_ranked_by_words_and_says_so(bench: Bench, query: str, note: str) -> None:
    held = [COFFEE, memory("кофе", 5), memory("コーヒー", 6)]
    words = WordRanker()
    words.put_many(held)
    answer = search(bench.with_memories(held).ranker, query)
    expected = words.search(query, now=NOW)
    assert (answer.ranking, answer.hits, answer.note) == ("lexical", expected.hits, note)


def test_a_memory_in_another_script_has_no_vector_and_is_found_by_its_words(bench: Bench) -> None:
    bench.with_memories([memory("кофе", 5), COFFEE])
    assert bench.ranker.embedded == 1 and set(bench.embedder.embedded) == {COFFEE.text, ""}
    answer = search(bench.ranker, "coffee кофе strong dark")  # mostly Latin
    found = {hit.memory.text: hit for hit in answer.hits}
    assert answer.ranking == "hybrid" and found["кофе"].semantic_score is None
    assert found["кофе"].score <= 0.15  # 0.3 at most before it is halved


def test_until_the_model_is_there_words_answer_and_the_reason_is_said(tmp_path: Path) -> None:
    ranker = HybridRanker()
    ranker.put_many([COFFEE])
    answer = search(ranker, "coffee")
    assert (answer.ranking, answer.note, answer.total) == ("lexical", LOADING, 1)
    assert (ranker.model, ranker.embedded) == ("", 0)


@pytest.mark.parametrize("reason", ["off", "runtime", "missing: model.onnx", "integrity: tokenizer.json"])
def test_without_a_model_words_answer_and_the_reason_is_said_once(tmp_path: Path, reason: str) -> None:
    bench = Bench(tmp_path)

    def load() -> FakeEmbedder:
        raise ModelUnavailable(reason)

    bench.ranker.background._load = load  # type: ignore[union-attr, assignment]
    bench.ranker.put_many([COFFEE])
    assert not bench.ranker.wait(30)
    answer = search(bench.ranker, "coffee")
    assert answer.ranking == "lexical" and texts(answer) == [COFFEE.text] and reason in answer.note
    assert bench.said == [f"memory: local embeddings were not loaded ({reason}); memory search is lexical only"]
    assert not bench.file.path.exists()


def test_a_runtime_that_fails_in_a_search_leaves_words_for_the_rest_of_the_process(bench: Bench) -> None:
    bench.with_memories([COFFEE, CAR])
    bench.embedder.fail = True
    for _ in range(2):
        answer = search(bench.ranker, "coffee")
        assert answer.ranking == "lexical" and texts(answer) == [COFFEE.text] and "runtime" in answer.note
    bench.embedder.fail = False
    assert search(bench.ranker, "coffee").ranking == "lexical" and bench.ranker.model == ""
    assert len([line for line in bench.said if "broke down" in line]) == 1


def test_one_that_fails_while_vectors_are_made_does_too(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.embedder.fail = True
    bench.ranker.put_many([COFFEE])
    assert not bench.ranker.wait(30)
    assert search(bench.ranker, "coffee").ranking == "lexical"
    assert [line for line in bench.said if "broke down" in line]
    bench.ranker.close()


def test_what_has_no_vector_yet_is_counted_and_found_by_its_words(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hybrid, "SEARCH_SECONDS", 0.0)
    bench.with_memories([COFFEE])
    bench.embedder.held = {CAR.text}
    bench.ranker.put_many([CAR])
    answer = search(bench.ranker, "blue automobile")
    (hit,) = [hit for hit in answer.hits if hit.memory == CAR]
    assert hit.semantic_score is None and answer.note == "1 memory has no vector yet."


def test_a_search_waits_for_a_memory_that_was_just_saved(bench: Bench) -> None:
    bench.with_memories([CAR])
    bench.ranker.put_many([COFFEE])
    assert texts(search(bench.ranker, "espresso")) == [COFFEE.text]


def test_a_corrected_memory_is_found_by_its_new_meaning_only(bench: Bench) -> None:
    bench.with_memories([COFFEE, CAR])
    bench.ranker.put_many([memory("a green bicycle", 1, revision=2)])
    assert search(bench.ranker, "espresso").hits == ()
    assert texts(search(bench.ranker, "bicycle")) == ["a green bicycle"]


def test_a_forgotten_memory_is_gone_and_its_place_can_be_taken(bench: Bench) -> None:
    bench.with_memories([COFFEE, CAR])
    bench.ranker.remove_many([COFFEE.id])
    bench.ranker.put_many([memory("espresso cups", 9)])
    assert texts(search(bench.ranker, "tea")) == ["espresso cups"]
    assert bench.ranker.embedded == 2


def test_by_meaning_lists_every_vector_nearest_first(bench: Bench) -> None:
    bench.with_memories([COFFEE, CAR, memory("🙂", 7)])
    listed = bench.ranker.by_meaning("tea")
    assert [memory_id for memory_id, _ in listed] == [COFFEE.id, CAR.id]
    assert listed[0][1] == pytest.approx(float(vector("tea") @ vector(COFFEE.text)), abs=1e-6)  # type: ignore[operator]


WORD = st.sampled_from(["coffee", "espresso", "car", "automobile", "blue", "door", "кофе", "garden", "the"])
TEXT = st.lists(WORD, min_size=1, max_size=5).map(" ".join)
VAULT = st.lists(
    st.tuples(TEXT, st.integers(0, 400), st.sampled_from(["fact", "task", "profile", "event"])), min_size=1, max_size=12
)


def vault_of(rows: list[tuple[str, int, str]]) -> list[Memory]:
    return [
        memory(text, number, updated_at=NOW - timedelta(days=days), created_at=NOW - timedelta(days=500), category=kind)
        for number, (text, days, kind) in enumerate(rows, 1)
    ]


@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(VAULT, TEXT, st.integers(1, 12))
def test_the_laws_of_order_hold_in_every_vault(
    tmp_path: Path, rows: list[tuple[str, int, str]], query: str, limit: int
) -> None:
    ranker = HybridRanker()
    held = vault_of(rows)
    ranker.put_many(held)
    embedder = FakeEmbedder()
    ranker.join(embedder)  # type: ignore[arg-type]
    ranker.settle(held, [vector(each.text) if "кофе" not in each.text else None for each in held])
    answer = search(ranker, query, limit=50)
    words = WordRanker()
    words.put_many(held)
    lexical = {hit.memory.id: hit.lexical_score for hit in words.search(query, now=NOW, limit=50).hits}
    if answer.ranking == "lexical":
        assert answer.note == OTHER_SCRIPT
        return
    cosines = dict(ranker.by_meaning(query))
    near = {memory_id for memory_id, cosine in cosines.items() if cosine >= MODEL.min_similarity}
    assert {hit.memory.id for hit in answer.hits} == lexical.keys() | near and answer.total == len(answer.hits)
    for hit in answer.hits:
        assert hit.lexical_score == pytest.approx(lexical.get(hit.memory.id, 0.0))
        assert (hit.semantic_score is None) == (hit.memory.id not in cosines)
        assert (hit.score >= 0.5) == (hit.lexical_score > 1 - 1e-9)
    keys = [_order(hit) for hit in answer.hits]
    assert keys == sorted(keys)
    assert search(ranker, query, limit=limit).hits == answer.hits[:limit]


def _order(hit: Hit) -> tuple[float, float, float, str]:
    cosine = -2.0 if hit.semantic_score is None else hit.semantic_score
    return (-hit.score, -cosine, -hit.memory.updated_at.timestamp(), hit.memory.id)
