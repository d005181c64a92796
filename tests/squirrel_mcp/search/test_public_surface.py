from __future__ import annotations

import pytest

from squirrel_mcp import search
from squirrel_mcp.search import Ranker


def test_the_public_surface_is_this_list() -> None:
    assert search.__all__ == [
        "NO_FILTERS",
        "Filters",
        "Hit",
        "Matches",
        "Ranker",
        "Ranking",
        "WordIndex",
        "WordRanker",
    ]
    assert all(getattr(search, name) is not None for name in search.__all__)


def test_there_is_nothing_else() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Everything'"):
        search.Everything  # noqa: B018


def test_the_word_ranker_is_a_ranker() -> None:
    ranker: Ranker = search.WordRanker()
    assert ranker.model == ""
