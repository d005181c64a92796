"""Markdown search on real Markdown: what installed packages and the system's documentation bring along.

    python scripts/bench/markdown.py [--chunks 50000] [--queries 200]

The corpus is repeated under other names, each time with a first line of its own, until there are as many chunks as
asked for. Chunks are counted with the real tokenizer; vectors are random, so that no figure holds a model's time,
but for the one that says so.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from machine import describe
from numpy.typing import NDArray

from sqmd.config import Chunking, Watcher
from sqmd.embed.local import CompanionEmbedder
from sqmd.indexer import Indexer, Silent
from sqmd.search.searcher import Reranker, Searcher
from sqmd.store.database import Database
from sqmd.store.schema import Stamp

_ROOTS = (sys.prefix, "/usr/share", "/usr/lib", "/usr/local", "/opt")
_FILES_AT_MOST = 5_000


class RandomVectors:
    """The real tokenizer and random vectors."""

    name, dimension, max_tokens = "random", 384, 512

    def __init__(self) -> None:
        self._counting = CompanionEmbedder()
        self._rng = np.random.default_rng(1)

    def embed_documents(self, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        return [self._vector() for _ in texts]

    def embed_query(self, text: str) -> NDArray[np.float32] | None:
        return self._vector()

    def count_tokens(self, text: str) -> int:
        return self._counting.count_tokens(text)

    def close(self) -> None:
        self._counting.close()

    def _vector(self) -> NDArray[np.float32]:
        vector = self._rng.normal(size=self.dimension).astype(np.float32)
        return vector / np.float32(np.linalg.norm(vector))


class Moments(Silent):
    """When text was searchable: before the first vector."""

    def __init__(self) -> None:
        self.text_done = 0.0

    def vectors(self, done: int, total: int) -> None:
        self.text_done = self.text_done or time.perf_counter()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chunks", type=int, default=50_000)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--only-search", metavar="INDEX", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.only_search:
        _only_search(arguments.only_search, sys.stdin.read().splitlines())
        return
    print(f"{describe()}\n")
    with tempfile.TemporaryDirectory() as name:
        for row, value, target in _measure(Path(name), arguments.chunks, arguments.queries):
            print(f"{row:<74}{value:>14}{target:>14}", flush=True)


def _only_search(location: str, queries: list[str]) -> None:
    """1,000 searches; prints what is resident after 100 and at the end."""
    searcher = _searcher(Database.open(location), RandomVectors())
    resident = []
    for number in range(1_000):
        searcher.search(queries[number % len(queries)], top_k=10)
        if number in (99, 999):
            resident.append(_resident())
    print(", ".join(f"{each:.0f}" for each in resident))


def _nobody() -> Reranker:
    raise AssertionError("nothing is reranked here")


def _searcher(database: Database, embedder: RandomVectors) -> Searcher:
    return Searcher(database, embedder, rrf_k=60, rerank_top_n=20, reranker=_nobody)


def _measure(folder: Path, wanted: int, asked: int) -> Iterator[tuple[str, str, str]]:
    embedder = RandomVectors()
    database = Database.create(str(folder / "index"), Stamp(embedder.name, embedder.dimension))
    indexer = Indexer(database, embedder, Chunking(), Watcher())
    notes = folder / "notes"
    sources = _sources()
    moments, began, processor, files, chunks, turn = Moments(), time.perf_counter(), time.process_time(), 0, 0, 0
    while chunks < wanted:
        files += _copy(sources, notes / str(turn), turn)
        summary = indexer.run([notes / str(turn)], progress=moments)
        chunks, turn = chunks + summary.chunks, turn + 1
        assert not summary.failed, summary.failed
    processor, seconds = time.process_time() - processor, time.perf_counter() - began
    megabytes = sum(path.stat().st_size for path in notes.rglob("*.md")) / 1e6
    corpus = f"{chunks:,} chunks of {files:,} files ({megabytes:.0f} MB)"
    yield f"{corpus}: text and indexes, processor s", f"{processor:.1f}", "40"
    yield "    by the clock, s", f"{seconds:.1f}", ""

    searcher = _searcher(database, embedder)
    queries = _queries(notes, asked)
    times = []
    for query in queries:
        start = time.perf_counter()
        searcher.search(query, top_k=10)
        times.append((time.perf_counter() - start) * 1e3)
    times.sort()
    yield "hybrid search, embedding aside, p50 ms", f"{statistics.median(times):.1f}", "40"
    yield "    p95 ms", f"{times[int(len(times) * 0.95)]:.1f}", "100"
    # In a process that does nothing else, as a server: this one has just indexed everything.
    asked_there = [sys.executable, __file__, "--only-search", database.location]
    printed = subprocess.run(asked_there, input="\n".join(queries), capture_output=True, text=True, check=True).stdout
    yield "a searching process after 100 and after 1,000 queries, resident MB", printed.strip(), "500, flat"

    some = folder / "some"
    count = _copy((sources * 10)[:2_000], some, 1_000)
    other = Database.create(str(folder / "other"), Stamp(embedder.name, embedder.dimension))
    again = Indexer(other, embedder, Chunking(), Watcher())
    again.run([some])
    start = time.perf_counter()
    assert again.run([some]).indexed == 0
    yield f"index of nothing new over {count:,} files, s", f"{time.perf_counter() - start:.2f}", "1"

    many = folder / "many"
    small = [path for path in sources if path.stat().st_size < 8_000] or sources
    count = _copy((small * 50)[:_FILES_AT_MOST], many, 2_000)
    third = Database.create(str(folder / "third"), Stamp(embedder.name, embedder.dimension))
    moments, start = Moments(), time.perf_counter()
    Indexer(third, embedder, Chunking(), Watcher()).run([many], progress=moments)
    yield f"{count:,} files: first search by words possible, s", f"{moments.text_done - start:.1f}", "20"

    real = CompanionEmbedder()
    fourth = Database.create(str(folder / "fourth"), Stamp(real.name, real.dimension))
    one = Indexer(fourth, real, Chunking(), Watcher())
    few = folder / "few"
    _copy(small[:50], few, 3_000)
    one.run([few])
    changed = next(few.rglob("*.md"))
    changed.write_text(changed.read_text("utf-8") + "\n\nOne more paragraph, which says something new.\n", "utf-8")
    start = time.perf_counter()
    assert one.run([few]).indexed == 1
    yield "one changed file among 50, the model's vectors included, s", f"{time.perf_counter() - start:.2f}", "1"
    real.close()


def _sources() -> list[Path]:
    """Markdown of this machine that is UTF-8, in an order that does not depend on the disk."""
    found = []
    for root in _ROOTS:
        for path in Path(root).rglob("*.md"):
            try:
                if path.is_file() and 200 < path.stat().st_size < 1_000_000:
                    path.read_text("utf-8")
                    found.append(path)
            except (OSError, UnicodeDecodeError):
                continue
    return sorted(set(found), key=lambda path: (path.name, str(path)))


def _copy(sources: Sequence[Path], target: Path, turn: int) -> int:
    target.mkdir(parents=True)
    for number, path in enumerate(sources):
        text = path.read_text("utf-8")
        (target / f"{number:05}-{path.stem}.md").write_text(f"Copy {turn} of {number}.\n\n{text}", "utf-8")
    return len(sources)


def _queries(notes: Path, count: int) -> list[str]:
    rng = random.Random(2)
    paths = sorted(notes.rglob("*.md"))
    queries: list[str] = []
    while len(queries) < count:
        words = [word for word in rng.choice(paths).read_text("utf-8").split() if word.isalpha()]
        if len(words) > 20:
            queries.append(" ".join(rng.sample(words, rng.randint(2, 5))))
    return queries


def _resident() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    main()
