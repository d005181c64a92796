"""The words of a vault: which memories hold the words of a query, how well, and with what BM25.

This is what both rankings are made of. The base orders by BM25 and age; the companion fuses `lexical` with
its cosines and takes `bm25` where meaning is not used. Slots name memories inside: small, dense, reused.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from squirrel_mcp.memory import Memory
from squirrel_mcp.search.batch import Batch
from squirrel_mcp.search.bm25 import Floats, PostingsBM25
from squirrel_mcp.search.facets import Facets
from squirrel_mcp.search.query import Query
from squirrel_mcp.search.recency import Ages
from squirrel_mcp.search.results import NO_FILTERS, Filters
from squirrel_mcp.search.stems import Stems
from squirrel_mcp.search.terms import PART, WHOLE, terms_of

OTHER_FORM = 0.9


@dataclass(frozen=True, slots=True)
class Matches:
    """The lexical matches of a query: arrays of one length, slots ascending; both scores are above 0.

    `named` is the slot of the memory whose id the query is: it belongs first, whatever the scores.
    """

    slots: NDArray[np.intp]
    lexical: Floats
    bm25: Floats
    named: int | None = None


@dataclass(frozen=True, slots=True)
class _Holders:
    slots: NDArray[np.integer]
    held: Floats  # how well: 1, 0.9, 0.5 or 0.45
    frequencies: Floats  # how often, for BM25, with the same weights


class WordIndex:
    """Memories by their words. Not for several threads at once: its owner sees to that."""

    def __init__(self) -> None:
        self._memories: list[Memory | None] = []  # by slot
        self._slots: dict[str, int] = {}  # by id
        self._free: list[int] = []
        self._live = bytearray()  # by slot, 1 or 0
        self._stems = Stems()
        self._engine = PostingsBM25()
        self._facets = Facets()
        self._ages = Ages()

    def __len__(self) -> int:
        return len(self._slots)

    def put(self, memory: Memory) -> None:
        """Take in a memory, in place of the one with its id. The cost does not grow with the vault."""
        self.remove(memory.id)
        if self._free:
            slot = self._free.pop()
            self._memories[slot] = memory
            self._live[slot] = 1
        else:
            slot = len(self._memories)
            self._memories.append(memory)
            self._live.append(1)
        self._slots[memory.id] = slot
        weights, length = terms_of(memory)
        for term in self._engine.add(slot, weights, length):
            self._stems.add(term)
        self._facets.add(slot, memory)
        self._ages.put(slot, memory.category, memory.updated_at)

    def put_many(self, memories: Iterable[Memory]) -> None:
        """Take in many; of several with one id the last stays. Much faster than one by one."""
        new: dict[str, Memory] = {}
        for memory in memories:
            if memory.id in self._slots:
                self.put(memory)
            else:
                new[memory.id] = memory
        first = len(self._memories)
        batch = Batch()
        for memory in new.values():
            batch.add(memory)
        for term in self._engine.add_many(batch.lengths(), batch.postings(first)):
            self._stems.add(term)
        self._memories += new.values()
        self._live += b"\1" * len(new)
        for slot, memory in enumerate(new.values(), first):
            self._slots[memory.id] = slot
            self._facets.add(slot, memory)
            self._ages.put(slot, memory.category, memory.updated_at)

    def remove(self, memory_id: str) -> None:
        """Let go of a memory, if it is there."""
        slot = self._slots.pop(memory_id, None)
        if slot is None:
            return
        memory = self.memory(slot)
        weights, _ = terms_of(memory)
        for term in self._engine.remove(slot, weights):
            self._stems.remove(term)
        self._facets.remove(slot, memory)
        self._memories[slot] = None
        self._live[slot] = 0
        self._free.append(slot)

    def slot(self, memory_id: str) -> int | None:
        """Where a memory is, None for one that is not here."""
        return self._slots.get(memory_id)

    def slots(self) -> int:
        """How many slots there are, free ones included."""
        return len(self._memories)

    def memory(self, slot: int) -> Memory:
        """The memory in a slot that is taken."""
        memory = self._memories[slot]
        assert memory is not None
        return memory

    def ages(self) -> Ages:
        """Times and w by slot."""
        return self._ages

    def scope(self, filters: Filters) -> NDArray[np.bool_] | None:
        """For every slot whether its memory passes; None where every memory does."""
        if filters == NO_FILTERS:
            return None
        mask = self._ages.within(filters.since, filters.until) & np.frombuffer(self._live, np.bool_)
        return self._facets.narrow(mask, filters)

    def match(self, query: Query) -> Matches:
        """Every memory that holds a word of the query or a counted part of one."""
        size = len(self._memories)
        lexical, bm25 = np.zeros(size), np.zeros(size)
        known: dict[str, _Holders] = {}

        def score(term: str, weight: float) -> _Holders:
            holders = known.get(term)
            if holders is None:
                holders = known[term] = self._holders(term)
            if len(holders.slots):
                bm25[holders.slots] += weight * self._engine.contributions(holders.slots, holders.frequencies)
            return holders

        for word in query.words:
            whole = score(word.whole, 1.0)
            if not word.parts:
                lexical[whole.slots] += whole.held
                continue
            held = np.zeros(size)
            for part in word.parts:
                holders = score(part, 1.0 / len(word.parts))
                held[holders.slots] += holders.held
            held /= len(word.parts)
            held[whole.slots] = np.maximum(held[whole.slots], whole.held)
            lexical += held

        named = self._slots.get(query.memory_id) if query.memory_id else None
        if named is not None:
            # As if the id were a word of the memory, which no other has.
            lexical[named] = 1.0
            bm25[named] += self._engine.contributions(np.array([named]), np.ones(1))[0]
        slots = np.flatnonzero(bm25 > 0)  # several times faster than on the numbers themselves
        return Matches(slots, lexical[slots] / max(1, len(query.words)), bm25[slots], named)

    def _holders(self, term: str) -> _Holders:
        """The memories that hold `term` or another form of it."""
        slots, weights = self._engine.postings(term)
        forms = self._stems.forms(term)
        if not forms:
            return _Holders(slots, _held(weights), _frequencies(weights))
        held, frequencies = np.zeros(len(self._memories)), np.zeros(len(self._memories))
        held[slots] = _held(weights)
        frequencies[slots] = _frequencies(weights)
        for form in forms:
            slots, weights = self._engine.postings(form)
            held[slots] = np.maximum(held[slots], OTHER_FORM * _held(weights))
            frequencies[slots] += OTHER_FORM * _frequencies(weights)
        found = np.flatnonzero(frequencies > 0)
        return _Holders(found, held[found], frequencies[found])


def _held(weights: NDArray[np.float32]) -> Floats:
    """A negative weight is that of a part: see terms.py."""
    return np.where(weights > 0, WHOLE, PART)


def _frequencies(weights: NDArray[np.float32]) -> Floats:
    return np.abs(weights).astype(np.float64)
