"""Search by words: pure, no I/O, no clock, no environment.

The shapes are imported at once, the engine (numpy, rank-bm25, the stemmer) when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from squirrel_mcp.search.results import NO_FILTERS, Filters, Hit, Ranker, Ranking

if TYPE_CHECKING:
    from squirrel_mcp.search.index import Matches, WordIndex
    from squirrel_mcp.search.lexical import WordRanker

__all__ = [
    "NO_FILTERS",
    "Filters",
    "Hit",
    "Matches",
    "Ranker",
    "Ranking",
    "WordIndex",
    "WordRanker",
]

_LATER = {
    "Matches": "squirrel_mcp.search.index",
    "WordIndex": "squirrel_mcp.search.index",
    "WordRanker": "squirrel_mcp.search.lexical",
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
