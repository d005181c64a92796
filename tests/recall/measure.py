"""What the rankings make of the corpus: one rank for each question, and the figures of each kind."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from squirrel_mcp.search.lexical import WordRanker
from squirrel_mcp.search.results import Ranker
from squirrel_mcp_embeddings.embedder import Embedder
from squirrel_mcp_embeddings.hybrid import HybridRanker
from squirrel_mcp_embeddings.memory_text import text_of
from tests.recall import corpus
from tests.recall.corpus import KINDS, NEAR, NOTHING, NOW, Question

HEAD = (
    "| kind | questions | words: recall@1 | recall@5 | MRR | words and meaning: recall@1 | recall@5 | MRR |",
    "|---|---|---|---|---|---|---|---|",
)
HEAD_OF_NOTHING = (
    "| kind | questions | words: came back empty | words and meaning: came back empty |",
    "|---|---|---|---|",
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """rank: where the expected memory stands, from 1; None where it is no member. total: how many members."""

    question: Question
    rank: int | None
    total: int

    def within(self, first: int) -> bool:
        """Whether the expected memory is among the first so many."""
        return self.rank is not None and self.rank <= first


@dataclass(frozen=True, slots=True)
class Figures:
    """Of one kind under one ranking, each in 0..1. MRR counts a memory that was not found as 0."""

    recall_at_1: float
    recall_at_5: float
    mrr: float


@dataclass(frozen=True, slots=True)
class Measured:
    """model: the id of the one that ranked by meaning."""

    model: str
    lexical: tuple[Outcome, ...]
    hybrid: tuple[Outcome, ...]


def measure(model: Embedder) -> Measured:
    """Ask everything of both rankings."""
    memories, questions = corpus.memories(), corpus.questions()
    words, both = WordRanker(), HybridRanker()
    both.join(model)
    for ranker in (words, both):
        ranker.put_many(memories)
    both.settle(memories, model.embed([text_of(memory) for memory in memories]))
    return Measured(model.model.id, ask(words, questions), ask(both, questions))


def ask(ranker: Ranker, questions: Iterable[Question]) -> tuple[Outcome, ...]:
    """The outcome of each question; all members are looked at."""
    found = []
    for question in questions:
        ranking = ranker.search(question.query, now=NOW, limit=10_000)
        ids = [hit.memory.id for hit in ranking.hits]
        rank = ids.index(question.expect) + 1 if question.expect in ids else None
        found.append(Outcome(question, rank, ranking.total))
    return tuple(found)


def of_kind(outcomes: Iterable[Outcome], kind: str) -> list[Outcome]:
    """Those of one kind."""
    return [outcome for outcome in outcomes if outcome.question.kind == kind]


def figures(outcomes: Sequence[Outcome]) -> Figures:
    """Recall and the mean reciprocal rank of outcomes that expect something."""
    count = len(outcomes)
    return Figures(
        sum(outcome.within(1) for outcome in outcomes) / count,
        sum(outcome.within(5) for outcome in outcomes) / count,
        sum(1 / outcome.rank for outcome in outcomes if outcome.rank) / count,
    )


def table(measured: Measured) -> list[str]:
    """Two Markdown tables: what has an answer, and what has none."""
    lines = list(HEAD)
    for kind in KINDS:
        if kind not in (NOTHING, NEAR):
            pair = [figures(of_kind(outcomes, kind)) for outcomes in (measured.lexical, measured.hybrid)]
            count = len(of_kind(measured.lexical, kind))
            values = [value for each in pair for value in (each.recall_at_1, each.recall_at_5, each.mrr)]
            lines.append(_row(kind, count, *(f"{value:.2f}" for value in values)))
    lines += ["", *HEAD_OF_NOTHING]
    for kind in (NOTHING, NEAR):
        words, both = (of_kind(outcomes, kind) for outcomes in (measured.lexical, measured.hybrid))
        lines.append(_row(kind, len(words), empty(words), empty(both)))
    return lines


def empty(outcomes: Iterable[Outcome]) -> int:
    """How many of them found nothing at all."""
    return sum(not outcome.total for outcome in outcomes)


def _row(*cells: object) -> str:
    return f"| {' | '.join(map(str, cells))} |"
