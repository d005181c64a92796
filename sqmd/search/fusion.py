"""Reciprocal rank fusion (Cormack, Clarke and Buettcher, 2009)."""

from __future__ import annotations

from collections.abc import Sequence


def fuse(legs: Sequence[Sequence[str]], k: int) -> list[tuple[str, float]]:
    """(id, sum of 1 / (k + rank) over the legs that hold it), the best first; ties by id. Ranks begin at 1."""
    scores: dict[str, float] = {}
    for leg in legs:
        for rank, chunk_id in enumerate(leg, 1):
            scores[chunk_id] = scores.get(chunk_id, 0.0) + 1.0 / (k + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
