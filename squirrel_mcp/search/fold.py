"""How text is cleaned and folded before it is compared (docs/ranking.md, section 1).

Two steps, because camelCase and letter-digit borders are seen between them: `clean` leaves the spelling alone
but for what nobody sees, `fold` takes away case and, on Latin letters only, accents, strokes and ligatures.
"""

from __future__ import annotations

import unicodedata

# Ignorable code points that are no format characters (category Cf) themselves: the grapheme joiner and the
# variation selectors of emoji, Han and Mongolian.
_IGNORABLE = frozenset(
    (0x034F, 0x180B, 0x180C, 0x180D, 0x180F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)),
)

# Lower-case Latin letters that Unicode does not decompose, each followed by its spelling: letters with a stroke
# or bar; without a dot, or standing for others; ligatures and digraphs.
_LETTERS = """
ⱥ a ƀ b ȼ c ꞓ c đ d ꟈ d ɇ e ꞙ f ǥ g ꞡ g ħ h ɨ i ɉ j ɟ j ꝁ k ꝃ k ꝅ k ꞣ k ł l ƚ l ⱡ l ꝉ l ꞥ n ø o ꝋ o ɵ o ᵽ p
ꝑ p ꝗ q ꝙ q ɍ r ꞧ r ꞩ s ꟊ s ŧ t ⱦ t ʉ u ꞹ u ꝟ v ɏ y ƶ z
ı i ȷ j ð d þ th ꝥ th ꝧ th
æ ae œ oe ꜳ aa ꜵ ao ꜷ au ꜹ av ꜻ av ꜽ ay ꝏ oo ꜩ tz ꝡ vy ᵫ ue ꭣ uo ꭐ ui ȣ ou ƕ hv ȸ db ȹ qp ʣ dz ʦ ts
"""
_SPELLED_OUT = dict(zip(_LETTERS.split()[::2], _LETTERS.split()[1::2], strict=True))


class _Visible(dict[int, int | None]):
    """A table for `str.translate`, filled as code points are met: None for those that are dropped."""

    def __missing__(self, code: int) -> int | None:
        category = unicodedata.category(chr(code))
        if category in ("Cn", "Co", "Cs"):
            return code  # not kept: there are a million of them, and a memory may hold any
        value = None if category == "Cf" or code in _IGNORABLE else code
        self[code] = value
        return value


class _Latin(dict[str, bool]):
    """Whether a letter is of Latin script. Python has no script property; the names tell it reliably."""

    def __missing__(self, letter: str) -> bool:
        value = self[letter] = unicodedata.name(letter, "").startswith("LATIN ")
        return value


_visible = _Visible()
_latin = _Latin()


def clean(text: str) -> str:
    """`text` in NFKC without format characters and variation selectors; case and accents stay.

    Those are taken out first, so that a letter and its accent meet although one stood between them.
    Lone surrogates pass through.
    """
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text.translate(_visible))


def fold(text: str) -> str:
    """The compared form of cleaned text: no case; on Latin letters no marks, strokes or ligatures."""
    if text.isascii():
        return text.lower()
    folded: list[str] = []
    on_latin = False
    for char in unicodedata.normalize("NFKD", text.casefold()):
        if unicodedata.category(char)[0] == "M":
            if on_latin:
                continue
        else:
            on_latin = _latin[char]
        folded.append(_SPELLED_OUT.get(char, char))
    return unicodedata.normalize("NFKC", "".join(folded))


def accented(text: str) -> bool:
    """Whether folding cleaned text takes more than case away from it."""
    return not text.isascii() and unicodedata.normalize("NFKC", text.casefold()) != fold(text)


def label(text: str) -> str:
    """The compared form of a category, entity or tag in a filter: no case, no outer space; accents stay."""
    if text.isascii():
        return text.strip().lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold()).strip()
