from __future__ import annotations

import gc
import threading
import weakref
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.memory import Memory
from squirrel_mcp.search import Filters, WordRanker
from squirrel_mcp.search.lexical import CUT, NOTHING_TO_SEARCH
from tests.squirrel_mcp.search.samples import NOW, memories, memory, numbered, texts, weight


def ranker_of(*held: Memory) -> WordRanker:
    ranker = WordRanker()
    ranker.put_many(held)
    return ranker


def found(ranker: WordRanker, query: str, **options: object) -> list[str]:
    return [hit.memory.text for hit in ranker.search(query, now=NOW, **options).hits]  # type: ignore[arg-type]


def test_an_old_exact_match_stands_above_a_new_loose_one() -> None:
    old = memory("The router password is taped under the router", numbered(1), updated_at=NOW - timedelta(days=730))
    new = memory("The router hums", numbered(2))
    assert found(ranker_of(old, new), "router password") == [old.text, new.text]


def test_of_equal_matches_the_newer_stands_first_and_then_the_smaller_id() -> None:
    held = [
        memory("tea a", numbered(3), category="profile"),
        memory("tea b", numbered(1), category="profile", updated_at=NOW - timedelta(milliseconds=1)),
        memory("tea c", numbered(2), category="profile"),
    ]
    assert found(ranker_of(*held), "tea") == ["tea c", "tea a", "tea b"]


def test_age_discounts_and_never_hides() -> None:
    answer = ranker_of(memory("tea", category="task", updated_at=NOW - timedelta(days=20_000))).search("tea", now=NOW)
    fresh = ranker_of(memory("tea", category="task")).search("tea", now=NOW)
    assert answer.hits[0].score == pytest.approx(0.3 * fresh.hits[0].score)


def test_a_filter_narrows_the_answer_and_changes_no_score() -> None:
    held = [memory("tea", numbered(1), tags=("home",)), memory("green tea", numbered(2)), memory("ale", numbered(3))]
    ranker = ranker_of(*held)
    everywhere, narrowed = ranker.search("tea", now=NOW), ranker.search("tea", now=NOW, filters=Filters(tags=("HOME",)))
    assert (everywhere.searched, everywhere.total) == (3, 2)
    assert (narrowed.searched, narrowed.total) == (1, 1)
    assert narrowed.hits[0] == everywhere.hits[0]


def test_total_counts_all_members_and_hits_are_the_first() -> None:
    ranker = ranker_of(*(memory("tea", numbered(i)) for i in range(30)))
    answer = ranker.search("tea", now=NOW, limit=7)
    assert (answer.total, answer.searched) == (30, 30)
    assert [hit.memory.id for hit in answer.hits] == [numbered(i) for i in range(7)]
    assert ranker.search("tea", now=NOW, limit=0).hits == ()


def test_a_nonsense_query_comes_back_empty_with_what_was_searched() -> None:
    answer = ranker_of(memory("tea"), memory("ale", numbered(9))).search("qwxz blorft", now=NOW, near_misses=True)
    assert (answer.ranking, answer.total, answer.searched, answer.hits, answer.note) == ("lexical", 0, 2, (), "")


@pytest.mark.parametrize("query", ["", "***", "🎉", "\ud800"])
def test_a_query_without_letter_or_digit_is_answered_with_a_note(query: str) -> None:
    answer = ranker_of(memory("tea 🎉 ***")).search(query, now=NOW)
    assert (answer.total, answer.hits, answer.note) == (0, (), NOTHING_TO_SEARCH)


def test_a_query_of_megabytes_is_cut_with_a_note() -> None:
    answer = ranker_of(memory("tea")).search("tea " + "lantern-42 " * 1_000_000, now=NOW)
    assert answer.note == CUT
    assert answer.hits[0].lexical_score == 0.5


def test_a_memory_id_finds_its_memory_first() -> None:
    old = memory("ale", numbered(7), category="task", updated_at=NOW - timedelta(days=9_999))
    other = memory(f"{numbered(7)} {numbered(7)} is a note about it", numbered(8))
    ranker = ranker_of(other, old, memory("7 times 0", numbered(9)))
    answer = ranker.search(f" {numbered(7).upper()} ", now=NOW)
    assert [(hit.memory.id, hit.lexical_score) for hit in answer.hits] == [(numbered(7), 1.0), (numbered(8), 1.0)]
    assert answer.hits[0].score > answer.hits[1].score > 0
    assert ranker.search(numbered(7), now=NOW, filters=Filters(category="fact")).total == 1


def test_a_correction_is_found_by_its_new_words_only() -> None:
    ranker = ranker_of(memory("The router is 10.0.7.1"))
    ranker.put_many([memory("The router is 10.0.9.1", revision=2)])
    assert found(ranker, "10.0.7.1") == []
    assert found(ranker, "10.0.9.1") == ["The router is 10.0.9.1"]


def test_what_was_removed_is_not_found_and_may_be_removed_again() -> None:
    ranker = ranker_of(memory("tea"), memory("ale", numbered(9)))
    for _ in range(2):
        ranker.remove_many([numbered(0)])
    answer = ranker.search("tea", now=NOW)
    assert (answer.total, answer.searched) == (0, 1)


def test_similar_are_those_that_hold_half_of_the_words_whatever_their_age() -> None:
    old = memory("The router is 10.0.7.1", numbered(1), category="task", updated_at=NOW - timedelta(days=9_999))
    others = (memory("The router hums under the stairs", numbered(2)), memory("A kayak", numbered(3)))
    hits = ranker_of(old, *others).similar("router is 10.0.9.1")
    assert [hit.memory.id for hit in hits] == [numbered(1), numbered(2)]
    assert [hit.lexical_score for hit in hits] == [0.5, 0.5]
    assert [hit.memory.id for hit in ranker_of(old, *others).similar("router is 10.0.9.1", limit=1)] == [numbered(1)]
    assert ranker_of(old, *others).similar("router for the boat house") == ()
    assert ranker_of(old).similar("🎉") == ()


def test_an_empty_vault_answers() -> None:
    ranker = WordRanker()
    assert ranker.search("tea", now=NOW).searched == 0
    assert ranker.search("tea", now=NOW, filters=Filters(category="fact", since=NOW)).searched == 0
    assert ranker.similar("tea") == ()
    ranker.put_many([])
    ranker.put_many([memory("🎉")])
    assert ranker.search("tea", now=NOW).searched == 1


def test_a_memory_of_the_greatest_length_is_taken_whole() -> None:
    text = "lantern " * 1_999 + "kayak"
    assert found(ranker_of(memory(text), memory("茶" * 16_000, numbered(1))), "kayak") == [text]


def test_a_closed_ranker_keeps_no_memory() -> None:
    ranker = ranker_of(memory("tea"))
    gone = weakref.ref(ranker._index)
    ranker.close()
    gc.collect()
    assert gone() is None


def test_searches_and_saves_may_come_from_several_threads() -> None:
    ranker = ranker_of(*(memory("tea and ale", numbered(i)) for i in range(200)))
    trouble: list[BaseException] = []

    def busy(work: int) -> None:
        try:
            for i in range(150):
                if work:
                    ranker.put_many([memory(f"tea {i}", numbered(work * 1_000 + i % 7))])
                else:
                    ranker.search("tea ale", now=NOW)
        except BaseException as error:  # noqa: BLE001 - shown by the test below
            trouble.append(error)

    threads = [threading.Thread(target=busy, args=(work,)) for work in (0, 0, 1, 2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not trouble
    assert ranker.search("tea", now=NOW).total == 214


@given(st.lists(memories, max_size=8), texts, st.integers(1, 5))
def test_hits_fall_in_score_then_time_then_id(held: list[Memory], query: str, limit: int) -> None:
    ranker = ranker_of(*held)
    answer = ranker.search(query, now=NOW, limit=limit)
    keys = [(-hit.score, -hit.memory.updated_at.timestamp(), hit.memory.id) for hit in answer.hits]
    assert keys == sorted(keys)
    assert len(answer.hits) == min(limit, answer.total)
    assert all(hit.score > 0 and hit.semantic_score is None and not hit.near_miss for hit in answer.hits)
    assert answer.hits == ranker.search(query, now=NOW, limit=50).hits[:limit]


@given(memories, texts)
def test_score_is_bm25_times_w(one: Memory, query: str) -> None:
    ranker = ranker_of(one)
    timeless = ranker_of(replace(one, category="profile"))
    for hit, whole in zip(ranker.search(query, now=NOW).hits, timeless.search(query, now=NOW).hits, strict=True):
        assert hit.score == pytest.approx(whole.score * weight(one.category, one.updated_at, NOW), rel=1e-12)
