"""Markdown to sections and blocks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqmd.ingest.front_matter import Metadata, read_front_matter
from sqmd.ingest.parse import Block, Document, parse
from tests.sqmd.ingest.markdown import any_markdown


def outline(text: str) -> list[tuple[int, tuple[str, ...], int, int]]:
    """(level, path, first line, last line) of every section."""
    found = parse(text).sections
    return [(each.heading_level, each.heading_path, each.line_start, each.line_end) for each in found]


def kinds(document: Document, section: int = 0) -> list[tuple[str, int, int]]:
    return [(block.kind, block.line_start, block.line_end) for block in document.sections[section].blocks]


def test_headings_of_both_kinds_make_sections_with_their_path() -> None:
    text = "before\n\n# A #\ntext\n\nB\nmore\n---\n### C\n\n# D\n"
    assert outline(text) == [
        (0, (), 1, 1),
        (1, ("A",), 3, 4),
        (2, ("A", "B more"), 6, 8),
        (3, ("A", "B more", "C"), 9, 9),
        (1, ("D",), 11, 11),
    ]
    assert [each.heading_text for each in parse(text).sections] == ["", "A", "B more", "C", "D"]
    assert [each.section_index for each in parse(text).sections] == [0, 1, 2, 3, 4]


def test_a_heading_that_skips_levels_is_below_the_nearest_one_above() -> None:
    assert [path for _, path, _, _ in outline("### C\n# A\n### B\n## D\n")] == [("C",), ("A",), ("A", "B"), ("A", "D")]


def test_a_heading_with_an_arrow_and_two_nested_ones_are_told_apart() -> None:
    paths = [path for _, path, _, _ in outline("# A > B\nx\n# A\n## B\ny\n# A\n## B\nz\n")]
    assert paths == [("A > B",), ("A",), ("A", "B"), ("A",), ("A", "B")]


@pytest.mark.parametrize(
    "text",
    [
        "```sh\n# no heading\n\n# nor this\n```\n",
        "    # code\n",
        "text #no\n#no\n####### no\n",
        "> # quoted\n",
        "- # in a list\n",
        "<!--\n# no\n-->\n",
        "| # | a |\n|---|---|\n| # b | c |\n",
        "\\# no\n",
    ],
)
def test_a_hash_that_is_no_heading_begins_no_section(text: str) -> None:
    assert [level for level, _, _, _ in outline(text)] == [0]


def test_front_matter_is_metadata_and_no_heading() -> None:
    assert outline("---\ntitle: X\n---\n") == []
    document = parse("---\ntitle: X\ntags: [a, '#b', a]\naliases:\n  - One, two\n---\n\ntext\n")
    assert document.metadata == Metadata("X", ("a", "b"), ("One, two",))
    assert [(each.line_start, each.line_end) for each in document.sections] == [(8, 8)]


@pytest.mark.parametrize(
    ("text", "metadata"),
    [
        ("title: Rust: a tour\ntags:\n  - a\n- b\nalias: x, y", Metadata("Rust: a tour", ("a", "b"), ("x", "y"))),
        ("title: [half\ntags: [a, b]", Metadata("[half", ("a", "b"))),
        ("title: 2024-01-01\ntags: a, b #c", Metadata("2024-01-01", ("a", "b"))),
        ("title: 7\nTags: one", Metadata("7", ("one",))),
        ("title:\ntags:\ndate: 2024-99-99", Metadata()),
        ("tags: &a [x, *a, {y: z}]", Metadata(tags=("x",))),
        ("title: '" + "ü" * 10 + "'", Metadata("ü" * 10)),
        ("", Metadata()),
        ("a: " + "[" * 20_000, Metadata()),
    ],
)
def test_metadata_is_taken_as_written_and_from_broken_yaml_too(text: str, metadata: Metadata) -> None:
    assert read_front_matter(text) == metadata


def test_prose_between_rules_is_no_front_matter_and_stays_text() -> None:
    document = parse("---\nOnce upon a time.\n\nThe end.\n\n---\nmore\n")
    assert document.metadata == Metadata()
    assert [(each.line_start, each.line_end) for each in document.sections] == [(1, 7)]
    assert outline("---\nnever closed\n") == [(0, (), 1, 2)]
    assert outline("text\n---\ntitle: X\n---\n") == [(2, ("text",), 1, 2), (2, ("title: X",), 3, 4)]


def test_blocks_cover_their_lines_without_the_blank_ones_behind() -> None:
    text = "# H\n\npara\nmore\n\n- one\n\n  ```py\n  x\n\n  y\n  ```\n- two\n\n\n> quote\n\n| a |\n|---|\n| b |\n"
    document = parse(text)
    assert kinds(document) == [
        ("heading", 1, 1),
        ("paragraph", 3, 4),
        ("bullet_list", 6, 13),
        ("blockquote", 16, 16),
        ("table", 18, 20),
    ]
    one, two = document.sections[0].blocks[2].children
    assert (one.kind, one.line_start, one.line_end, two.line_start) == ("list_item", 6, 12, 13)
    assert one.children[1] == Block("fence", 8, 12, (), ("```py", "```"))


def test_mdx_is_text() -> None:
    text = "import A from './a'\n\nexport const b = 1\n\n<A x={1}>\n\n# Inside\n\n</A>\n"
    assert outline(text) == [(0, (), 1, 5), (1, ("Inside",), 7, 9)]
    assert parse(text).lines[4] == "<A x={1}>"


def test_lines_end_at_a_line_feed_and_nowhere_else() -> None:
    text = "a\u2028b\x0cc\x0bd\x85e\x1cf\n# H\u2029x\n"
    document = parse(text)
    assert document.lines == ("a\u2028b\x0cc\x0bd\x85e\x1cf", "# H\u2029x", "")
    assert outline(text) == [(0, (), 1, 1), (1, ("H x",), 2, 2)]
    assert outline("a\rb\n# H") == [(0, (), 1, 1), (1, ("H",), 2, 2)]


def test_an_empty_file_has_no_section() -> None:
    for text in ("", "\n\n", " \t\n\u00a0\n"):
        assert parse(text).sections == ()


def test_nesting_without_end_ends() -> None:
    text = ">" * 5000 + " deep\n\n" + "- " * 500 + "x\n\n# H\n"
    assert parse(text).sections[-1].line_end == 5  # whether the heading is seen is another matter
    assert outline(">" * 5000 + "\n\n" + "- " * 40 + "x\n\n# H\n")[-1][:2] == (1, ("H",))


@given(st.one_of(any_markdown, st.text(max_size=200)))
def test_sections_and_blocks_are_in_order_and_inside_one_another(text: str) -> None:
    document = parse(text)
    assert "\n".join(document.lines) == text
    line = 0
    for index, section in enumerate(document.sections):
        assert section.section_index == index and line < section.line_start <= section.line_end
        assert document.lines[section.line_end - 1].strip() and document.lines[section.line_start - 1].strip()
        in_order(section.blocks, section.line_start, section.line_end)
        line = section.line_end
    assert line <= len(document.lines)


def in_order(blocks: tuple[Block, ...], first: int, last: int) -> None:
    for block in blocks:
        assert first <= block.line_start <= block.line_end <= last
        in_order(block.children, block.line_start, block.line_end)
        first = block.line_end + 1
