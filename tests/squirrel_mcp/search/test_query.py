from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given

from squirrel_mcp.search.query import MAX_CHARACTERS, MAX_WORDS, Query, QueryWord, parse
from tests.squirrel_mcp.search.samples import texts


def content(text: str) -> list[str]:
    return [word.whole for word in parse(text).words]


def test_stopwords_do_not_count_unless_there_is_nothing_else() -> None:
    assert content("what is the favourite colour") == ["favourite", "colour"]
    assert content("To be, or not to BE") == ["to", "be", "or", "not"]
    assert content("what's theirs, don't they?") == ["what", "theirs", "dont", "they"]


def test_a_word_spelled_with_an_accent_is_no_stopword() -> None:
    assert content("the ăn") == ["an"]
    assert content("an ăn the") == ["an"]
    assert content("ｔｈｅ tea") == ["tea"]


def test_words_are_distinct() -> None:
    assert content("tea Tea TEA's Téa coffee") == ["tea", "coffee"]


def test_stopwords_among_parts_count_only_when_all_are() -> None:
    assert parse("state-of-the-art").words == (QueryWord("stateoftheart", ("state", "art")),)
    assert parse("to-do").words == (QueryWord("todo", ("to", "do")),)
    assert parse("do-à-b").words == (QueryWord("doab", ("a", "b")),)


def test_two_spellings_of_a_compound_are_one_word_with_its_parts() -> None:
    assert parse("pihole Pi-hole").words == (QueryWord("pihole", ("pi", "hole")),)


def test_pairs_have_no_parts() -> None:
    assert parse("喝绿茶").words == (QueryWord("喝绿"), QueryWord("绿茶"))


@pytest.mark.parametrize("text", ["", " ", "***", "🎉", "://", "\u0e49", "\ud800", "-_.'"])
def test_nothing_to_search_is_no_words(text: str) -> None:
    assert parse(text) == Query(())


@pytest.mark.parametrize("spelling", ["0f" * 16, "0F" * 16, f"  {'0f' * 16}\n", "０ｆ" * 16])
def test_a_memory_id_stays_whole(spelling: str) -> None:
    assert parse(spelling) == Query((QueryWord("0f" * 16),), "0f" * 16)


def test_a_memory_id_among_words_is_a_word() -> None:
    assert parse(f"show {'0f' * 16}").memory_id is None


def test_a_long_query_is_cut_at_a_word_and_says_so() -> None:
    text = "lantern " * 5_000
    assert parse(text) == Query((QueryWord("lantern"),), None, True)
    assert parse("x" * (MAX_CHARACTERS + 1)).words == (QueryWord("x" * MAX_CHARACTERS),)
    assert not parse(" " * 5_000_000 + "lantern" + " " * 5_000_000).cut


def test_so_many_different_words_and_no_more_are_searched() -> None:
    numbers = count(1_000)
    text = " ".join(str(next(numbers)) for _ in range(MAX_WORDS))
    assert not parse(text).cut
    longer = parse(text + " tea")
    assert longer.cut
    assert len(longer.words) == MAX_WORDS


@given(texts)
def test_what_counts_was_asked_and_comes_once(text: str) -> None:
    query = parse(text)
    assert len({word.whole for word in query.words}) == len(query.words)
    assert all(len(set(word.parts)) == len(word.parts) for word in query.words)
