"""The ranking of the companion: words and meaning, and words alone as long as there is no meaning to be had."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from threading import Condition
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from squirrel_mcp.memory import Memory
from squirrel_mcp.search.lexical import WordRanker, note_on
from squirrel_mcp.search.order import best
from squirrel_mcp.search.query import Query, parse
from squirrel_mcp.search.results import NO_FILTERS, Filters, Hit, Ranking
from squirrel_mcp_embeddings import fusion
from squirrel_mcp_embeddings.background import Background
from squirrel_mcp_embeddings.errors import EmbeddingFailed
from squirrel_mcp_embeddings.script import reads
from squirrel_mcp_embeddings.vector_table import VectorTable

if TYPE_CHECKING:  # the runtime behind it is loaded by the background, and not before
    from squirrel_mcp_embeddings.embedder import Embedder, Vector

SEARCH_SECONDS = 8.0  # what a search may wait for vectors
LOADING_SECONDS = 60.0  # what a patient one may wait for the model
WORTH_WAITING = 2_000  # memories: about what a slow machine embeds in that time; for more a wait would end in vain
NEAR_MISSES = 3

LOADING = "The model is still being loaded: this answer ranks by words only."
OTHER_SCRIPT = "The model does not read the script of this query: it was searched by words only."
NOTHING_READ = "The model reads nothing in this query: it was searched by words only."


class HybridRanker(WordRanker):
    """A `WordRanker` that a model joins, with the vectors of its memories; both are brought by a `Background`.

    patient: the model is loaded when it is first asked for, and waited for; otherwise it is loaded beforehand.
    """

    def __init__(self, *, patient: bool = False) -> None:
        super().__init__()
        self._patient = patient
        self._changed = Condition(self._lock)
        self._embedder: Embedder | None = None
        self._vectors: VectorTable | None = None
        self._pending: dict[str, Memory] = {}  # by id: what has no vector yet and may get one
        self._unavailable = ""  # why there is no meaning; "" while there is, or may still be
        self._closed = False
        self.background: Background | None = None

    @property
    def model(self) -> str:
        embedder, unavailable = self._model()
        return embedder.model.id if embedder and not unavailable else ""

    @property
    def embedded(self) -> int:
        with self._lock:
            return len(self._vectors) if self._vectors else 0

    def put_many(self, memories: Iterable[Memory]) -> None:
        """Take in memories; they get their vectors behind this."""
        super().put_many(memories)
        if self.background is not None and not self._patient:
            self.background.begin()  # not before the first memories are known: rows without one would be dropped

    def remove_many(self, memory_ids: Collection[str]) -> None:
        """Let go of memories, and at once of their vectors, in the file as well."""
        super().remove_many(memory_ids)
        if self.background is not None:
            self.background.keeper.forget()

    def search(
        self,
        query: str,
        *,
        now: datetime,
        limit: int = 10,
        filters: Filters = NO_FILTERS,
        near_misses: bool = False,
    ) -> Ranking:
        """Lexical matches and what is near in meaning, in fused order; by words, with a note, where that cannot be."""
        parsed = parse(query)
        # An id has no meaning, only a memory.
        vector, why_not = (None, "") if parsed.memory_id else self._read(query)
        if vector is None:
            ranking = super().search(query, now=now, limit=limit, filters=filters)
            # Where there is no word in it, that says enough.
            return replace(ranking, note=_sentences(ranking.note, why_not if parsed.words else ""))
        with self._changed:
            if len(self._pending) <= WORTH_WAITING:
                self._changed.wait_for(lambda: not self._pending or self._unavailable or self._closed, SEARCH_SECONDS)
            return self._fuse(parsed, vector, now, limit, filters, near_misses)

    def by_meaning(self, query: str) -> list[tuple[str, float]]:
        """(id, cosine) of every memory that has a vector, the nearest first; [] where meaning is not used."""
        vector, _ = self._read(query)
        if vector is None:
            return []
        with self._lock:
            cosines = self._cosines(vector)
            slots = np.flatnonzero(~np.isnan(cosines))
            found = [(self._index.memory(int(slot)).id, float(cosines[slot])) for slot in slots]
        return sorted(found, key=lambda pair: (-pair[1], pair[0]))

    def wait(self, seconds: float | None = None) -> bool:
        """Until every memory that can have a vector has one; False where that is not to be, or took too long."""
        with self._changed:
            done = self._changed.wait_for(lambda: self._settled() or self._unavailable or self._closed, seconds)
            return bool(done) and self._settled() and not self._unavailable

    def close(self) -> None:
        """Let go of everything; vectors that are being made are dropped."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self.background is not None:
            self.background.end()
        super().close()

    # What the background calls, from its own thread.

    def join(self, embedder: Embedder) -> None:
        """From now on there is a model."""
        with self._changed:
            self._embedder = embedder
            if self._vectors is None:
                self._vectors = VectorTable(embedder.model.dimension)
            self._changed.notify_all()

    def give_up(self, reason: str) -> None:
        """From now on words alone rank."""
        with self._changed:
            self._unavailable = f"Search by meaning is not available ({reason}): this answer ranks by words only."
            self._changed.notify_all()

    def next_to_embed(self, most: int) -> list[Memory]:
        """Waits until there is something to embed; the latest first, and [] once this is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._pending or self._closed)
            if self._closed:
                return []
            latest = reversed(self._pending.values())
            return [memory for memory, _ in zip(latest, range(most), strict=False)]

    def adopt(self, dimension: int, found: Iterable[tuple[str, int, NDArray[np.floating]]]) -> int:
        """Take in (id, revision, vector) from the file; how many of them are of memories that are not here."""
        unknown = 0
        with self._changed:
            if self._vectors is None:
                self._vectors = VectorTable(dimension)
            for memory_id, revision, vector in found:
                unknown += self._index.slot(memory_id) is None
                self._place(memory_id, revision, vector)
            self._changed.notify_all()
        return unknown

    def settle(self, memories: Sequence[Memory], vectors: Sequence[Vector | None]) -> list[Memory]:
        """Take in what was embedded, None for what cannot be read; those of the memories that got a vector."""
        placed = []
        with self._changed:
            for memory, vector in zip(memories, vectors, strict=True):
                if vector is None:
                    if self._pending.get(memory.id) is memory:
                        del self._pending[memory.id]
                elif self._place(memory.id, memory.revision, vector):
                    placed.append(memory)
            self._changed.notify_all()
        return placed

    def vectors_of(self, memories: Iterable[Memory]) -> list[tuple[str, int, NDArray[np.float16]]]:
        """(id, revision, vector) of those that are still current and have one."""
        with self._lock:
            return [
                (memory.id, memory.revision, vectors.half(slot))
                for memory in memories
                if (slot := self._index.slot(memory.id)) is not None
                and self._index.memory(slot) is memory
                and (vectors := self._vectors) is not None
                and vectors.has_one(slot)
            ]

    def current(self) -> list[tuple[str, int, NDArray[np.float16]]]:
        """(id, revision, vector) of every memory that has one."""
        with self._lock:
            if self._vectors is None:
                return []
            slots = np.flatnonzero(self._vectors.has(self._index.slots())).tolist()
            memories = map(self._index.memory, slots)
            return [(m.id, m.revision, self._vectors.half(slot)) for m, slot in zip(memories, slots, strict=True)]

    def _take_in(self, batch: Sequence[Memory]) -> None:
        super()._take_in(batch)
        for memory in batch:
            self._clear(memory.id)
            self._pending.pop(memory.id, None)  # so that it moves to the end
            self._pending[memory.id] = memory
        self._changed.notify_all()

    def _let_go(self, memory_ids: Iterable[str]) -> None:
        for memory_id in memory_ids:
            self._clear(memory_id)
            self._pending.pop(memory_id, None)
        super()._let_go(memory_ids)
        self._changed.notify_all()

    def _clear(self, memory_id: str) -> None:
        slot = self._index.slot(memory_id)
        if slot is not None and self._vectors is not None:
            self._vectors.clear(slot)

    def _place(self, memory_id: str, revision: int, vector: NDArray[np.floating]) -> bool:
        slot = self._index.slot(memory_id)
        if slot is None or self._index.memory(slot).revision != revision:
            return False
        assert self._vectors is not None
        self._vectors.put(slot, vector)
        self._pending.pop(memory_id, None)
        return True

    def _settled(self) -> bool:
        return self._embedder is not None and not self._pending

    def _model(self) -> tuple[Embedder | None, str]:
        """The model, or None and why there is none; "" while it may still come."""
        with self._changed:
            if self._patient and self.background is not None:
                self.background.begin()
                self._changed.wait_for(lambda: self._embedder or self._unavailable or self._closed, LOADING_SECONDS)
            return self._embedder, self._unavailable

    def _read(self, query: str) -> tuple[Vector | None, str]:
        """The query's vector, or None and why there is none."""
        embedder, unavailable = self._model()
        if unavailable or embedder is None:
            return None, unavailable or LOADING
        if not reads(query):
            return None, OTHER_SCRIPT
        try:
            (vector,) = embedder.embed([query])
        except EmbeddingFailed as error:
            if self.background is not None:
                self.background.broken(error)
            return None, self._unavailable
        return vector, "" if vector is not None else NOTHING_READ

    def _cosines(self, vector: Vector) -> NDArray[np.float32]:
        assert self._vectors is not None
        return self._vectors.cosines(vector, self._index.slots())

    def _fuse(
        self, query: Query, vector: Vector, now: datetime, limit: int, filters: Filters, near_misses: bool
    ) -> Ranking:
        assert self._embedder is not None
        model = self._embedder.model
        index = self._index
        matches = index.match(query)
        lexical = np.zeros(index.slots())
        lexical[matches.slots] = matches.lexical
        cosines = self._cosines(vector)
        near = np.nan_to_num(cosines, nan=-2.0)
        scope = index.scope(filters)
        inside = np.ones(index.slots(), np.bool_) if scope is None else scope
        members = np.flatnonzero(((lexical > 0) | (near >= model.min_similarity)) & inside)
        scores = fusion.scores(lexical[members], cosines[members], index.ages().weights(members, now), model)
        hits = self._hits_of(members, scores, lexical, cosines, near, limit)
        if near_misses:
            others = np.flatnonzero((lexical == 0) & (near > -2.0) & (near < model.min_similarity) & inside)
            nothing = np.zeros(len(others))
            hits += tuple(
                replace(hit, near_miss=True)
                for hit in self._hits_of(others, nothing, lexical, cosines, near, NEAR_MISSES)
            )
        searched = len(index) if scope is None else int(np.count_nonzero(scope))
        missing = len(self._pending)
        yet = f"{missing:,} {'memory has' if missing == 1 else 'memories have'} no vector yet." if missing else ""
        return Ranking("hybrid", len(members), searched, hits, _sentences(note_on(query), yet))

    def _hits_of(
        self,
        slots: NDArray[np.intp],
        scores: NDArray[np.float64],
        lexical: NDArray[np.float64],
        cosines: NDArray[np.float32],
        near: NDArray[np.float32],
        limit: int,
    ) -> tuple[Hit, ...]:
        keys = (scores, near[slots], self._index.ages().updated(slots))
        chosen = best(keys, limit, lambda i: self._index.memory(int(slots[i])).id)
        hits = []
        for i in chosen:
            slot = int(slots[i])
            cosine = None if np.isnan(cosines[slot]) else float(cosines[slot])
            hits.append(Hit(self._index.memory(slot), float(scores[i]), float(lexical[slot]), cosine))
        return tuple(hits)


def _sentences(*notes: str) -> str:
    return " ".join(filter(None, notes))
