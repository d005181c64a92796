"""Cutting one line that is too long for a chunk."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqmd.ingest.long_line import Budget, cut_line
from tests.sqmd.ingest.markdown import characters, uneven, words

COUNTERS = (words, characters, uneven)
lines = st.lists(
    st.sampled_from(["fox ", "It ends here. ", "日本語。", "漢" * 30, "a" * 50, "e\u0301", "  ", "x\u200dy", "(so?) "]),
    min_size=1,
    max_size=60,
).map("".join)


def budget(
    count: Callable[[str], int], limit: int, overlap: int = 0, least: int = 0, around: str = "A > B\n"
) -> Budget:
    return Budget(lambda part: count(around + part), lambda part: count(part) - count(""), limit, overlap, least)


@pytest.mark.parametrize("count", COUNTERS)
@given(line=st.one_of(lines, st.text()), limit=st.integers(16, 60), share=st.integers(0, 2), least=st.integers(0, 60))
def test_pieces_are_within_the_limit_go_forward_and_leave_nothing_out(
    count: Callable[[str], int], line: str, limit: int, share: int, least: int
) -> None:
    line = line.replace("\n", " ")
    overlap = share * limit // 4
    pieces = cut_line(line, budget(count, limit, overlap, least))
    done = before = 0
    for number, (start, end) in enumerate(pieces):
        assert start < end and line[start:end].strip()
        assert count("A > B\n" + line[start:end]) <= limit
        assert not line[done:start].strip()
        if number:
            assert start > before and end > done
            assert count(line[start:done]) - count("") <= overlap
        before, done = start, end
    assert not line[done:].strip()


def texts(line: str, chosen: Budget) -> list[str]:
    return [line[start:end] for start, end in cut_line(line, chosen)]


def test_sentences_are_kept_whole_where_they_fit() -> None:
    line = "One two three. Four five six! Seven eight nine? Ten eleven twelve."
    assert texts(line, budget(words, 9, around="")) == [
        "One two three. Four five six!",
        "Seven eight nine? Ten eleven twelve.",
    ]


def test_words_are_kept_whole_where_a_sentence_does_not_fit() -> None:
    line = " ".join(["word"] * 100)
    pieces = texts(line, budget(words, 12, around=""))
    assert all(set(piece.split()) == {"word"} for piece in pieces) and 10 <= len(pieces) <= 12


def test_characters_are_all_that_is_left_in_a_word_without_end() -> None:
    pieces = texts("漢字" * 500, budget(characters, 102, around=""))
    assert "".join(pieces) == "漢字" * 500 and 10 <= len(pieces) <= 12


def test_a_mark_stays_with_its_letter() -> None:
    assert not [piece for piece in texts("e\u0301" * 200, budget(characters, 23)) if piece.startswith("\u0301")]


def test_the_overlap_is_whole_words_and_what_went_before() -> None:
    line = " ".join(f"w{number}" for number in range(100))
    pieces = texts(line, budget(words, 22, 5, around=""))
    for before, after in pairwise(pieces):
        shared = after.split()[: after.split().index(before.split()[-1]) + 1]
        assert 1 <= len(shared) <= 5 and before.split()[-len(shared) :] == shared


def test_a_long_line_takes_few_counts() -> None:
    asked: list[int] = []

    def count(text: str) -> int:
        asked.append(len(text))
        return words(text)

    line = "Some words of a sentence that goes on. " * 5000
    pieces = cut_line(line, budget(count, 512, 64, 50))
    assert sum(asked) < 6 * len(line) and len(asked) < 8 * len(pieces)
