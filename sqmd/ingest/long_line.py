"""Cuts a line that is too long for one chunk: behind sentences, else behind words, else between characters."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

# Where a sentence may end: Western marks with a blank behind them, those of CJK without. Marks are looked at once, as
# a line of nothing else would be looked through from each of them.
_SENTENCE = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’»)\]]*+\s+|[。！？｡]+[」』）”’]*\s*")
_BLANKS = re.compile(r"\s+")
_NEAR_ENOUGH = 0.9
_TRIES = 12
_JOINERS = "\u200d\ufe0e\ufe0f"


@dataclass(frozen=True, slots=True)
class Budget:
    """`tokens(part)` of a chunk that holds `part`, all that is around it included; `plain(part)` of the part alone.

    `least` is the number of characters that the last piece should have.
    """

    tokens: Callable[[str], int]
    plain: Callable[[str], int]
    limit: int
    overlap: int
    least: int


def cut_line(line: str, budget: Budget) -> list[tuple[int, int]]:
    """(start, end) of the pieces of `line`, in order: each within the limit, each going further than the one before.

    Every character that is not blank is in one. A piece begins with up to `overlap` tokens of the one before. Over
    the limit is only a piece of a single character, if that is.
    """
    return _Cut(line, budget).pieces()


class _Cut:
    def __init__(self, line: str, budget: Budget) -> None:
        self._line = line
        self._budget = budget
        self._end = len(line.rstrip())
        self._sentences = [found.end() for found in _SENTENCE.finditer(line)]
        self._words = [found.end() for found in _BLANKS.finditer(line)]
        self._around = budget.tokens("")
        self._overlap_tokens = min(budget.overlap, (budget.limit - self._around) // 2)
        # Characters of a token, on the average of the line; each try corrects it.
        self._width = max(len(line) / max(1, budget.plain(line)), 0.01)

    def pieces(self) -> list[tuple[int, int]]:
        pieces: list[tuple[int, int]] = []
        start = done = self._skip_blanks(0)
        while done < self._end:
            reach = self._reach(start, done)
            if reach <= done and start < done:  # the overlap leaves no room
                start = done
                continue
            end = self._boundary(done, max(reach, done + 1))
            last = len(self._line[:end].rstrip())
            pieces.append((start, last))
            done = self._skip_blanks(end)
            start = self._overlap(start, last, done)
        return pieces

    def _skip_blanks(self, at: int) -> int:
        while at < self._end and self._line[at].isspace():
            at += 1
        return at

    def _reach(self, start: int, done: int) -> int:
        """About the furthest end of a piece from `start` that is within the limit; `done` or less if there is none."""
        limit = self._budget.limit
        good, bad = done, self._end + 1
        guess = start + int(max(1, limit - self._around) * self._width)
        for _ in range(_TRIES):
            guess = min(max(guess, good + 1), bad - 1)
            if guess <= good:
                break
            size = self._budget.tokens(self._line[start:guess])
            if size <= limit:
                good = guess
                if guess == self._end or size >= _NEAR_ENOUGH * limit:
                    break
            else:
                bad = guess
            grown = (guess - start) * (limit - self._around) / max(1, size - self._around)
            # Where guessing by proportion does not get on, halving does.
            guess = int(start + 0.98 * grown) if good == done or bad > self._end else (good + bad) // 2
        while good == done and bad > done + 1:
            middle = done + (bad - done) // 2
            if self._budget.tokens(self._line[start:middle]) <= limit:
                good = middle
            else:
                bad = middle
        return good

    def _boundary(self, done: int, reach: int) -> int:
        """The best place in the second half of what can be reached, so that no piece is a sliver."""
        if reach >= self._end:
            return self._end
        least = self._budget.least
        if self._end - reach < least and reach - done > 2 * least:
            reach = self._end - least
        half = done + (reach - done + 1) // 2
        for places in (self._sentences, self._words):
            at = bisect_right(places, reach) - 1
            if at >= 0 and places[at] > half:
                return places[at]
            if self._line[reach].isspace() and places is self._words:
                return reach
        return self._between_characters(half, reach)

    def _between_characters(self, least: int, reach: int) -> int:
        """No mark is parted from its letter, if that can be helped."""
        end = reach
        while end > least and (unicodedata.combining(self._line[end]) or self._line[end] in _JOINERS):
            end -= 1
        return end if end > least else reach

    def _overlap(self, before: int, end: int, done: int) -> int:
        """Where the next piece begins: behind `before`, with what repeats [before, end) within the overlap."""
        most = self._overlap_tokens
        if most < 1 or done >= self._end:
            return done
        start = max(before + 1, end - int(most * self._width))
        for _ in range(_TRIES):
            start = self._beginning(start, end)
            if start >= end:
                break
            size = self._budget.plain(self._line[start:end])
            if size <= most:
                return start
            start = max(start + 1, end - int((end - start) * most / size))
        return done

    def _beginning(self, start: int, end: int) -> int:
        """The first start of a sentence in [start, end), else of a word, else `start`, but of no mark alone."""
        for places in (self._sentences, self._words):
            at = bisect_right(places, start - 1)
            if at < len(places) and places[at] < end:
                return places[at]
        while start < end and (unicodedata.combining(self._line[start]) or self._line[start] in _JOINERS):
            start += 1
        return start
