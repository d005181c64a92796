"""How fast search by words is: the engine against plain rank-bm25, and the whole ranker.

    python scripts/bench/search_engine.py [--sizes 10000 100000] [--queries 200]

Prints one table. Made-up memories of about 20 words, the same in every run; see corpus.py.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from corpus import memories, queries
from machine import describe
from rank_bm25 import BM25Okapi

from squirrel_mcp.memory import Memory
from squirrel_mcp.search import WordRanker
from squirrel_mcp.search.bm25 import PostingsBM25
from squirrel_mcp.search.words import words

_NOW = datetime(2026, 3, 2, tzinfo=UTC)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=200)
    arguments = parser.parse_args()

    columns = [_measure(size, arguments.queries) for size in arguments.sizes]
    print(f"{describe()}\n")
    print(f"{'search by words':<52}" + "".join(f"{size:>14,}" for size in arguments.sizes))
    for row in columns[0]:
        print(f"{row:<52}" + "".join(f"{column[row]:>14}" for column in columns))


def _measure(size: int, asked: int) -> dict[str, str]:
    # Index first: what a peer allocates must not count as the index's memory.
    corpus = list(memories(size))
    before = _resident()
    ranker = WordRanker()
    build = _time(ranker.put_many, corpus)
    resident = _resident() - before

    search = partial(ranker.search, now=_NOW)
    texts = queries(asked, seed=2)
    cold = [_time(search, text) for text in texts]
    warm = [_time(search, text) for text in texts]
    after_save: list[float] = []
    saves: list[float] = []
    for text, memory in zip(texts, memories(asked, seed=3), strict=True):
        saves.append(_time(ranker.put_many, [memory]))
        after_save.append(_time(search, text))
    corrected = [_time(ranker.put_many, [replace(old, text=old.text + " Corrected.")]) for old in corpus[:asked]]
    plain, ours = _engines(corpus, texts[: max(5, asked // 10)])
    return {
        "build, s": f"{build:.2f}",
        "index in memory, MB": f"{resident / 1e6:.0f}",
        "engine alone: rank-bm25 get_scores, p50 ms": f"{plain * 1e3:.2f}",
        "engine alone: with postings get_scores, p50 ms": f"{ours * 1e3:.3f}",
        "engine alone: times faster": f"{plain / ours:.0f}",
        "search, p50 ms": f"{statistics.median(warm) * 1e3:.2f}",
        "search, p95 ms": f"{_p95(warm) * 1e3:.2f}",
        "search asked for the first time, p50 ms": f"{statistics.median(cold) * 1e3:.2f}",
        "search asked for the first time, p95 ms": f"{_p95(cold) * 1e3:.2f}",
        "save, p50 ms": f"{statistics.median(saves) * 1e3:.3f}",
        "first search after a save, p50 ms": f"{statistics.median(after_save) * 1e3:.2f}",
        "correction, p50 ms": f"{statistics.median(corrected) * 1e3:.3f}",
    }


def _engines(corpus: list[Memory], texts: list[str]) -> tuple[float, float]:
    """p50 seconds of `get_scores` on the same tokens: the library's own class, ours."""
    tokenised = [[word.whole for word in words(memory.text)] for memory in corpus]
    asked = [[word.whole for word in words(text)] for text in texts]
    ours = PostingsBM25()
    for slot, tokens in enumerate(tokenised):
        weights: dict[str, float] = {}
        for token in tokens:
            weights[token] = weights.get(token, 0.0) + 1.0
        ours.add(slot, weights, len(tokens))
    theirs = BM25Okapi(tokenised)
    return (
        statistics.median(_time(theirs.get_scores, tokens) for tokens in asked),
        statistics.median(_time(ours.get_scores, tokens) for tokens in asked),
    )


def _time(action: Callable[..., object], *arguments: object) -> float:
    start = time.perf_counter()
    action(*arguments)
    return time.perf_counter() - start


def _p95(seconds: list[float]) -> float:
    return sorted(seconds)[int(len(seconds) * 0.95)]


def _resident() -> int:
    """Resident bytes of this process; 0 where the platform does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


if __name__ == "__main__":
    main()
