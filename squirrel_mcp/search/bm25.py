"""BM25 on `rank-bm25`, with postings: a save touches the terms of one memory, a query those it asks for.

`rank_bm25.BM25Okapi` is built from a whole corpus and, for each word of a query, visits every document. The
subclass keeps its formula and its `get_scores`, and looks only at documents that hold the word. Two things
differ, as docs/ranking.md, section 2, says: weights of terms may be fractions, and the idf is
ln(1 + (N - df + 0.5)/(df + 0.5)), because the library's own is zero or negative for a term in half of the
documents.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from rank_bm25 import BM25Okapi

K1 = 1.2
B = 0.75

Floats = NDArray[np.float64]
Buffer = bytes | memoryview


class PostingsBM25(BM25Okapi):  # type: ignore[misc]
    """BM25 over documents that come and go. A document is a slot: a small number its owner gives and reuses.

    Postings are kept per term in the order of slots, as 4-byte numbers. A document that goes is taken out of
    them, so that document frequencies and the average length are exact at any time.
    """

    k1: float
    b: float

    def __init__(self, k1: float = K1, b: float = B) -> None:
        super().__init__((), k1=k1, b=b)
        self.corpus_size = 0  # documents, as N in the idf; there may be free slots besides
        self.avgdl = 0.0
        self.doc_len = array("I")  # by slot
        self._total_length = 0
        self._postings: dict[str, tuple[array[int], array[float]]] = {}

    def _initialize(self, corpus: Iterable[Sequence[str]]) -> dict[str, int]:
        return {}  # the constructor of the library would divide by the size of the corpus

    def _calc_idf(self, nd: Mapping[str, int]) -> None:
        """Nothing to prepare: see `idf_of`."""

    def __contains__(self, term: str) -> bool:
        return term in self._postings

    def add(self, slot: int, weights: Mapping[str, float], length: int) -> list[str]:
        """Put a document into a free slot or the next one; returns the terms no document held before.

        The sign of a weight is kept and plays no part in scores: it is for the caller, see `postings`.
        """
        if slot == len(self.doc_len):
            self.doc_len.append(length)
        else:
            self.doc_len[slot] = length
        self._count(1, length)
        new: list[str] = []
        postings = self._postings
        for term, weight in weights.items():
            entry = postings.get(term)
            if entry is None:
                postings[term] = (array("I", (slot,)), array("f", (weight,)))
                new.append(term)
                continue
            slots, held = entry
            if slots[-1] < slot:
                slots.append(slot)
                held.append(weight)
            else:
                position = bisect_left(slots, slot)
                slots.insert(position, slot)
                held.insert(position, weight)
        return new

    def add_many(self, lengths: Iterable[int], postings: Iterable[tuple[str, Buffer, Buffer]]) -> list[str]:
        """Put documents into the next slots; returns as `add` does. Many times faster than one by one.

        `postings` has for each term the slots of these documents that hold it, ascending, as 4-byte integers,
        and its weights there as 4-byte floats.
        """
        for length in lengths:
            self.doc_len.append(length)
            self._count(1, length)
        new: list[str] = []
        for term, slots, weights in postings:
            entry = self._postings.get(term)
            if entry is None:
                entry = self._postings[term] = (array("I"), array("f"))
                new.append(term)
            entry[0].frombytes(slots)
            entry[1].frombytes(weights)
        return new

    def remove(self, slot: int, terms: Iterable[str]) -> list[str]:
        """Take out the document in `slot`, which holds exactly `terms`; returns those nobody holds now."""
        self._count(-1, -self.doc_len[slot])
        self.doc_len[slot] = 0
        gone: list[str] = []
        for term in terms:
            slots, held = self._postings[term]
            if len(slots) == 1:
                del self._postings[term]
                gone.append(term)
            else:
                position = bisect_left(slots, slot)
                del slots[position], held[position]
        return gone

    def _count(self, documents: int, length: int) -> None:
        self.corpus_size += documents
        self._total_length += length
        self.avgdl = self._total_length / self.corpus_size if self.corpus_size else 0.0

    def postings(self, term: str) -> tuple[NDArray[np.uint32], NDArray[np.float32]]:
        """(slots that hold `term`, ascending; its weights there), both views without a copy.

        They must be let go before the next `add` or `remove`, which could not move the arrays otherwise.
        """
        entry = self._postings.get(term)
        if entry is None:
            return np.empty(0, np.uint32), np.empty(0, np.float32)
        return np.frombuffer(entry[0], np.uint32), np.frombuffer(entry[1], np.float32)

    def idf_of(self, holders: int) -> float:
        """The idf of a term that so many documents hold: above zero always."""
        return math.log1p((self.corpus_size - holders + 0.5) / (holders + 0.5))

    def contributions(self, slots: NDArray[np.integer], frequencies: Floats) -> Floats:
        """What a term adds to the score of each document that holds it so many times."""
        lengths = np.frombuffer(self.doc_len, np.uint32)[slots]
        norms = self.k1 * (1 - self.b + self.b * lengths / self.avgdl)
        found: Floats = self.idf_of(len(slots)) * (frequencies * (self.k1 + 1) / (frequencies + norms))
        return found

    def get_scores(self, query: Iterable[str]) -> Floats:
        """One score for each slot, 0 for a free one; a term counts as often as the query has it."""
        scores = np.zeros(len(self.doc_len))
        for term in query:
            slots, weights = self.postings(term)
            if len(slots):
                scores[slots] += self.contributions(slots, np.abs(weights).astype(np.float64))
        return scores

    def get_batch_scores(self, query: Iterable[str], doc_ids: Sequence[int]) -> list[float]:
        """The scores of some slots, in the order given."""
        scores: list[float] = self.get_scores(query)[list(doc_ids)].tolist()
        return scores
