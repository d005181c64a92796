"""Markdown to sections and blocks, each a range of the file's lines. The text itself is never changed."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.front_matter import front_matter_plugin

from sqmd.ingest.front_matter import Metadata, read_front_matter

_MOST_OF_A_HEADING = 500  # characters


@dataclass(frozen=True, slots=True)
class Block:
    """Lines that belong together; counted from 1, both ends included, as everywhere here.

    `kind` is CommonMark's name (paragraph, fence, bullet_list, list_item, table ...). `children` are the blocks in a
    list or quote. `fence` is (opening, closing) to write around a part of a fence.
    """

    kind: str
    line_start: int
    line_end: int
    children: tuple[Block, ...] = ()
    fence: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what follows up to the next one. Before the first: path (), text "", level 0.

    The path holds the headings above this one and itself, the outermost first, in Markdown as written; one that is very
    long is cut. The last line is not blank. What no block covers, such as link definitions, is still in the lines.
    """

    heading_path: tuple[str, ...]
    heading_text: str
    heading_level: int
    section_index: int
    line_start: int
    line_end: int
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """`"\\n".join(lines)` is the text. Sections are in order and do not overlap; front matter is in none."""

    lines: tuple[str, ...]
    metadata: Metadata
    sections: tuple[Section, ...]


def parse(text: str) -> Document:
    """`text` as `decode` returns it. Lines end at "\\n" and nowhere else."""
    lines = text.split("\n")
    # The parser ends lines at a carriage return too, and would count others than we do.
    source = text.replace("\r", " ")
    tokens = _parser(True).parse(source)
    metadata, first = Metadata(), 1
    if tokens and tokens[0].type == "front_matter":
        found = read_front_matter(tokens[0].content)
        if found is None:
            tokens = _parser(False).parse(source)
        else:
            metadata, first = found, _lines(tokens.pop(0))[1] + 1
    return Document(tuple(lines), metadata, tuple(_sections(lines, tokens, first)))


def is_blank(line: str) -> bool:
    """Whether nobody sees anything in it."""
    return not line.strip()


@cache
def _parser(front_matter: bool) -> MarkdownIt:
    # Links and emphasis are left as they are, so the costly half of a parser is not needed.
    # Below maxNesting a parser gives up and takes all that follows for a part of the list: ten lists are not enough.
    parser = MarkdownIt("commonmark", {"maxNesting": 100}).enable("table").disable(["inline"])
    return parser.use(front_matter_plugin) if front_matter else parser


def _lines(token: Token) -> tuple[int, int]:
    start, end = token.map or (0, 0)
    return start + 1, max(start + 1, end)


def _sections(lines: list[str], tokens: list[Token], first: int) -> list[Section]:
    sections: list[Section] = []
    path: list[tuple[int, str]] = []

    def close(start: int, end: int, blocks: list[Block]) -> None:
        while end >= start and is_blank(lines[end - 1]):
            end -= 1
        while start <= end and is_blank(lines[start - 1]):
            start += 1
        if start <= end:
            texts = tuple(text for _, text in path)
            level, text = path[-1] if path else (0, "")
            # To the parser a line of odd blanks is a paragraph.
            fitted = tuple(
                replace(block, line_start=max(block.line_start, start), line_end=min(block.line_end, end))
                for block in blocks
                if block.line_start <= end and block.line_end >= start
            )
            sections.append(Section(texts, text, level, len(sections), start, end, fitted))

    start = first
    blocks: list[Block] = []
    for block, token, content in _top_blocks(lines, tokens):
        if block.kind == "heading":
            close(start, block.line_start - 1, blocks)
            start, blocks = block.line_start, []
            level = int(token.tag[1:])
            while path and path[-1][0] >= level:
                path.pop()
            path.append((level, _shown(content)))
        blocks.append(block)
    close(start, len(lines), blocks)
    return sections


def _shown(heading: str) -> str:
    """One line, and no novel: it stands in the path of all that is below it."""
    text = " ".join(heading.split())
    return text if len(text) <= _MOST_OF_A_HEADING else f"{text[:_MOST_OF_A_HEADING]}…"


def _top_blocks(lines: list[str], tokens: list[Token]) -> list[tuple[Block, Token, str]]:
    """The outermost blocks with their tokens, and of a heading its text."""
    top: list[tuple[Block, Token, str]] = []
    # Containers that are open, each with its children so far; at the bottom the document.
    open_tokens: list[tuple[Token, list[Block]]] = []
    content = ""
    for token in tokens:
        if token.type == "inline":
            content = token.content
        elif token.nesting == 1:
            open_tokens.append((token, []))
        else:
            opening, children = open_tokens.pop() if token.nesting == -1 else (token, [])
            if opening.map is None or opening.type.startswith(("tr_", "th_", "td_", "thead", "tbody")):
                continue
            block = _block(lines, opening, children)
            if open_tokens:
                open_tokens[-1][1].append(block)
            else:
                top.append((block, opening, content))
    return top


def _block(lines: list[str], token: Token, children: list[Block]) -> Block:
    start, end = _lines(token)
    end = min(end, len(lines))
    while end > start and is_blank(lines[end - 1]):  # those of lists reach over the blank lines behind them
        end -= 1
    fence = None
    if token.type == "fence":
        fence = (token.markup + token.info.rstrip(), token.markup)
    inside = tuple(child for child in children if child.line_start <= end)
    return Block(token.type.removesuffix("_open"), start, end, inside, fence)
