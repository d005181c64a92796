from __future__ import annotations

from pathlib import Path

from squirrel_mcp.search.fold import fold
from squirrel_mcp.search.stopwords import STOPWORDS


def test_the_stopwords_are_those_of_the_ranking_rules() -> None:
    listed = Path(__file__).with_name("stopwords-en.txt").read_text("utf-8").split()
    assert frozenset(listed) == STOPWORDS


def test_stopwords_are_written_folded_and_without_apostrophes() -> None:
    assert all(word.isalpha() and fold(word) == word for word in STOPWORDS)
