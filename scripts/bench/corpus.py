"""Memories for the benches: made up, the same for the same seed, and shaped like real ones where it matters.

Word frequencies follow Zipf's law, English function words come first as in English text, nouns and verbs come
in several forms, and now and then there is an identifier, a version, a hyphen or an accent. About 20 words each.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate

from squirrel_mcp.memory import Memory

_FUNCTION_WORDS = (
    "the of and to in is for on with her his at that it from by as are was be this or an not but they you we "
    "has had will she he their there when which who would can about some what if into so them do its than "
)
_CATEGORIES = ("fact", "preference", "project", "event", "task", "profile", "instruction")
_LEXEMES = 25_000
_LAST_CHANGE = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)


def memories(count: int, seed: int = 1) -> Iterator[Memory]:
    """`count` memories with distinct ids, changed in the two years before 2026-03-01."""
    rng = random.Random(seed)
    # The vocabulary is the same for every seed, so that queries made of it fit every corpus.
    vocabulary = words_by_frequency()
    weights = _zipf(len(vocabulary))
    people = [word.capitalize() for word in vocabulary[1_000:1_400]]
    tags = vocabulary[400:600]
    for _ in range(count):
        tokens = rng.choices(vocabulary, cum_weights=weights, k=rng.randint(12, 28))
        if rng.random() < 0.3:
            tokens[rng.randrange(len(tokens))] = _oddity(rng, tokens[0], tokens[-1])
        if rng.random() < 0.5:
            tokens[len(tokens) // 2] += ","
        moment = _LAST_CHANGE - timedelta(milliseconds=rng.randrange(730 * 86_400_000))
        yield Memory(
            id=rng.randbytes(16).hex(),
            text=" ".join(tokens).capitalize() + ".",
            created_at=moment,
            updated_at=moment,
            entity=rng.choice(people) if rng.random() < 0.6 else "",
            category=rng.choices(_CATEGORIES, (8, 4, 3, 2, 3, 1, 1))[0],
            tags=tuple(dict.fromkeys(rng.choices(tags, k=rng.randrange(4)))),
        )


def queries(count: int, seed: int = 1) -> list[str]:
    """Questions of two to six words, function words among them, as frequent as in the memories."""
    rng = random.Random(seed)
    vocabulary = words_by_frequency()
    weights = _zipf(len(vocabulary))
    return [" ".join(rng.choices(vocabulary, cum_weights=weights, k=rng.randint(2, 6))) for _ in range(count)]


def _zipf(words: int) -> list[float]:
    """Cumulative weights by rank (Zipf-Mandelbrot): the first thousand words make 70% of a text, as in English."""
    return list(accumulate((rank + 2.7) ** -1.1 for rank in range(words)))


def words_by_frequency() -> list[str]:
    """The vocabulary, most frequent first."""
    rng = random.Random(0)
    onsets, vowels, codas = (
        "b c d f g h l m n p r s t v w br cl dr st tr".split(),
        "aeiou",
        "l m n r s t nd st rk".split(),
    )
    words = dict.fromkeys(_FUNCTION_WORDS.split())
    for _ in range(_LEXEMES):
        syllables = rng.choice((1, 2, 2, 2, 3))
        lexeme = "".join(rng.choice(onsets) + rng.choice(vowels) for _ in range(syllables)) + rng.choice(codas)
        words[lexeme] = None
        for ending in ("s", "ed", "ing"):
            if rng.random() < 0.4:
                words[lexeme + ending] = None
    return list(words)


def _oddity(rng: random.Random, first: str, last: str) -> str:
    return rng.choice(
        (
            f"{first}_{last}",
            f"{first}{last.capitalize()}Id",
            f"{first}-{last}",
            f"{first.capitalize()}'s",
            f"v{rng.randrange(9)}.{rng.randrange(40)}.{rng.randrange(9)}",
            f"https://{first}.example.org/{last}",
            f"{first[:-1]}é",
            f"10.0.{rng.randrange(256)}.{rng.randrange(256)}",
        )
    )
