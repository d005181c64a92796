from __future__ import annotations

import pytest
from hypothesis import given

from squirrel_mcp.search.terms import analyse, chunks_of, terms_of
from squirrel_mcp.search.words import words
from tests.squirrel_mcp.search.samples import memory, texts


def test_wholes_and_parts_are_weighed_and_only_wholes_are_counted() -> None:
    weights, length = terms_of(memory("Auth: the authToken, userToken, Auth"))
    assert weights == {"auth": 2.5, "the": 1, "authtoken": 1, "usertoken": 1, "token": -1.0, "user": -0.5}
    assert length == 5


def test_all_fields_that_are_searched_count_each_by_itself() -> None:
    weights, length = terms_of(memory("tea", entity="茶", tags=("生", "home office"), keywords=("-off",), source="s"))
    assert weights == dict.fromkeys(("tea", "茶", "生", "home", "office", "off"), 1)
    assert length == 6


@given(texts)
def test_text_analysed_in_stretches_is_text_analysed_whole(text: str) -> None:
    whole = list(words(text))
    analysed = [analyse(chunk) for chunk in chunks_of(memory(text))]
    assert [word for wholes, _ in analysed for word in wholes] == [word.whole for word in whole]
    assert [part for _, parts in analysed for part in parts] == [part for word in whole for part in word.parts]


@pytest.mark.parametrize(
    "chunk",
    ["tea", "Tea,", '("TEA")', "42.", "TeaX", "tea.", "tEA", ".net", "c++", "tea's", "c#", "tea:", "(a)", "I", "x1"],
)
def test_the_short_way_for_plain_words_comes_to_the_same(chunk: str) -> None:
    whole = list(words(chunk))
    assert analyse(chunk) == ([word.whole for word in whole], [part for word in whole for part in word.parts])
