"""What a memory is indexed by: its terms with their weights, and its length."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from squirrel_mcp.memory import Memory
from squirrel_mcp.search.words import words

WHOLE = 1.0
PART = 0.5
# Most of any English text: one plain word, with punctuation that connects nothing. For these the general way,
# ten times as long, comes to the same.
_PLAIN = re.compile(r"[(\"]*([A-Za-z]?[a-z]+|[A-Z]+|[0-9]+)[.,;:!?)\"]*")

Weights = Mapping[str, float]


def chunks_of(memory: Memory) -> list[str]:
    """The stretches without white space of all that is searched: entity, text, tags and keywords.

    No rule about words reaches across white space, so text may be analysed stretch by stretch.
    """
    chunks = memory.text.split()
    for field in (memory.entity, *memory.tags, *memory.keywords):
        chunks += field.split()
    return chunks


def analyse(chunk: str) -> tuple[list[str], list[str]]:
    """The whole words of a stretch without white space, and their parts, both with repetitions."""
    plain = _PLAIN.fullmatch(chunk)
    if plain:
        return [plain[1].lower()], []
    analysed = list(words(chunk))
    return [word.whole for word in analysed], [part for word in analysed for part in word.parts]


def terms_of(memory: Memory) -> tuple[Weights, int]:
    """(weight by term, length in whole words).

    A weight is 1 for each time the term is a whole word and 0.5 for each time it is a part; it is negative when
    the term is nowhere whole, so that one number tells both how often and how well it is held.
    """
    wholes: list[str] = []
    parts: list[str] = []
    for chunk in chunks_of(memory):
        analysed = analyse(chunk)
        wholes += analysed[0]
        parts += analysed[1]
    weights: dict[str, float] = dict(Counter(wholes))
    for part, times in Counter(parts).items():
        whole = weights.get(part)
        weights[part] = -PART * times if whole is None else whole + PART * times
    return weights, len(wholes)
