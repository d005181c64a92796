"""From text to words: runs, compounds and their parts, pairs in scripts without spaces.

The rules are section 1 of docs/ranking.md. All patterns are linear: runs and connectors share no character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from squirrel_mcp.search.fold import accented, clean, fold
from squirrel_mcp.search.shapes import shape_of

_RUN = "[Ulod][Ulodm]*+"
_CONNECTOR = "(?:://|:/|[-'_.@/:+#])"
# `c++`, or `c#` where no run follows: letters only, and the end of a compound.
_SIGNED = r"[Ulo][Ulom]*(?:\+\+|#(?![Ulod]))"
_TOKEN = re.compile(f"(?P<unspaced>h[hm]*)|n?(?:{_RUN}{_CONNECTOR})*(?:{_SIGNED}|{_RUN})")
_PIECE = re.compile(rf"{_SIGNED}\Z|n?{_RUN}|{_CONNECTOR}")
# Nothing to take apart: at most the first letter is a capital, or all are, or it is a number.
_SIMPLE = re.compile(r"[Ulo][lom]*|U+|d[dm]*")
_NO_SPELLINGS: frozenset[str] = frozenset()


class Word(NamedTuple):
    """One word of a text, folded.

    `parts` are distinct; of a pair of code points they are its letters, which no query but one of a single
    character asks for. `accented` holds those of `whole` and `parts` that were spelled with an accent.
    """

    whole: str
    parts: tuple[str, ...] = ()
    accented: frozenset[str] = _NO_SPELLINGS
    unspaced: bool = False


class _Piece(NamedTuple):
    joiner: str  # the connector before it, "" after a camelCase or letter-digit border
    text: str
    shape: str

    @property
    def is_number(self) -> bool:
        return self.shape[0] == "d"


def words(text: str) -> Iterator[Word]:
    """The words of `text` in order, repetitions included. Any string is fine, lone surrogates too."""
    text = clean(text)
    shape = shape_of(text)
    previous_end = -1
    for found in _TOKEN.finditer(shape):
        start, end = found.span()
        token = text[start:end]
        if found["unspaced"]:
            yield from _pairs(token, shape[start:end])
        # The `'s` of `C++'s` or of a run without spaces, which no compound has taken in.
        elif not (token in ("s", "S") and previous_end == start - 1 >= 0 and shape[start - 1] == "'"):
            yield _word(token, shape[start:end])
        previous_end = end


def _pairs(run: str, shape: str) -> Iterator[Word]:
    if len(run) == 1:
        yield Word(run, (), _NO_SPELLINGS, True)
        return
    for i in range(len(run) - 1):
        letters = [char for char, kind in zip(run[i : i + 2], shape[i : i + 2], strict=True) if kind == "h"]
        yield Word(run[i : i + 2], tuple(dict.fromkeys(letters)), _NO_SPELLINGS, True)


def _word(token: str, shape: str) -> Word:
    if shape.endswith(("'l", "'U")) and token[-1] in "sS":
        token, shape = token[:-2], shape[:-2]
    if _SIMPLE.fullmatch(shape):
        whole = fold(token)
        return Word(whole, (), frozenset((whole,)) if accented(token) else _NO_SPELLINGS)

    pieces = _join_numbers(list(_pieces(token, shape)))
    folded = [fold(piece.text) for piece in pieces]
    joiners = ["" if piece.joiner in "-'" else piece.joiner for piece in pieces]
    whole = "".join(joiner + text for joiner, text in zip(joiners, folded, strict=True))
    parts: dict[str, None] = {}
    for i, piece in enumerate(pieces):
        beside_apostrophe = piece.joiner == "'" or (i + 1 < len(pieces) and pieces[i + 1].joiner == "'")
        if not (beside_apostrophe and not piece.is_number and len(piece.shape) - piece.shape.count("m") <= 2):
            parts[folded[i]] = None
    spelled = {text for text, piece in zip(folded, pieces, strict=True) if accented(piece.text)}
    if spelled:
        spelled = {whole, *(parts.keys() & spelled)}
    return Word(whole, tuple(parts) if len(pieces) > 1 else (), frozenset(spelled) or _NO_SPELLINGS)


def _pieces(token: str, shape: str) -> Iterator[_Piece]:
    joiner = ""
    for found in _PIECE.finditer(shape):
        start, end = found.span()
        if shape[start] not in "Ulodn":
            joiner = found[0]
            continue
        for cut in _borders(found[0]):
            yield _Piece(joiner, token[start : start + cut], shape[start : start + cut])
            start, joiner = start + cut, ""
        yield _Piece(joiner, token[start:end], shape[start:end])


def _borders(shape: str) -> Iterator[int]:
    """Lengths of the pieces of one run but the last: camelCase and letter-digit borders, marks aside."""
    start, last, before_last, last_at = 0, "", "", 0
    for i, kind in enumerate(shape):
        if kind not in "Ulod":
            continue
        cut = start
        if (last and (kind == "d") != (last == "d")) or (kind == "U" and last == "l"):
            cut = i
        elif kind == "l" and last == "U" and before_last == "U":
            cut = last_at
        if cut > start:
            yield cut - start
            start = cut
        last, before_last, last_at = kind, last, i


def _join_numbers(pieces: list[_Piece]) -> list[_Piece]:
    """Numbers joined by dots are one piece: versions and addresses are not asked for by their digits."""
    joined: list[_Piece] = []
    run: list[str] = []
    for piece in pieces:
        if joined and piece.is_number and piece.joiner == "." and joined[-1].is_number:
            run.append(piece.text)
            continue
        _close(joined, run)
        joined.append(piece)
        run = [piece.text]
    _close(joined, run)
    return joined


def _close(joined: list[_Piece], run: list[str]) -> None:
    if len(run) > 1:
        joined[-1] = joined[-1]._replace(text=".".join(run))
