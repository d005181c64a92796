"""Small documents and the chunks they have to become."""

from __future__ import annotations

import pytest

from sqmd.ingest.chunk import Chunk, ChunkOptions, breadcrumb, chunk
from sqmd.ingest.parse import parse
from tests.sqmd.ingest.markdown import characters, words


def chunks(text: str, max_tokens: int = 512, min_chars: int = 50, crumb: bool = True, overlap: int = 64) -> list[Chunk]:
    return chunk(parse(text), "stem", words, ChunkOptions(max_tokens, min_chars, crumb, overlap))


def places(found: list[Chunk]) -> list[tuple[int, int]]:
    return [(each.line_start, each.line_end) for each in found]


def para(number: int, name: str = "w") -> str:
    """So many words, each a token of `words`."""
    return " ".join([name] * number)


def test_a_chunk_knows_where_it_stands() -> None:
    preamble, _, second = chunks("intro\n\n# A\n## B\n\ntext\n")
    assert second == Chunk(
        heading_path=("A", "B"),
        heading_text="B",
        heading_level=2,
        parent_headings=("A",),
        depth=2,
        section_index=2,
        chunk_index=0,
        text="Section: A > B\n\n## B\n\ntext",
        text_raw="## B\n\ntext",
        token_count=9,
        line_start=4,
        line_end=6,
    )
    assert preamble.text == "Section: stem\n\nintro"
    assert (preamble.heading_level, preamble.heading_path, preamble.depth) == (0, (), 0)


def test_without_a_breadcrumb_the_text_is_the_lines() -> None:
    assert [each.text for each in chunks("# A\ntext", crumb=False)] == ["# A\ntext"]


def test_three_paragraphs_that_are_split_in_three_have_lines_1_to_3_and_5_and_7() -> None:
    text = f"# H\n\n{para(80)}\n\n{para(80)}\n\n{para(80)}\n"
    for overlap in (0, 64):
        found = chunks(text, max_tokens=100, overlap=overlap)
        assert places(found) == [(1, 3), (5, 5), (7, 7)]
        assert [each.text_raw for each in found] == [f"# H\n\n{para(80)}", para(80), para(80)]


def test_items_of_a_list_keep_their_lines() -> None:
    (only,) = chunks("- one\n- two\n")
    assert only.text_raw == "- one\n- two"


def test_one_paragraph_of_3000_words_is_within_the_limit() -> None:
    found = chunks(" ".join(f"word{number}" for number in range(3000)))
    assert all(each.token_count <= 512 for each in found)
    assert {word for each in found for word in each.text_raw.split()} == {f"word{number}" for number in range(3000)}
    # 506 words have room, and 64 of them are repeated.
    assert 7 <= len(found) <= 9


def test_3400_characters_of_chinese_are_about_3400_tokens() -> None:
    found = chunk(parse("漢" * 3400), "s", characters, ChunkOptions(overlap_tokens=0))
    assert 3400 <= sum(each.token_count for each in found) <= 3600
    assert all(each.token_count <= 512 for each in found) and len(found) <= 8
    assert "".join(each.text_raw for each in found) == "漢" * 3400


def test_a_short_section_is_kept() -> None:
    assert [each.text_raw for each in chunks("# FAQ\n\nYes: port 7832.\n\n# Next\n")] == [
        "# FAQ\n\nYes: port 7832.",
        "# Next",
    ]


def test_links_wikilinks_and_alternative_texts_stay_in_the_text() -> None:
    line = "[here](https://example.org/x?y) [[Wiki Page|shown]] ![a cat](cat.png) <https://example.com>"
    (only,) = chunks(f"{line}\n\n[ref]: https://example.net 'title'\n")
    assert only.text_raw == f"{line}\n\n[ref]: https://example.net 'title'"


def test_headings_that_look_alike_are_told_apart_in_the_text_too() -> None:
    found = chunks("# A > B\nx\n# A\n## B\nx\n")
    assert [each.text.split("\n")[0] for each in found] == ["Section: A \\> B", "Section: A", "Section: A > B"]
    assert breadcrumb(("", "B"), "s") == "B"
    assert breadcrumb(("",), "a\nb") == "a b"


def test_a_fence_that_fits_is_not_torn_apart_at_its_blank_lines() -> None:
    code = "\n".join(["```py", *(["x = 1", ""] * 12), "```"])
    text = f"{para(50)}\n\n{para(50)}\n\n{code}\n\n{para(50)}\n"
    found = chunks(text, max_tokens=90, overlap=0)
    assert any(each.text_raw.startswith("```py") and each.text_raw.endswith("```") for each in found)
    assert sum(each.text_raw.count("```") for each in found) == 2


def test_a_fence_that_has_to_be_split_is_repeated_in_the_text_alone() -> None:
    code = "\n".join(["```py", *(f"line {number} of it" for number in range(40)), "```"])
    first, *middle, last = chunks(code, max_tokens=60, overlap=0)
    assert first.text == f"Section: stem\n\n{first.text_raw}\n```" and first.text_raw.startswith("```py\nline 0")
    assert middle and all(each.text == f"Section: stem\n\n```py\n{each.text_raw}\n```" for each in middle)
    assert last.text == f"Section: stem\n\n```py\n{last.text_raw}" and last.text_raw.endswith("39 of it\n```")
    assert all("`" not in each.text_raw for each in middle)
    assert all(each.token_count == words(each.text) <= 60 for each in (first, *middle, last))


def test_a_line_without_end_in_a_fence_is_within_it_too() -> None:
    found = chunks(f"- ~~~json\n  {para(300)}\n  ~~~\n", max_tokens=100, overlap=0)
    pieces = [each for each in found if each.line_start == 2]
    assert len(pieces) > 2
    assert all(each.text == f"Section: stem\n\n~~~json\n{each.text_raw}\n~~~" for each in pieces)


def test_a_fence_whose_language_is_a_novel_is_repeated_without_it() -> None:
    text = "\n".join([f"``` {para(50)}", *(f"line {number} of it" for number in range(40)), "```"])
    found = chunks(text, max_tokens=100, overlap=0)
    assert all(each.token_count <= 100 for each in found)
    assert found[1].text == f"Section: stem\n\n```\n{found[1].text_raw}\n```"


def test_the_overlap_is_whole_lines_of_the_chunk_before() -> None:
    lines = [para(9, f"l{number}") for number in range(30)]
    found = chunks("\n".join(lines), max_tokens=80, overlap=20)
    assert places(found)[:3] == [(1, 8), (7, 14), (13, 20)]
    assert all(each.token_count <= 80 for each in found)


def test_a_block_is_not_torn_for_the_sake_of_the_overlap() -> None:
    text = "\n".join([*[para(10)] * 5, "", *[para(10)] * 7])
    assert places(chunks(text, max_tokens=80, overlap=30)) == [(1, 5), (7, 13)]


def test_what_is_short_joins_a_neighbour_of_its_section() -> None:
    lines = [para(10, "word")] * 15
    # The last line alone would be "Yes.", which takes a line from the chunk before.
    found = chunks("\n".join([*lines, "Yes."]), max_tokens=152, overlap=0, min_chars=40, crumb=False)
    assert places(found) == [(1, 14), (15, 16)]
    text = f"# Heading\n\n{para(60)}\n{para(60)}\n"
    # A heading is not left alone before a paragraph that can be divided.
    assert places(chunks(text, max_tokens=125, overlap=0)) == [(1, 3), (4, 4)]


def test_a_heading_stands_alone_before_what_is_not_to_be_torn() -> None:
    code = "\n".join(["```", *[para(10)] * 10, "```"])
    assert places(chunks(f"# H\n\n{code}\n", max_tokens=107, overlap=0)) == [(1, 1), (3, 14)]


def test_no_chunk_goes_across_a_heading() -> None:
    assert places(chunks("# A\nx\n# B\ny\n")) == [(1, 2), (3, 4)]


@pytest.mark.parametrize("headings", [1, 6])
def test_a_heading_without_end_leaves_room_for_the_text(headings: int) -> None:
    text = "\n".join(f"{'#' * level} {para(400, f'h{level}')}" for level in range(1, headings + 1))
    found = chunks(f"{text}\n\n{para(300)}\n", max_tokens=100)
    assert all(each.token_count <= 100 and each.text.startswith("Section: ") for each in found)
    assert sum(each.text_raw.count("w") for each in found) >= 300


def test_outer_headings_go_before_the_inner_one() -> None:
    text = f"# {para(40, 'outer')}\n## inner\n{para(40)}\n"
    assert chunks(text, max_tokens=64)[-1].text.startswith("Section: … > inner\n\n## inner\n")


def test_a_file_of_front_matter_alone_has_no_chunk() -> None:
    assert chunks("---\ntitle: X\n---\n") == [] and chunks("") == [] and chunks("\n \n") == []


def test_editing_one_section_leaves_the_chunks_of_the_others_as_they_were() -> None:
    before, after = chunks("# A\nx\n# B\ny\n"), chunks("# A\nx changed\n# B\ny\n")
    assert before[1] == after[1]


def test_a_section_that_fits_is_counted_once_and_none_is_counted_often() -> None:
    asked: list[int] = []

    def count(text: str) -> int:
        asked.append(len(text))
        return words(text)

    small = parse("".join(f"# H{number}\n\n{para(50)}\n\n" for number in range(100)))
    chunk(small, "s", count, ChunkOptions())
    assert sum(asked) < 1.3 * sum(len(line) for line in small.lines) + 2000
    asked.clear()
    large = parse("\n\n".join([para(90, f"n{number}") for number in range(500)]))
    chunk(large, "s", count, ChunkOptions())
    assert sum(asked) < 3.5 * sum(len(line) for line in large.lines)


def test_a_word_without_end_is_not_one_chunk_though_it_is_one_token() -> None:
    def count(text: str) -> int:
        return 2 + len(text.split())

    found = chunk(parse(f"![](data:image/png;base64,{'A' * 1_000_000})\n\ntext\n"), "s", count, ChunkOptions())
    assert max(len(each.text) for each in found) <= 33 * 512
    assert 60 <= len(found) <= 90


@pytest.mark.parametrize("line", ["word " * 3000, "word\n" * 3000])
def test_chunks_repeat_no_more_than_they_add(line: str) -> None:
    found = chunks(f"# {para(40, 'h')}\n\n{line}", max_tokens=100, overlap=99)
    assert sum(len(each.text_raw.split()) for each in found) < 2.5 * 3000


FRONT = "---\ntitle: The sailing  club\ntags: [harbour, phone]\naliases: [Boat people, SC]\n---\n"
ABOUT = "\nTitle: The sailing club\nTags: harbour, phone\nAliases: Boat people, SC\n\n"


@pytest.mark.parametrize(
    ("body", "crumb"), [("Call Ada.", "stem"), ("# Numbers\n\nCall Ada.\n\n## B\n\ntext", "Numbers")]
)
def test_what_the_front_matter_says_is_found_with_the_first_section_and_is_in_the_text_alone(
    body: str, crumb: str
) -> None:
    first, *others = chunks(FRONT + body)
    assert first.text == f"Section: {crumb}{ABOUT}{first.text_raw}" and first.text_raw.endswith("Call Ada.")
    assert all("sailing" not in each.text for each in others)
    assert chunks(FRONT + body, crumb=False)[0].text == first.text_raw


def test_front_matter_without_end_leaves_room_for_the_text() -> None:
    many = ", ".join(f"tag{number}" for number in range(500))
    (found,) = chunks(f"---\ntitle: Short\ntags: [{many}]\n---\nCall Ada.", max_tokens=64)
    assert found.text == "Section: stem\nTitle: Short\n\nCall Ada." and found.token_count <= 64


@pytest.mark.parametrize(
    "text",
    [
        "." * 400_000,
        "a " + "!" * 400_000,
        "." + ")" * 400_000,
        "。" * 100_000 + "」" * 100_000,
        " " * 400_000 + "x",
        "# " + "h" * 100_000 + "\n\n" + "## si\n\nx\n\n" * 5_000,
        "#" * 400_000,
        "[" * 100_000 + "x",
        "`" * 100_000 + "\nx",
        "> " * 2_000 + "x",
        "---\n" + "a: b\n" * 20_000 + "---\nx",
    ],
    ids=["dots", "marks", "closing", "cjk", "blanks", "headings", "hashes", "brackets", "ticks", "quotes", "front"],
)
def test_what_is_long_and_monotonous_takes_no_longer_than_prose(text: str) -> None:
    assert chunks(text)  # with a step that grows with the square this would not end within the hour
