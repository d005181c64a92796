"""Sections to chunks: what is embedded, stored and found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from sqmd.ingest.front_matter import Metadata
from sqmd.ingest.long_line import Budget, cut_line
from sqmd.ingest.parse import Document, Section
from sqmd.ingest.rendering import Rendering, breadcrumb
from sqmd.ingest.runs import Run, cut_into_runs

__all__ = ["Chunk", "ChunkOptions", "breadcrumb", "chunk"]

# No tokenizer makes one token of so many characters of prose: such a section need not be counted to be too long.
_CHARACTERS_OF_A_TOKEN = 10


@dataclass(frozen=True, slots=True)
class ChunkOptions:
    """`max_tokens` is 16 or more. Of `overlap_tokens` at most half of what the breadcrumb leaves is used."""

    max_tokens: int = 512
    min_chars: int = 50
    include_breadcrumb: bool = True
    overlap_tokens: int = 64


@dataclass(frozen=True, slots=True)
class Chunk:
    """`text` is embedded, and has `token_count` tokens; `text_raw` is lines line_start to line_end as they are.

    Only where one line is too long for a chunk is text_raw a part of that line. `chunk_index` counts within the
    section, from 0.
    """

    heading_path: tuple[str, ...]
    heading_text: str
    heading_level: int
    parent_headings: tuple[str, ...]
    depth: int
    section_index: int
    chunk_index: int
    text: str
    text_raw: str
    token_count: int
    line_start: int
    line_end: int


def chunk(document: Document, file_stem: str, count_tokens: Callable[[str], int], options: ChunkOptions) -> list[Chunk]:
    """The chunks of a document, in its order. `count_tokens` counts a whole text, special tokens included.

    The first section's are found by what the front matter says as well: it follows their breadcrumb.
    """
    chunks: list[Chunk] = []
    for section in document.sections:
        crumb = breadcrumb(section.heading_path, file_stem) if options.include_breadcrumb else ""
        about = _about(document.metadata) if section.section_index == 0 else ()
        rendering = Rendering(document.lines, section, crumb, count_tokens, options.max_tokens, about)
        for index, (start, end, raw, text, tokens) in enumerate(_parts(section, rendering, options)):
            chunks.append(
                Chunk(
                    heading_path=section.heading_path,
                    heading_text=section.heading_text,
                    heading_level=section.heading_level,
                    parent_headings=section.heading_path[:-1],
                    depth=len(section.heading_path),
                    section_index=section.section_index,
                    chunk_index=index,
                    text=text,
                    text_raw=raw,
                    token_count=tokens,
                    line_start=start,
                    line_end=end,
                )
            )
    return chunks


def _about(metadata: Metadata) -> tuple[str, ...]:
    rows = (("Title", (metadata.title or "",)), ("Tags", metadata.tags), ("Aliases", metadata.aliases))
    return tuple(f"{name}: {text}" for name, values in rows if (text := " ".join(", ".join(values).split())))


def _parts(section: Section, rendering: Rendering, options: ChunkOptions) -> Iterator[tuple[int, int, str, str, int]]:
    """(first line, last line, text_raw, text, tokens) of each chunk."""
    start, end = section.line_start, section.line_end
    raw = rendering.raw(start, end)
    if len(raw) <= _CHARACTERS_OF_A_TOKEN * options.max_tokens:
        text = rendering.text(start, end)
        tokens = rendering.tokens(text)
        if tokens <= options.max_tokens:
            yield start, end, raw, text, tokens
            return
    # With more, chunks would repeat more than they add.
    overlap = min(options.overlap_tokens, rendering.room // 2)
    for run in cut_into_runs(section, rendering, options.max_tokens, options.min_chars, overlap):
        for raw, text in _texts(run, rendering, options, overlap):
            yield run.lead, run.end, raw, text, rendering.tokens(text)


def _texts(run: Run, rendering: Rendering, options: ChunkOptions, overlap: int) -> Iterator[tuple[str, str]]:
    if not run.too_long:
        yield rendering.raw(run.lead, run.end), rendering.text(run.lead, run.end)
        return
    line, number = rendering.line(run.start), run.start

    def tokens(part: str) -> int:
        return rendering.size(rendering.around(number, number, part))

    budget = Budget(tokens, rendering.plain, options.max_tokens, overlap, options.min_chars)
    for first, last in cut_line(line, budget):
        yield line[first:last], rendering.around(number, number, line[first:last])
