"""Cuts a section that is too long into runs of whole lines: between blocks, else between lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqmd.ingest.parse import Block, Section
from sqmd.ingest.rendering import Rendering

# A heading stands alone before one of these rather than take its first lines away.
_NOT_TORN = ("fence", "table")


@dataclass(frozen=True, slots=True)
class Run:
    """Lines `lead` to `end`; those before `start` are the overlap with the run before.

    `too_long`: this is one line, and it has to be cut.
    """

    lead: int
    start: int
    end: int
    too_long: bool = False


def cut_into_runs(section: Section, rendering: Rendering, limit: int, min_chars: int, overlap: int) -> list[Run]:
    """The runs of a section, in order. Every line that is not blank is in one; each has at most `limit` tokens."""
    cutter = _Cutter(section, rendering, limit, min_chars, overlap)
    runs: list[Run] = []
    start = section.line_start
    while start <= section.line_end:
        run = cutter.next_run(start, runs[-1] if runs else None)
        runs.append(run)
        start = cutter.next_line(run.end)
    return cutter.join_small(runs)


class _Cutter:
    def __init__(self, section: Section, rendering: Rendering, limit: int, min_chars: int, overlap: int) -> None:
        self._blocks = section.blocks
        self._last = section.line_end
        self._rendering = rendering
        self._limit = limit
        self._min_chars = min_chars
        self._overlap = overlap

    def next_line(self, line: int) -> int:
        """The next one that is not blank; one behind the section if there is none."""
        line += 1
        while line <= self._last and self._rendering.is_blank(line):
            line += 1
        return line

    def next_run(self, start: int, before: Run | None) -> Run:
        """From `start` as far as fits, with the overlap if a block is not torn for it."""
        lead = self._lead(start, before)
        while True:
            reach = self._reach(lead, start)
            if reach < start:
                if lead < start:
                    lead = self.next_line(lead)
                    continue
                return Run(start, start, start, too_long=not self._fits(start, start))
            end = self._cut(start, reach)
            if lead < start and not self._is_between_blocks(end):
                alone = self._cut(start, self._reach(start, start))
                if self._is_between_blocks(alone):
                    # Repeating less is better than tearing a block.
                    lead, end = self._longest_lead(lead, start, alone), alone
            run = self._verified(Run(lead, start, end))
            if run is not None:
                return run
            if lead == start:
                return Run(start, start, start, too_long=True)
            lead = self.next_line(lead)

    def join_small(self, runs: list[Run]) -> list[Run]:
        """What is under min_chars, its overlap aside, joins the run before or behind, or takes lines of that before."""
        at = 0
        while at < len(runs) and len(runs) > 1:
            run = runs[at]
            if run.too_long or self._rendering.chars(run.start, run.end) >= self._min_chars:
                at += 1
                continue
            if at and (joined := self._joined(runs[at - 1], run)):
                runs[at - 1 : at + 1] = [joined]
                at -= 1
            elif at + 1 < len(runs) and (joined := self._joined(run, runs[at + 1])):
                runs[at : at + 2] = [joined]
            elif at and (shifted := self._shifted(runs[at - 1], run)):
                runs[at - 1 : at + 1] = shifted
                at += 1
            else:
                at += 1
        return runs

    def _fits(self, start: int, end: int) -> bool:
        return self._rendering.size(self._rendering.text(start, end)) <= self._limit

    def _lead(self, start: int, before: Run | None) -> int:
        """The first line of the overlap; `start` if there is none. Never the whole run before."""
        if before is None or before.too_long or not self._overlap:
            return start
        rendering, lead = self._rendering, before.end + 1
        while lead - 1 > before.start and rendering.cost(lead - 1, before.end) <= self._overlap:
            lead -= 1
        while lead <= before.end and (
            rendering.is_blank(lead) or rendering.plain(rendering.raw(lead, before.end)) > self._overlap
        ):
            lead += 1
        return lead if lead <= before.end else start

    def _longest_lead(self, lead: int, start: int, end: int) -> int:
        while lead < start and self._rendering.estimate(lead, end) > self._limit:
            lead = self.next_line(lead)
        return lead

    def _reach(self, lead: int, start: int) -> int:
        """The last line up to which lines from `lead` fit by estimate; before `start` if not even that line does."""
        reach, around = start - 1, self._rendering.estimate(lead, lead) - self._rendering.cost(lead, lead)
        line = start
        while line <= self._last and self._rendering.cost(lead, line) <= self._limit:
            if self._rendering.estimate(lead, line) <= self._limit:
                reach = line
            elif self._rendering.cost(lead, line) + around > 2 * self._limit:
                break
            line = self.next_line(line)
        return reach

    def _verified(self, run: Run) -> Run | None:
        """The run, shorter by what its estimate was too low; None if nothing of it fits."""
        while not self._fits(run.lead, run.end):
            shorter = run.end - 1
            while shorter > run.start and self._rendering.is_blank(shorter):
                shorter -= 1
            if shorter < run.start:
                return None
            run = replace(run, end=self._cut(run.start, shorter))
        return run

    def _cut(self, start: int, reach: int) -> int:
        """The last line of a run that begins at `start` and may go up to `reach`."""
        if reach >= self._last:
            return self._last
        blocks: Sequence[Block] = self._blocks
        while True:
            torn = _cut_through(blocks, reach)
            if torn is None:
                return reach
            if start < torn.line_start and self._may_begin_anew(start, torn):
                return self._line_before(start, torn.line_start)
            if torn.fence:
                return self._cut_in_fence(start, reach, torn)
            blocks = torn.children

    def _may_begin_anew(self, start: int, torn: Block) -> bool:
        """Whether to end before this block: it fits into a run of its own, and what is left behind is no scrap."""
        if self._rendering.estimate(torn.line_start, torn.line_end) > self._limit:
            return False
        left = self._line_before(start, torn.line_start)
        return torn.kind in _NOT_TORN or self._rendering.chars(start, left) >= self._min_chars

    def _cut_in_fence(self, start: int, reach: int, fence: Block) -> int:
        """Neither its first line alone at the end of a run, nor its last line alone at the start of one."""
        if reach == fence.line_start and start < fence.line_start:
            return self._line_before(start, fence.line_start)
        before_last = self._line_before(start, reach)
        if reach == fence.line_end - 1 and before_last > max(start, fence.line_start):
            return before_last
        return reach

    def _line_before(self, start: int, line: int) -> int:
        """The one before `line` that is not blank, `start` at the earliest."""
        line -= 1
        while line > start and self._rendering.is_blank(line):
            line -= 1
        return max(line, start)

    def _is_between_blocks(self, end: int) -> bool:
        return _cut_through(self._blocks, end) is None

    def _joined(self, first: Run, second: Run) -> Run | None:
        """Both in one, with the overlap of the first if there is room for it."""
        if first.too_long or second.too_long:
            return None
        for lead in dict.fromkeys((first.lead, first.start)):
            run = Run(lead, first.start, second.end)
            if self._rendering.estimate(lead, run.end) <= self._limit and self._fits(lead, run.end):
                return run
        return None

    def _shifted(self, first: Run, second: Run) -> list[Run] | None:
        """Both, with as few lines as will do moved to the second; None if one of them is under min_chars anyway."""
        if first.too_long or second.too_long:
            return None
        start = first.end
        while start > first.start:
            end = self._line_before(first.start, start)
            enough = self._rendering.chars(start, second.end) >= self._min_chars
            if enough and not self._rendering.is_blank(start) and not self._rendering.inside_fence(end):
                if self._rendering.chars(first.start, end) < self._min_chars or not self._fits(start, second.end):
                    return None
                if not self._fits(first.lead, end):  # the fence around what is left
                    return None
                return [replace(first, end=end), Run(start, start, second.end)]
            start -= 1
        return None


def _cut_through(blocks: Sequence[Block], line: int) -> Block | None:
    """The block of these that a cut behind `line` goes through."""
    at = bisect_right(blocks, line, key=lambda block: block.line_start) - 1
    return blocks[at] if at >= 0 and line < blocks[at].line_end else None
