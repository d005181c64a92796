"""What goes into a search and what comes out: filters, hits, rankings, and what every ranker can do.

Nothing heavy is imported here; the front ends know these shapes without loading an engine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from squirrel_mcp.memory import Memory
from squirrel_mcp.search.fold import label


@dataclass(frozen=True, slots=True)
class Filters:
    """What narrows a search before it ranks. None and () ask for nothing; all that is asked must hold.

    Labels are compared without case, accents included; `since` and `until` are aware, both included, and meet
    updatedAt.
    """

    category: str | None = None
    entity: str | None = None
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None

    def matches(self, memory: Memory) -> bool:
        """Whether a memory passes."""
        if self.category is not None and label(memory.category) != label(self.category):
            return False
        if self.entity is not None and label(memory.entity) != label(self.entity):
            return False
        if self.tags and not {label(tag) for tag in self.tags} <= {label(tag) for tag in memory.tags}:
            return False
        if self.since is not None and memory.updated_at < self.since:
            return False
        return self.until is None or memory.updated_at <= self.until


NO_FILTERS = Filters()


@dataclass(frozen=True, slots=True)
class Hit:
    """One memory found. `score` compares within one answer only; `lexical_score` is 0..1 in any vault.

    `semantic_score` is a cosine, None where the memory has no vector or words alone ranked.
    """

    memory: Memory
    score: float
    lexical_score: float
    semantic_score: float | None = None
    near_miss: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """An answer, best hit first.

    `searched`: memories looked at, after filters. `total`: members among them, near misses left out, of which
    `hits` are the first. `note`: one or two sentences where something is to be said.
    """

    ranking: Literal["lexical", "hybrid"]
    total: int
    searched: int
    hits: tuple[Hit, ...]
    note: str = ""


class Ranker(Protocol):
    """Searches the current memories of a vault. May be called from several threads."""

    @property
    def model(self) -> str:
        """The name of what ranks by meaning; "" where words alone rank."""

    @property
    def embedded(self) -> int:
        """How many memories have a vector."""

    def put_many(self, memories: Iterable[Memory]) -> None:
        """Take in new memories, and new revisions in place of those with their ids."""

    def remove_many(self, memory_ids: Collection[str]) -> None:
        """Let go of memories; one that is not there is nothing to remark on."""

    def search(
        self,
        query: str,
        *,
        now: datetime,
        limit: int = 10,
        filters: Filters = NO_FILTERS,
        near_misses: bool = False,
    ) -> Ranking:
        """The members for a query, at most `limit` of them as hits; `near_misses` may append three others."""

    def similar(self, text: str, *, limit: int = 3) -> tuple[Hit, ...]:
        """The memories that look most like a text about to be saved, whatever their age."""

    def close(self) -> None:
        """Let go of everything; no call follows."""
