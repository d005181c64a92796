"""From what was asked to the words that are looked for (docs/ranking.md, section 1, "Query")."""

from __future__ import annotations

import re
from dataclasses import dataclass

from squirrel_mcp.search.fold import clean, fold
from squirrel_mcp.search.stopwords import STOPWORDS
from squirrel_mcp.search.words import words

MAX_CHARACTERS = 16_000  # the length of the longest memory: a whole one can still be asked for
MAX_WORDS = 1_000  # distinct ones
_MEMORY_ID = re.compile("[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class QueryWord:
    """A content word. `parts` are those of a compound that count: no stopwords, unless all are."""

    whole: str
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """`words` is empty when there is no letter or digit. `memory_id`: the query is one, of this vault or not.

    `cut` says that the end of an overlong query was left out.
    """

    words: tuple[QueryWord, ...]
    memory_id: str | None = None
    cut: bool = False


def parse(text: str) -> Query:
    """The content words of a query of any length, in order; at most `MAX_WORDS` of `MAX_CHARACTERS`."""
    text, cut = _shorten(text.strip())
    memory_id = fold(clean(text)) if len(text) <= 128 else ""
    if _MEMORY_ID.fullmatch(memory_id):
        # Taken apart at its letter-digit borders an id would find every memory that holds a single digit.
        return Query((QueryWord(memory_id),), memory_id)

    parts: dict[str, dict[str, bool]] = {}  # word -> part -> whether it is a stopword
    content: set[str] = set()
    for word in words(text):
        if word.whole not in parts:
            if len(parts) == MAX_WORDS:
                cut = True
                break
            parts[word.whole] = {}
        if not _is_stopword(word.whole, word.accented):
            content.add(word.whole)
        if not word.unspaced:
            of_this = parts[word.whole]
            for part in word.parts:
                of_this[part] = _is_stopword(part, word.accented) and of_this.get(part, True)
    chosen = [whole for whole in parts if whole in content] or list(parts)
    return Query(tuple(QueryWord(whole, _counted(parts[whole])) for whole in chosen), None, cut)


def _shorten(text: str) -> tuple[str, bool]:
    if len(text) <= MAX_CHARACTERS:
        return text, False
    kept = text[:MAX_CHARACTERS]
    if not text[MAX_CHARACTERS].isspace():
        # Half a word is another word; without white space there is nothing better to cut at.
        kept = (kept.rsplit(None, 1) or [""])[0] or kept
    return kept, True


def _is_stopword(word: str, accented: frozenset[str]) -> bool:
    return word in STOPWORDS and word not in accented


def _counted(parts: dict[str, bool]) -> tuple[str, ...]:
    return tuple(part for part, stopword in parts.items() if not stopword) or tuple(parts)
