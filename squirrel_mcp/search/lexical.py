"""The ranking of the base: BM25 of the words, discounted by age."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from squirrel_mcp.memory import Memory
from squirrel_mcp.search.bm25 import Floats
from squirrel_mcp.search.index import WordIndex
from squirrel_mcp.search.order import best
from squirrel_mcp.search.query import MAX_WORDS, Query, parse
from squirrel_mcp.search.results import NO_FILTERS, Filters, Hit, Ranking

NOTHING_TO_SEARCH = "The query has no letter or digit, and by words it cannot be searched."
CUT = f"The query was too long: only its first words were searched ({MAX_WORDS:,} different ones at most)."
# A batch of memories takes some 20 MB while it is sorted into the index; larger ones are hardly faster.
_BATCH = 16_384
_BATCH_CHARACTERS = 4_000_000
_ALIKE = 0.5  # the lexical score from which a memory looks like a text


class WordRanker:
    """The `Ranker` of the base."""

    def __init__(self) -> None:
        self._index = WordIndex()
        # A search holds views of the postings, which no save may move meanwhile.
        self._lock = Lock()

    @property
    def model(self) -> str:
        return ""

    @property
    def embedded(self) -> int:
        return 0

    def put_many(self, memories: Iterable[Memory]) -> None:
        """Take in memories; of several with one id the last stays. Searches may run between batches."""
        for batch in _batches(memories):
            with self._lock:
                self._take_in(batch)

    def remove_many(self, memory_ids: Collection[str]) -> None:
        """Let go of the memories that are there."""
        with self._lock:
            self._let_go(memory_ids)

    def search(
        self,
        query: str,
        *,
        now: datetime,
        limit: int = 10,
        filters: Filters = NO_FILTERS,
        near_misses: bool = False,
    ) -> Ranking:
        """Every memory that holds a word of the query: `score` = BM25 x w, then newer, then id.

        The near misses of this ranking are none: what holds no word of the query is not near by words.
        """
        parsed = parse(query)
        with self._lock:
            scope = self._index.scope(filters)
            searched = len(self._index) if scope is None else int(np.count_nonzero(scope))
            total, hits = self._rank(parsed, now, limit, scope)
        return Ranking("lexical", total, searched, hits, note_on(parsed))

    def similar(self, text: str, *, limit: int = 3) -> tuple[Hit, ...]:
        """Memories that hold at least half of the words of `text`, by BM25, then newer, then id."""
        with self._lock:
            matches = self._index.match(parse(text))
            alike = matches.lexical >= _ALIKE
            slots, lexical = matches.slots[alike], matches.lexical[alike]
            return self._hits(slots, matches.bm25[alike], lexical, limit)

    def close(self) -> None:
        """Let go of the index and the memories in it."""
        with self._lock:
            self._index = WordIndex()

    def _take_in(self, batch: Sequence[Memory]) -> None:
        """Under the lock."""
        self._index.put_many(batch)

    def _let_go(self, memory_ids: Iterable[str]) -> None:
        """Under the lock."""
        for memory_id in memory_ids:
            self._index.remove(memory_id)

    def _rank(
        self, query: Query, now: datetime, limit: int, scope: NDArray[np.bool_] | None
    ) -> tuple[int, tuple[Hit, ...]]:
        matches = self._index.match(query)
        slots, lexical = matches.slots, matches.lexical
        scores = matches.bm25 * self._index.ages().weights(slots, now)
        if matches.named is not None:
            scores[slots == matches.named] += scores.max()
        if scope is not None:
            inside = scope[slots]
            slots, lexical, scores = slots[inside], lexical[inside], scores[inside]
        return len(slots), self._hits(slots, scores, lexical, limit)

    def _hits(self, slots: NDArray[np.intp], scores: Floats, lexical: Floats, limit: int) -> tuple[Hit, ...]:
        updated = self._index.ages().updated(slots)
        chosen = best((scores, updated), limit, lambda i: self._index.memory(int(slots[i])).id)
        return tuple(Hit(self._index.memory(int(slots[i])), float(scores[i]), float(lexical[i])) for i in chosen)


def _batches(memories: Iterable[Memory]) -> Iterator[list[Memory]]:
    batch: list[Memory] = []
    characters = 0
    for memory in memories:
        batch.append(memory)
        characters += len(memory.text)
        if len(batch) == _BATCH or characters >= _BATCH_CHARACTERS:
            yield batch
            batch, characters = [], 0
    if batch:
        yield batch


def note_on(query: Query) -> str:
    """What is to be said of a query, whatever was found; "" if nothing is."""
    if not query.words:
        return NOTHING_TO_SEARCH
    return CUT if query.cut else ""
