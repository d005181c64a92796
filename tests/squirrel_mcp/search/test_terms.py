from __future__ import annotations

import pytest
from hypothesis import given

from squirrel_mcp.search import terms
from squirrel_mcp.search.terms import Terms
from squirrel_mcp.search.words import words
from tests.squirrel_mcp.search.samples import memory, texts


def test_wholes_and_parts_are_weighed_and_only_wholes_are_counted() -> None:
    weights, length = Terms().of(memory("Auth: the authToken, userToken, Auth"))
    assert weights == {"auth": 2.5, "the": 1, "authtoken": 1, "usertoken": 1, "token": -1.0, "user": -0.5}
    assert length == 5


def test_all_fields_that_are_searched_count_each_by_itself() -> None:
    weights, length = Terms().of(memory("tea", entity="茶", tags=("生", "home office"), keywords=("-off",), source="s"))
    assert weights == dict.fromkeys(("tea", "茶", "生", "home", "office", "off"), 1)
    assert length == 6


@given(texts)
def test_what_is_remembered_of_stretches_changes_nothing(text: str) -> None:
    analyses = Terms()
    first, again = analyses.of(memory(text)), analyses.of(memory(text))
    whole = list(words(text))
    assert first == again
    assert first[1] == len(whole)
    assert first[0].keys() == {word.whole for word in whole} | {part for word in whole for part in word.parts}


@pytest.mark.parametrize(
    "chunk", ["tea", "Tea,", '("TEA")', "42.", "TeaX", "tea.", "tEA", ".net", "c++", "tea's", "c#", "tea:"]
)
def test_the_short_way_for_plain_words_comes_to_the_same(chunk: str) -> None:
    weights, _ = Terms().of(memory(chunk))
    whole = list(words(chunk))
    assert weights.keys() == {word.whole for word in whole} | {part for word in whole for part in word.parts}


def test_no_more_is_remembered_than_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terms, "_MOST_CHARACTERS", 10)
    analyses = Terms()
    for text in ("sign-off again", "sign-off", "Pi-hole of the neighbours"):
        assert analyses.of(memory(text)) == Terms().of(memory(text))
    assert analyses._chunks.keys() == {"sign-off", *text.split()}
