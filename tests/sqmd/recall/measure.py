"""How often a search of sqmd has the passage that answers among its first, by words, by vectors and by both."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import NamedTuple

from sqmd.config import Chunking, Watcher
from sqmd.embed.local import CompanionEmbedder
from sqmd.indexer import Indexer
from sqmd.search.results import Mode, Result
from sqmd.search.searcher import Reranker, Searcher
from sqmd.store.database import Database
from sqmd.store.schema import Stamp

ROOT = Path(__file__).resolve().parents[3]
LEGS: tuple[Mode, ...] = ("fts", "vector", "hybrid")


class Recall(NamedTuple):
    """Over all questions: the share answered by the first, by one of the first five, and the mean reciprocal rank."""

    first: float
    five: float
    mrr: float


def measure() -> dict[Mode, Recall]:
    """Of this repository's docs, but those of sqmd itself: one holds the table."""
    questions = json.loads((Path(__file__).parent / "questions.json").read_text("utf-8"))
    documents = sorted(
        path for path in (ROOT / "docs").rglob("*.md") if not path.name.startswith("sqmd") and path.name != "README.md"
    )
    embedder = CompanionEmbedder()
    with tempfile.TemporaryDirectory() as folder:
        database = Database.create(folder, Stamp(embedder.name, embedder.dimension))
        Indexer(database, embedder, Chunking(), Watcher()).run(documents)
        searcher = Searcher(database, embedder, rrf_k=60, rerank_top_n=20, reranker=_nobody)
        found = {mode: [_rank(searcher, mode, each) for each in questions] for mode in LEGS}
    embedder.close()
    return {mode: _recall(ranks) for mode, ranks in found.items()}


def _rank(searcher: Searcher, mode: Mode, question: dict[str, str]) -> int:
    """Of the passage that answers; 0 where it is not among the first ten."""

    def answers(result: Result) -> bool:
        return Path(result.file_path).name == question["file"] and question["heading"] in result.heading_path

    results = searcher.search(question["query"], top_k=10, mode=mode).results
    return next((rank for rank, result in enumerate(results, 1) if answers(result)), 0)


def _recall(ranks: list[int]) -> Recall:
    count = len(ranks)
    return Recall(
        sum(rank == 1 for rank in ranks) / count,
        sum(1 <= rank <= 5 for rank in ranks) / count,
        sum(1 / rank for rank in ranks if rank) / count,
    )


def _nobody() -> Reranker:
    raise AssertionError("nothing is reranked here")


def table(found: dict[Mode, Recall]) -> str:
    """As docs/sqmd.md has it."""
    names = {"fts": "words", "vector": "vectors", "hybrid": "both"}
    rows = [f"| {names[mode]} | {one.first:.2f} | {one.five:.2f} | {one.mrr:.2f} |" for mode, one in found.items()]
    return "\n".join(["| search by | recall@1 | recall@5 | MRR |", "|---|---|---|---|", *rows])
