"""Where a memory that somebody wanted stands in the answer to a query, by words and meaning and by meaning alone.

No I/O: what diagnose.py reads comes in as bytes, and what it prints goes out as values without a memory's text.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from squirrel_mcp.errors import InvalidInput
from squirrel_mcp.memory import Memory
from squirrel_mcp.search.fold import clean, fold
from squirrel_mcp_embeddings.hybrid import HybridRanker

MAX_BYTES = 1 << 20
"""Of a file of queries; some 5,000 of them."""

_KEYS = frozenset(("query", "expect"))
_FORM = '[{"query": "...", "expect": "..."}, ...]'


@dataclass(frozen=True, slots=True)
class Wish:
    """`expect` is a piece of the text, the entity or a tag of the one memory that should answer `query`."""

    query: str
    expect: str


@dataclass(frozen=True, slots=True)
class Finding:
    """What became of a wish.

    fitting: how many memories it describes; the rest is set for exactly one. memory_id: of that one. rank: its place
    in the answer, from 1, or None where it is no part of it. near_miss: its place among the near misses instead.
    by_meaning and cosine: its place among all memories that have a vector, and how near it is, or None where it has
    none or meaning is not used for this query.
    """

    query: str
    fitting: int
    memory_id: str = ""
    rank: int | None = None
    near_miss: int | None = None
    by_meaning: int | None = None
    cosine: float | None = None

    def below(self, floor: float) -> float | None:
        """How far the cosine is under the model's floor; None where it is not, or there is none."""
        return floor - self.cosine if self.cosine is not None and self.cosine < floor else None


def parse(raw: bytes) -> list[Wish]:
    """`[{"query": "...", "expect": "..."}]`, and nothing else; InvalidInput, which quotes none of it."""
    if len(raw) > MAX_BYTES:
        raise _refused("is larger than 1 MiB")
    # The errors of the decoders carry the file, so none travels on as a context.
    try:
        fields = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError:
        problem = "is no UTF-8 text"
    except (ValueError, RecursionError):
        problem = "is no JSON"
    else:
        if type(fields) is list and fields:
            return [_wish(number, each) for number, each in enumerate(fields, 1)]
        problem = "holds no list of queries"
    raise _refused(problem)


def fitting(memories: Iterable[Memory], expect: str) -> list[Memory]:
    """Those that hold `expect` in their text, their entity or one of their tags, without case and Latin accents."""
    wanted = _plain(expect)
    return [
        memory
        for memory in memories
        if any(wanted in _plain(piece) for piece in (memory.text, memory.entity, *memory.tags))
    ]


def find(ranker: HybridRanker, memories: Collection[Memory], wish: Wish, now: datetime) -> Finding:
    """Ask the ranker, which holds these memories, as the server does, and look where the wanted one stands."""
    found = fitting(memories, wish.expect)
    if len(found) != 1:
        return Finding(wish.query, len(found))
    (memory,) = found
    ranking = ranker.search(wish.query, now=now, limit=max(1, len(memories)), near_misses=True)
    members = [hit.memory.id for hit in ranking.hits if not hit.near_miss]
    others = [hit.memory.id for hit in ranking.hits if hit.near_miss]
    meaning = ranker.by_meaning(wish.query)
    return Finding(
        wish.query,
        1,
        memory.id,
        rank=_place(members, memory.id),
        near_miss=_place(others, memory.id),
        by_meaning=_place([memory_id for memory_id, _ in meaning], memory.id),
        cosine=dict(meaning).get(memory.id),
    )


def _wish(number: int, fields: Any) -> Wish:
    if type(fields) is not dict or fields.keys() != _KEYS:
        raise _refused(f"has no query with `query` and `expect`, and nothing else, as number {number}")
    query, expect = fields["query"], fields["expect"]
    if type(query) is not str or type(expect) is not str or not query.strip() or not _plain(expect):
        raise _refused(f"has a `query` or `expect` without any text in number {number}")
    return Wish(query, expect)


def _refused(problem: str) -> InvalidInput:
    return InvalidInput("queries", f"The file {problem}: it is to be {_FORM}.")


def _plain(text: str) -> str:
    return " ".join(fold(clean(text)).split())


def _place(ids: list[str], memory_id: str) -> int | None:
    return ids.index(memory_id) + 1 if memory_id in ids else None
