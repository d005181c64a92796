"""Counting by words equals the tokenizer's own count."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sqmd.ingest.token_counts import WordCounts
from tests.real_model import real_model
from tests.sqmd.ingest.markdown import any_markdown


def test_it_is_the_count_of_the_real_tokenizer_for_any_text() -> None:
    with real_model() as embedder:
        count = WordCounts(embedder.count_tokens)

        @given(st.one_of(any_markdown, st.text(), st.text("a\x1c\x85\u00a0\u2028\u200d\0\ud800\t\n\r [SEP]é\u0301한")))
        def equal(text: str) -> None:
            assert count(text) == embedder.count_tokens(text)

        equal()
        assert count("x " * 5000 + "y" * 5000) == embedder.count_tokens("x " * 5000 + "y" * 5000)


def test_a_word_is_counted_once() -> None:
    asked: list[str] = []

    def count_tokens(text: str) -> int:
        asked.append(text)
        return 2 + len(text)

    count = WordCounts(count_tokens)
    assert count("ab  c\nab\tab") == 2 + 2 + 1 + 2 + 2
    assert count("c ab") == 5
    assert asked == ["", "ab", "c"]
