"""200 characters around what was asked for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sqmd.cli.snippets import LENGTH, snippet


def marked(text: str, query: str) -> str:
    shown = snippet(text, query)
    out, at = "", 0
    for start, end in shown.matches:
        out += f"{shown.text[at:start]}<{shown.text[start:end]}>"
        at = end
    return out + shown.text[at:]


def test_words_are_marked_whatever_their_case_and_also_as_beginnings() -> None:
    assert marked("Teapots\nand TEA; no steam.", "tea a") == "<Tea>pots and <TEA>; no steam."
    assert marked("京都の庭", "庭") == "京都の<庭>" and marked("Über", "über") == "<Über>"


def test_a_long_text_is_cut_to_where_most_of_the_words_are() -> None:
    text = "tea " + "filler " * 100 + "the blue cup of tea " + "filler " * 100
    shown = snippet(text, "blue cup tea")
    assert shown.text.startswith("…") and shown.text.endswith("…") and "the blue cup of tea" in shown.text
    assert len(shown.text) <= LENGTH and len(shown.matches) == 3


def test_without_a_match_it_is_the_beginning() -> None:
    shown = snippet("word " * 100, "zebra")
    assert shown.text.startswith("word word") and shown.text.endswith("…") and shown.matches == []


@given(st.text(), st.text(max_size=20), st.integers(1, 40))
def test_it_is_one_printable_line_of_200_characters_and_matches_lie_in_it(text: str, query: str, times: int) -> None:
    shown = snippet(f"{text} {query} " * times, query)
    assert len(shown.text) <= LENGTH and "\n" not in shown.text and "\x1b" not in shown.text
    assert all(0 <= start < end <= len(shown.text) for start, end in shown.matches)
