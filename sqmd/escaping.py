"""Text out of documents, for terminals and agents: what acts or hides is written out as `\\u{202e}`.

Controls repaint a terminal; bidirectional overrides, tag characters and zero-width spaces can hide orders to an agent
from the person who reads the same document. Line feeds and tabs stay, and so do joiners and variation selectors, which
scripts and emoji are spelled with.
"""

from __future__ import annotations

import re

_SUSPECT = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff]"
)


def visible(text: str) -> str:
    """`text` with every such character written out."""
    return _SUSPECT.sub(lambda match: f"\\u{{{ord(match.group()):x}}}", text)


def visible_line(text: str) -> str:
    """The same on one line: any run of white space is one space."""
    return visible(" ".join(text.split()))
