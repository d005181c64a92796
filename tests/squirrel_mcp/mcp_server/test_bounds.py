"""What does not fit is cut with a mark, and said."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.escaping import escape
from squirrel_mcp.mcp_server.bounds import cut, fit, size


def item(text: str, **fields: Any) -> dict[str, Any]:
    return {"id": "0" * 32, "text": text, "tags": [], "keywords": [], **fields}


def total(items: list[dict[str, Any]]) -> int:
    return len(json.dumps(items, ensure_ascii=False, separators=(",", ":")).encode())


def test_what_fits_is_left_alone() -> None:
    items = [item("a"), item("b")]
    assert fit(items, 1_000) == (items, False)


def test_short_texts_stay_whole_and_long_ones_share_the_rest() -> None:
    items = [item("short"), item("x" * 16_000), item("y" * 16_000)]
    shown, short = fit(items, 10_000)
    assert short
    assert shown[0]["text"] == "short"
    assert len(shown[1]["text"]) == len(shown[2]["text"]) > 4_000
    assert shown[1]["text"].endswith("[…cut, 16,000 characters in all]")
    assert total(shown) <= 10_000


def test_a_page_of_too_many_ends_early() -> None:
    shown, short = fit([item("text " * 100)] * 50, 5_000)
    assert short
    assert 0 < len(shown) < 50
    assert all(len(each["text"]) > 50 for each in shown)


def test_the_largest_memory_that_can_be_stored_fits_alone() -> None:
    hostile = escape("\U000e0041")
    largest = item(
        hostile * 16_000,
        entity=hostile * 200,
        source=hostile * 200,
        category=hostile * 64,
        tags=[hostile * 64] * 32,
        keywords=[hostile * 64] * 64,
    )
    shown, short = fit([largest] * 3, 23_500)
    assert short and shown
    assert total(shown) <= 23_500


texts = st.one_of(st.text(max_size=300), st.integers(0, 20_000).map(lambda n: "ab\u202e😀"[n % 4] * n))


@given(st.lists(texts, min_size=1, max_size=50), st.integers(3_000, 30_000))
def test_it_always_fits(values: list[str], room: int) -> None:
    items = [item(escape(value)) for value in values]
    shown, short = fit(items, room)
    assert shown and total(shown) <= room + 2  # the brackets
    assert short == (shown != items)
    assert [each["id"] for each in shown] == [each["id"] for each in items[: len(shown)]]


@given(st.text(max_size=400), st.integers(100, 300))
def test_a_cut_text_begins_as_the_whole_does(text: str, room: int) -> None:
    shown = cut(text, room)
    assert size(shown) <= room
    assert shown == text or text.startswith(shown[: shown.rindex(" […cut")])


@pytest.mark.parametrize("text", ["e\u0301" * 200, "👩\u200d💻" * 200, escape("\u202e" * 200)])
def test_a_cut_splits_neither_a_letter_nor_an_escape(text: str) -> None:
    for room in range(100, 140):
        begun = cut(text, room)
        begun = begun[: begun.rindex(" […cut")]
        rest = text[len(begun) :]
        assert not rest.startswith(("\u0301", "\u200d"))
        assert begun.count("{") == begun.count("}")
