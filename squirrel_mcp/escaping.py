"""What nobody would see, or what would act on a terminal, written out: `\\u{202e}`.

Memory text is data that somebody stored. Controls, bidirectional overrides, zero-width, tag and other invisible
characters can hide orders in it or repaint what a person reads, so they are shown as what they are. What a script
or an emoji needs to be spelled right stays: line feed and tab, joiners inside Arabic, Persian and Indic words,
joiners and variation selectors inside emoji, one variation selector after a Han or Mongolian letter. Given up is that
a text which holds such a character, or the escape itself, cannot be told apart; the store keeps the original.
"""

from __future__ import annotations

import json
import re
from typing import Any

_SUSPECT = re.compile(
    "\r(?!\n)"
    "|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls but tab, line feed and the return before a line feed
    "\xad\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0"  # soft hyphen, grapheme joiner, blank letters
    "\u180b-\u180f\ufe00-\ufe0f"  # variation selectors, the Mongolian vowel separator
    "\u061c\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff"  # bidi, zero width, invisible operators
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"  # annotation, shorthand and musical format
    "\U000e0000-\U000e0fff"  # tags, more variation selectors, and what is reserved for such
    "\ud800-\udfff]"
)
# The three flags that are spelled with tag characters: England, Scotland, Wales.
_FLAG = re.compile("\U0001f3f4\U000e0067\U000e0062(?:\U000e0065\U000e006e\U000e0067|\U000e0073\U000e0063\U000e0074|"
                   "\U000e0077\U000e006c\U000e0073)\U000e007f")  # fmt: skip
_EMOJI = re.compile(
    "[\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2460-\u24ff\u25a0-\u27bf\u2900-\u297f"
    "\u2b00-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_JOINING = re.compile(  # Arabic, Syriac, Thaana, N'Ko and their neighbours; Indic scripts; Myanmar; Khmer; Mongolian
    "[\u0620-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1820-\u18aa\ufb50-\ufdff\ufe70-\ufefc]"
)
_HAN = re.compile("[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_MONGOLIAN = re.compile("[\u1820-\u18aa]")
_JOINERS = "\u200c\u200d"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def escape(text: str) -> str:
    """`text` with every character written out that is unseen or acts, unless its neighbours need it."""
    if (text.isascii() and text.isprintable()) or not _SUSPECT.search(text):
        return text
    flags = [match.span() for match in _FLAG.finditer(text)]

    def written(match: re.Match[str]) -> str:
        at = match.start()
        if _is_needed(text, at) or any(start <= at < end for start, end in flags):
            return match.group()
        return f"\\u{{{ord(match.group()):x}}}"

    return _SUSPECT.sub(written, text)


def to_json(value: Any) -> str:
    """Compact JSON on one line, for readers too that take U+2028 and U+2029 for line ends."""
    text = _encode(value)
    return text if text.isascii() else text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")


def _is_needed(text: str, at: int) -> bool:
    """Whether the suspect at `at` spells its neighbours; never true of two in a row, so nothing hides in a run."""
    char, before, after = text[at], text[at - 1 : at], text[at + 1 : at + 2]
    if char in _JOINERS and _JOINING.match(before) and _JOINING.match(after):
        return True
    if char == "\u200d":
        shown = text[at - 2 : at - 1] if before == "\ufe0f" else before
        return bool(_EMOJI.match(shown) and _EMOJI.match(after))
    if char in "\ufe0e\ufe0f":
        return bool(_EMOJI.match(before)) or (before.isascii() and before in "0123456789#*" and after == "\u20e3")
    if "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef":
        return bool(_HAN.match(before))
    return "\u180b" <= char <= "\u180f" and bool(_MONGOLIAN.match(before))
