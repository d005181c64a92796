"""Markdown to draw examples from, and what chunks of any document have to hold to."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from sqmd.ingest.chunk import Chunk, ChunkOptions
from sqmd.ingest.parse import Document


def words(text: str) -> int:
    """A tokenizer for tests: a token is a word of up to 8 characters or a part of one; two stand around the text."""
    return 2 + sum((len(word) + 7) // 8 for word in text.split())


def characters(text: str) -> int:
    """Another: every character but blanks is a token, as in Chinese."""
    return 2 + sum(not char.isspace() for char in text)


def uneven(text: str) -> int:
    """One whose counts do not add up: line ends count, and every started three are dearer."""
    return -(-(2 + len(text.split()) + text.count("\n")) * 6 // 5)


_word = st.sampled_from(["fox", "über", "日本語", "C++", "it's", "[[wiki link]]", "![alt](i.png)", "a" * 30, "é", "x."])
_sentence = st.lists(_word, min_size=1, max_size=30).map(lambda found: " ".join(found) + ". ")
_line = st.one_of(
    st.lists(_sentence, min_size=1, max_size=8).map("".join),
    st.lists(_word, min_size=1, max_size=4).map(" ".join),
    st.sampled_from(["Yes.", "    indented", "<div>", "[ref]: http://example.org", "a\u2028b\x0cc", "漢字。" * 40]),
    st.text(max_size=30).map(lambda text: text.replace("\n", " ")),
)
_blank = st.sampled_from(["", "", "", "  ", "\t", "\u00a0"])
_paragraph = st.lists(_line, min_size=1, max_size=6)
_heading = st.builds(
    lambda level, text: ["#" * level + " " + text], st.integers(1, 6), st.lists(_word, max_size=4).map(" ".join)
)
_setext = st.builds(lambda text, mark: [text, mark], _line, st.sampled_from(["===", "---"]))
_list = st.lists(_line, min_size=1, max_size=8).map(lambda lines: [f"- {line}" for line in lines])
_quote = st.lists(_line, min_size=1, max_size=4).map(lambda lines: [f"> {line}" for line in lines])
_fence = st.builds(
    lambda mark, info, lines, end: [mark + info, *lines, *([mark] if end else [])],
    st.sampled_from(["```", "~~~~", "  ```"]),
    st.sampled_from(["", "py", "text " * 40]),
    st.lists(st.one_of(_line, _blank, st.just("# no heading")), max_size=12),
    st.integers(0, 9),
)
_nested = _fence.map(lambda lines: [("- " if not number else "  ") + line for number, line in enumerate(lines)])
_table = st.lists(_line, max_size=8).map(
    lambda cells: ["| a | b |", "|---|---|", *(f"| {each} | x |" for each in cells)]
)
_front = st.sampled_from([[], [], [], ["---", "title: X", "---"], ["---", "prose", "", "---"]])
_part = st.one_of(_paragraph, _paragraph, _heading, _setext, _list, _quote, _fence, _nested, _table)

any_markdown = st.builds(
    lambda front, parts: "\n".join([*front, *(line for part, gap in parts for line in [*part, *gap])]),
    _front,
    st.lists(st.tuples(_part, st.lists(_blank, max_size=2)), max_size=8),
)


def check(
    document: Document, chunks: list[Chunk], stem: str, count: Callable[[str], int], options: ChunkOptions
) -> None:
    """The laws, for a tokenizer of which a breadcrumb or a character is never too long."""
    lines = document.lines
    body = {
        number
        for section in document.sections
        for number in range(section.line_start, section.line_end + 1)
        if lines[number - 1].strip()
    }
    whole: set[int] = set()
    pieces: dict[int, list[Chunk]] = {}
    before: Chunk | None = None
    for each in chunks:
        section = document.sections[each.section_index]
        assert section.line_start <= each.line_start <= each.line_end <= section.line_end
        assert (each.heading_path, each.heading_level) == (section.heading_path, section.heading_level)
        assert each.text_raw.strip()
        assert each.token_count == count(each.text) <= options.max_tokens
        assert each.text_raw in each.text
        text = "\n".join(lines[each.line_start - 1 : each.line_end])
        if each.text_raw == text:
            whole.update(range(each.line_start, each.line_end + 1))
        else:
            assert each.line_start == each.line_end and each.text_raw in text
            pieces.setdefault(each.line_start, []).append(each)
        same = before is not None and before.section_index == each.section_index
        assert each.chunk_index == (before.chunk_index + 1 if before and same else 0)
        if before and same and before.line_end >= each.line_start and each.text_raw == text:
            shared = "\n".join(lines[each.line_start - 1 : before.line_end])
            assert before.line_start < each.line_start and before.line_end < each.line_end
            assert count(shared) - count("") <= options.overlap_tokens
        before = each
    for number, parts in pieces.items():
        follow(lines[number - 1], parts)
    assert body == (whole | pieces.keys()) & body
    if options.include_breadcrumb and options.max_tokens >= 40:
        assert all(each.text.startswith("Section: ") for each in chunks)


def follow(line: str, parts: list[Chunk]) -> None:
    """The pieces of one line, in order, leave nothing out. What they repeat is looked at where they are cut."""
    done = 0
    for each in parts:
        # A piece may stand in several places: the last one that leaves nothing out goes furthest.
        places = [at for at in range(len(line)) if line.startswith(each.text_raw, at) and not line[done:at].strip()]
        assert places, f"{line[done : done + 40]!r} is in no piece"
        done = max(done, places[-1] + len(each.text_raw))
    assert not line[done:].strip()
