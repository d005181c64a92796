"""A ranker for commands that rank nothing: they need no index of all memories, and no library that makes one."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from squirrel_mcp.memory import Memory
from squirrel_mcp.search.results import NO_FILTERS, Filters, Hit, Ranking


class NoRanker:
    """A `Ranker` that finds nothing."""

    name = "none"

    def put(self, memory: Memory) -> None:
        """Nothing is kept."""

    def put_many(self, memories: Iterable[Memory]) -> None:
        """Nothing is kept."""

    def remove(self, memory_id: str) -> None:
        """Nothing was kept."""

    def search(
        self,
        query: str,
        *,
        now: datetime,
        limit: int = 10,
        filters: Filters = NO_FILTERS,
        near_misses: bool = False,
    ) -> Ranking:
        return Ranking("lexical", 0, 0, ())

    def similar(self, text: str, *, limit: int = 3) -> tuple[Hit, ...]:
        return ()

    def close(self) -> None:
        """Nothing is open."""
