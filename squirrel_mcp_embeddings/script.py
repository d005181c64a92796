"""Which texts a model reads that learnt from English."""

from __future__ import annotations

import unicodedata
from collections import Counter


def reads(text: str) -> bool:
    """Whether at most 30% of the letters are of another script than Latin. True for a text without letters.

    The rule is that of docs/ranking.md, section 3: a multilingual vault is ranked better by words.
    """
    letters = foreign = 0
    # NFKC, so that letters of full width or of mathematics count as what they show.
    for char, count in Counter(unicodedata.normalize("NFKC", text)).items():
        if unicodedata.category(char)[0] == "L":
            letters += count
            # Python has no script property; the names tell it reliably.
            if not unicodedata.name(char, "").startswith("LATIN "):
                foreign += count
    return foreign * 10 <= letters * 3
