"""Reciprocal rank fusion (Cormack, Clarke and Buettcher, 2009) that listens less to what a leg itself holds weak."""

from __future__ import annotations

from collections.abc import Sequence

Leg = Sequence[tuple[str, float]]  # (id, score) with the best first; scores are comparable within a leg only

# Of a leg's best score. Below it a chunk is in the leg because the leg had room: fused as an equal, what is at the end
# of both would come before what one of them is sure of, most of all in a small collection.
_WEAK = 0.5
_WEIGHT_OF_WEAK = 0.01  # orders the weak among themselves, behind the others


def fuse(legs: Sequence[Leg], k: int) -> list[tuple[str, float]]:
    """(id, sum of weight / (k + rank) over the legs that hold it), the best first; ties by id. Ranks begin at 1.

    The weight is 1, and 0.01 for what scores less than half of its leg's best where there are several legs.
    """
    scores: dict[str, float] = {}
    for leg in legs:
        for rank, (chunk_id, score) in enumerate(leg, 1):
            weak = len(legs) > 1 and score < _WEAK * leg[0][1]
            scores[chunk_id] = scores.get(chunk_id, 0.0) + (_WEIGHT_OF_WEAK if weak else 1.0) / (k + rank)
    return sorted(scores.items(), key=lambda item: (-item[1], item[0]))
