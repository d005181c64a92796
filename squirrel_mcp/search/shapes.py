"""The shape of a text: one character per code point, saying what kind it is of.

The rules about words are regular over kinds of characters, not over characters, and Python's `\\w` knows
neither marks nor scripts. So text is translated once, and every pattern in words.py reads the translation.

    U  capital or title-case letter      d  digit or other number
    l  small letter                      m  combining mark
    o  other letter                      h  letter of a script written without spaces
    - ' _ . @ / : + #                    connectors: all hyphens, all apostrophes, the backslash as `/`
    n  the dot of `.net`                 (space) everything else
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right

_CONNECTORS = {
    # Figure dash and minus join; en dash, em dash and the horizontal bar separate.
    **dict.fromkeys("-\u2010\u2011\u2012\u2212", "-"),
    # Typewriter and curly apostrophes, and the two letters that are apostrophes by use (Hawaiʻi, Gwichʼin).
    **dict.fromkeys("'\u2018\u2019\u201b\u02bb\u02bc", "'"),
    **{char: char for char in "_.@/:+#"},
    "\\": "/",
}

# First and last code point of the scripts without spaces: Thai, Lao, Myanmar, Khmer, then Han, Hiragana and
# Katakana with the signs they share (iteration marks, the long-vowel mark). Source: Scripts.txt and
# ScriptExtensions.txt of Unicode 16. Numbers and punctuation in these ranges are told apart by category.
_UNSPACED = (
    (0x0E01, 0x0E5B),
    (0x0E80, 0x0EDF),
    (0x1000, 0x109F),
    (0x1780, 0x17FF),
    (0x2E80, 0x2FDF),
    (0x3005, 0x3007),
    (0x3021, 0x3029),
    (0x3031, 0x3035),
    (0x3038, 0x303C),
    (0x3041, 0x30FF),
    (0x31F0, 0x31FF),
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xA9E0, 0xA9FE),
    (0xAA60, 0xAA7F),
    (0xF900, 0xFAFF),
    (0x116D0, 0x116E3),
    (0x1AFF0, 0x1AFFF),
    (0x1B000, 0x1B16F),
    (0x20000, 0x2FFFD),
    (0x30000, 0x3FFFD),
)
_STARTS = [first for first, _ in _UNSPACED]
_IDEOGRAPHIC_PLANES = 0x20000

_DOT_NET = re.compile(r"\.net", re.IGNORECASE)


class _Shapes(dict[int, str]):
    """A table for `str.translate`, filled as code points are met."""

    def __missing__(self, code: int) -> str:
        value = _shape(chr(code))
        if value != " ":  # a million code points are unassigned or private; those are looked up every time
            self[code] = value
        return value


def _shape(char: str) -> str:
    if char in _CONNECTORS:
        return _CONNECTORS[char]
    category = unicodedata.category(char)
    if category[0] == "M":
        return "m"
    if _is_unspaced(ord(char), category):
        return "h"
    if category in ("Lu", "Lt"):
        return "U"
    if category[0] == "L":
        return "l" if category == "Ll" else "o"
    return "d" if category[0] == "N" else " "


def _is_unspaced(code: int, category: str) -> bool:
    position = bisect_right(_STARTS, code) - 1
    if position < 0 or code > _UNSPACED[position][1]:
        return False
    # Whole planes are set aside for Han, so a character newer than Python's tables is one all the same.
    # Nl: the ideographic zero and its like are written inside runs; digits (Nd, No) are not.
    return category[0] == "L" or category == "Nl" or code >= _IDEOGRAPHIC_PLANES


_shapes = _Shapes()


def shape_of(text: str) -> str:
    """The shape of cleaned text, of the same length."""
    shape = text.translate(_shapes)
    if "." in shape:
        for found in _DOT_NET.finditer(text):
            start, end = found.span()
            # A word of its own only where no word stands before it and the name ends after it.
            if shape[start - 1 : start] not in _IN_WORD and shape[end : end + 1] not in _LETTER_OR_MARK:
                shape = f"{shape[:start]}n{shape[start + 1 :]}"
    return shape


_IN_WORD = frozenset("Ulodm")
_LETTER_OR_MARK = frozenset("Ulom")
