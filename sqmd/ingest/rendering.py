"""What is embedded for a range of lines: breadcrumb, the fence that was cut through, the lines; and its length."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from sqmd.ingest.parse import Block, Section, is_blank

# Of a token, on the average of a chunk. In prose it is 4 or 5.
MOST_CHARACTERS = 32


@dataclass(frozen=True, slots=True)
class Fence:
    """A fence from its opening line to its last one, and what is written around a part of it."""

    line_start: int
    line_end: int
    opening: str
    closing: str


def breadcrumb(heading_path: Sequence[str], file_stem: str) -> str:
    """`H1 > H2`, or the file's stem above the first heading. A heading's own ` > ` is written ` \\> `."""
    return " > ".join(each.replace(" > ", " \\> ") for each in heading_path if each) or " ".join(file_stem.split())


class Rendering:
    """One section's lines as they are counted and embedded. Counts are remembered; lines are counted when asked for."""

    def __init__(
        self,
        lines: Sequence[str],
        section: Section,
        crumb: str,
        count: Callable[[str], int],
        max_tokens: int,
        about: Sequence[str] = (),
    ) -> None:
        """about: lines that follow the breadcrumb, the most telling first, as far as there is room."""
        self._lines = lines
        self._count = count
        self._base = count("")
        self._max_tokens = max_tokens
        self._counted: dict[str, int] = {}
        self._costs: dict[str, int] = {"": 0}
        self._sums: list[int] = []
        self._first = section.line_start
        self._last = section.line_end
        self.prefix = self._prefix(crumb, about)
        self._fences = [self._fence(block) for block in _fences(section.blocks)]
        self._fence_starts = [fence.line_start for fence in self._fences]

    def raw(self, start: int, end: int) -> str:
        """The lines as they are in the file."""
        return "\n".join(self._lines[start - 1 : end])

    def text(self, start: int, end: int) -> str:
        return self.around(start, end, self.raw(start, end))

    def around(self, start: int, end: int, part: str) -> str:
        """`part`, which is lines start to end or a piece of one line, with what belongs around it."""
        opening, closing = self._cut_fences(start, end)
        before = f"{opening.opening}\n" if opening else ""
        after = f"\n{closing.closing}" if closing else ""
        return f"{self.prefix}{before}{part}{after}"

    def tokens(self, text: str) -> int:
        """Exact, the special ones included."""
        found = self._counted.get(text)
        if found is None:
            found = self._counted[text] = self._count(text)
        return found

    def size(self, text: str) -> int:
        """The tokens, or more where a tokenizer makes one of a word without end: a picture in base64 is many chunks."""
        return max(self.tokens(text), len(text) // MOST_CHARACTERS)

    def plain(self, text: str) -> int:
        """Without the special ones; otherwise as `size`."""
        return max(self._count(text) - self._base, len(text) // MOST_CHARACTERS)

    @property
    def room(self) -> int:
        """Tokens that are left for the lines of a chunk, if no fence is repeated."""
        return self._max_tokens - self._base - self._cost(self.prefix)

    def estimate(self, start: int, end: int) -> int:
        """The sum of what is in `text(start, end)`: the tokens, or near them where a tokenizer looks beyond blanks."""
        opening, closing = self._cut_fences(start, end)
        around = (self._cost(opening.opening) if opening else 0) + (self._cost(closing.closing) if closing else 0)
        return self._base + self._cost(self.prefix) + around + self.cost(start, end)

    def cost(self, start: int, end: int) -> int:
        """The lines' own tokens, line by line."""
        if not self._sums:
            self._sums = [0]
            for number in range(self._first, self._last + 1):
                self._sums.append(self._sums[-1] + self._cost(self._lines[number - 1]))
        return self._sums[end - self._first + 1] - self._sums[start - self._first]

    def inside_fence(self, line: int) -> Fence | None:
        """The fence that a cut behind `line` goes through."""
        at = bisect_right(self._fence_starts, line) - 1
        return self._fences[at] if at >= 0 and line < self._fences[at].line_end else None

    def chars(self, start: int, end: int) -> int:
        return len(self.raw(start, end).strip())

    def is_blank(self, line: int) -> bool:
        return is_blank(self._lines[line - 1])

    def line(self, number: int) -> str:
        return self._lines[number - 1]

    def _cost(self, text: str) -> int:
        found = self._costs.get(text)
        if found is None:
            found = self._costs[text] = 0 if is_blank(text) else self.plain(text)
        return found

    def _cut_fences(self, start: int, end: int) -> tuple[Fence | None, Fence | None]:
        if not self._fences:
            return None, None
        opening, closing = self.inside_fence(start - 1), self.inside_fence(end)
        return (
            opening if opening and opening.opening else None,
            closing if closing and closing.opening else None,
        )

    def _fence(self, block: Block) -> Fence:
        """What is repeated may take a quarter of the chunk: else it is without its language, else not repeated."""
        opening, closing = block.fence or ("", "")
        most = (self._max_tokens - self._base) // 4
        for each in (opening, closing):
            if max(len(each), len(closing)) <= 1000 and self._cost(each) + self._cost(closing) <= most:
                return Fence(block.line_start, block.line_end, each, closing)
        return Fence(block.line_start, block.line_end, "", "")

    def _prefix(self, crumb: str, about: Sequence[str]) -> str:
        """The breadcrumb may take half of the chunk: then its outermost parts go first, then the end of its last."""
        if not crumb:
            return ""
        most = (self._max_tokens - self._base) // 2
        for kept in range(len(about), -1, -1):
            whole = "\n".join([f"Section: {crumb}", *about[:kept]]) + "\n\n"
            if (whole.isascii() and len(whole) <= most) or self._cost(whole) <= most:
                return whole
        parts = crumb.split(" > ")
        for first in range(1, len(parts)):
            shorter = f"Section: … > {' > '.join(parts[first:])}\n\n"
            if self._cost(shorter) <= most:
                return shorter
        last = parts[-1]
        while last:
            # Of a name without an end only so much is looked at as can count.
            last = last[: min(len(last) * 3 // 4, 20 * most)]
            shorter = f"Section: {last.rstrip()}…\n\n"
            if last and self._cost(shorter) <= most:
                return shorter
        return ""


def _fences(blocks: Sequence[Block]) -> Iterator[Block]:
    for block in blocks:
        if block.fence:
            yield block
        yield from _fences(block.children)
