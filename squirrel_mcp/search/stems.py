"""Other English forms of a word: those in the vocabulary that have the same Porter2 stem.

Stemming is the slowest step by far (tens of microseconds a word), so the vocabulary is not stemmed when a
memory is saved. Words are filed under their first letters, and a search stems the few that can share the stem
it asks for, once each.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

_SHORTEST = 3
# The stemmer keeps the first two letters of a word, and the third but for try/tries and use/using.
_THIRD = str.maketrans("ey", "ii")
# What follows a stem of one or two letters, or three, in the words that have it.
_ENDINGS = ("s", "ed", "ing", "ness", "ful", "li", "ly", "d", "es")
_ENDINGS_OF_THREE = ("e", "ing", "ness", "ful", "li", "ly")


def has_forms(word: str) -> bool:
    """Whether forms of a folded word are looked for: ASCII letters, three or more."""
    return len(word) >= _SHORTEST and word.isascii() and word.isalpha()


class Stems:
    """The vocabulary filed so that the forms of a word are found quickly."""

    def __init__(self) -> None:
        self._filed: dict[str, list[str]] = {}  # by key, see `_key`
        self._stems: dict[str, str] = {}  # of those words in `_filed` that were stemmed so far
        self._families: dict[str, dict[str, list[str]]] = {}  # by key, then stem; while `_filed` stays the same

    def add(self, word: str) -> None:
        """A word that is new in the vocabulary; words without forms are left out."""
        if has_forms(word):
            key = _key(word)
            self._filed.setdefault(key, []).append(word)
            self._families.pop(key, None)

    def remove(self, word: str) -> None:
        """A word that left the vocabulary."""
        if has_forms(word):
            key = _key(word)
            self._filed[key].remove(word)
            if not self._filed[key]:
                del self._filed[key]
            self._families.pop(key, None)
            self._stems.pop(word, None)

    def forms(self, word: str) -> list[str]:
        """The other words of the vocabulary with the stem of `word`, which need not be in it itself."""
        if not has_forms(word):
            return []
        stem = self._stems.get(word) or self._porter2(word)
        return [other for key in _keys(stem) for other in self._family(key, stem) if other != word]

    def _family(self, key: str, stem: str) -> list[str]:
        filed = self._filed.get(key)
        if filed is None:
            return []
        families = self._families.setdefault(key, {})
        family = families.get(stem)
        if family is None:
            family = [word for word in filed if _may_have(stem, word) and self._stem(word) == stem]
            families[stem] = family
        return family

    def _stem(self, word: str) -> str:
        stem = self._stems.get(word)
        if stem is None:
            stem = self._stems[word] = self._porter2(word)
        return stem

    @cached_property
    def _porter2(self) -> Callable[[str], str]:
        import snowballstemmer

        stem: Callable[[str], str] = snowballstemmer.stemmer("english").stemWord  # "porter" is its predecessor
        return stem


def _key(word: str) -> str:
    return word[:2] + word[2:3].translate(_THIRD)


def _keys(stem: str) -> set[str]:
    if len(stem) < _SHORTEST:
        return {_key(stem + ending) for ending in (*_ENDINGS, *_doubled(stem))}
    if len(stem) == _SHORTEST and stem.endswith("ie"):
        return {_key(stem), stem[0] + "yi"}  # die, dying
    return {_key(stem)}


def _may_have(stem: str, word: str) -> bool:
    """False where `word` cannot have this stem; cheap, and true for few others."""
    if len(stem) > _SHORTEST:
        return word.startswith(stem[:-2])  # all suffix rules replace two letters of the stem at most
    rest = word[len(stem) :]
    if len(stem) < _SHORTEST:
        return rest.startswith((*_ENDINGS, *_doubled(stem)))
    if rest in ("", "s", "y") or rest.startswith(_ENDINGS_OF_THREE):
        return True
    if stem[2] in "ie":  # used, using: the stem's last letter is part of the ending
        return rest.startswith(("d", "n"))
    return rest.startswith(_doubled(stem))


def _doubled(stem: str) -> tuple[str, ...]:
    """The endings before which the last consonant is written twice: upped, fitting."""
    return stem[-1] + "ed", stem[-1] + "ing"
