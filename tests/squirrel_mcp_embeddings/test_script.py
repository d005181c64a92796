"""Which texts the model is asked to read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp_embeddings.script import reads


@pytest.mark.parametrize(
    "text",
    [
        "The router is in the attic.",
        "Zażółć gęślą jaźń, naïve œuvre, Ðað er þoka",
        "ｆｕｌｌ ｗｉｄｔｈ, 𝐛𝐨𝐥𝐝 and ﬁne",
        "Ana bought a Ω resistor and μF capacitors",
    ],
)
def test_latin_letters_are_read_however_they_are_written(text: str) -> None:
    assert reads(text)


@pytest.mark.parametrize(
    "text",
    [
        "Η Άννα μένει στην Πάτρα",
        "Анна живёт в Казани",
        "アナは京都に住んでいます",
        "안나는 부산에 산다",
        "आना पुणे में रहती है",
        "أنا",
    ],
)
def test_other_scripts_are_not_read(text: str) -> None:
    assert not reads(text)


@pytest.mark.parametrize("text", ["", "12:30", "!?", "🥐", "\0", "\ud800"])
def test_a_text_without_letters_is_not_kept_from_the_model_for_its_script(text: str) -> None:
    assert reads(text)


def test_the_border_lies_at_thirty_in_a_hundred_letters() -> None:
    assert reads("a" * 70 + "я" * 30)
    assert not reads("a" * 69 + "я" * 31)


def test_decomposed_accents_are_no_letters_of_another_script() -> None:
    assert reads("e\u0301" * 10)


def test_digits_and_spaces_do_not_count() -> None:
    assert not reads("1234567890 " * 10 + "я")


@given(st.text())
def test_order_makes_no_difference(text: str) -> None:
    letters = [char for char in text if char.isascii() or char in "яжщ"]
    assert reads("".join(letters)) == reads("".join(reversed(letters)))
