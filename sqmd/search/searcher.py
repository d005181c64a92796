"""Asks both legs, fuses them, and has the best reranked."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from sqmd.embed import Embedder
from sqmd.errors import EmbedderDown, InvalidInput
from sqmd.search.fusion import Leg, fuse
from sqmd.search.results import MAX_TOP_K, MODES, Answer, Mode, Result
from sqmd.store.database import Database

_FACTOR = 3  # each leg fetches so many times what is wanted, so that what only one of them ranks high gets in
MAX_QUERY = 10_000  # characters
_HALF = re.compile("[\ud800-\udfff]")  # of a surrogate pair, as what a terminal sends that is no UTF-8 is read

NOTHING_READ = "The model reads nothing in this query."
NO_MEANING = "The model reads nothing in this query: it was searched by words only."
WORDS_ONLY = "Vectors cannot be computed at present: it was searched by words only."
NOT_RERANKED = "The cross-encoder cannot be used at present: nothing was reranked."


class Reranker(Protocol):
    """A cross-encoder."""

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """How well each text answers the query; comparable within one call. EmbedderDown."""

    def close(self) -> None: ...


class Searcher:
    """Searches of one database. `reranker` is made when it is first asked for."""

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        *,
        rrf_k: int,
        rerank_top_n: int,
        reranker: Callable[[], Reranker],
    ) -> None:
        self._database, self._embedder, self._reranker = database, embedder, reranker
        self._rrf_k, self._rerank_top_n = rrf_k, rerank_top_n

    def search(self, query: str, *, top_k: int, mode: Mode = "hybrid", path: str = "", rerank: bool = False) -> Answer:
        """At most `top_k` chunks (1 to 100) of files whose path holds `path`. InvalidInput, EmbedderDown."""
        if not 1 <= top_k <= MAX_TOP_K:
            raise InvalidInput("top_k", f"top_k is a number from 1 to {MAX_TOP_K}.")
        if mode not in MODES:
            raise InvalidInput("mode", f"mode is one of {', '.join(MODES)}.")
        if _HALF.search(path):
            raise InvalidInput("filter_path", "The filter holds bytes that are no text.")
        began = time.perf_counter()
        query = query.strip()[:MAX_QUERY]
        legs, note = self._legs(query, max(_FACTOR * top_k, self._rerank_top_n), mode, path) if query else ([], "")
        ranked = fuse(legs, self._rrf_k)
        kept = ranked[: max(top_k, self._rerank_top_n if rerank else 0)]
        rows = self._database.chunks([chunk_id for chunk_id, _ in kept])
        # A chunk may have gone between the two reads.
        results = [Result.of(rows[chunk_id], score) for chunk_id, score in kept if chunk_id in rows]
        if rerank and results:
            try:
                results = self._reranked(query, results)
            except EmbedderDown:
                note = f"{note} {NOT_RERANKED}".lstrip()
        seconds = time.perf_counter() - began
        return Answer(query, mode, tuple(results[:top_k]), seconds * 1e3, note)

    def _legs(self, query: str, limit: int, mode: Mode, path: str) -> tuple[list[Leg], str]:
        legs: list[Leg] = []
        note = ""
        if mode != "vector":
            legs.append(self._database.by_words(query, limit, path))
        if mode != "fts":
            try:
                vector = self._embedder.embed_query(query)
            except EmbedderDown:
                if mode == "vector":
                    raise
                return legs, WORDS_ONLY
            if vector is None:
                note = NO_MEANING if mode == "hybrid" else NOTHING_READ
            else:
                legs.append(self._database.by_meaning(vector, limit, path))
        return legs, note

    def _reranked(self, query: str, results: list[Result]) -> list[Result]:
        """The first `rerank_top_n` in the cross-encoder's order, then the rest as they were."""
        head, tail = results[: self._rerank_top_n], results[self._rerank_top_n :]
        scores = self._reranker().scores(query, [result.text for result in head])
        order = sorted(range(len(head)), key=lambda i: (-scores[i], head[i].chunk_id))
        return [head[i] for i in order] + tail
