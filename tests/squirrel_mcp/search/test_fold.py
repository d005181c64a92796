from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.search.fold import accented, clean, fold, label
from tests.squirrel_mcp.search.samples import texts


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("CRÈME BRÛLÉE", "creme brulee"),
        ("Øø Łł Đđ Ħħ Ŧŧ Ƶƶ Ɨɨ Ⱥⱥ", "oo ll dd hh tt zz ii aa"),
        ("ı İ I", "i i i"),
        ("Æ Œ Þ Ð ß ẞ ﬁ ĳ Ǽ Ǿ", "ae oe th d ss ss fi ij ae o"),
        ("phở Tiếng Việt", "pho tieng viet"),
        ("Мой Ёж", "мой ёж"),
        ("Ά ΐ ᾳ ς", "ά ΐ αι σ"),
        ("が ガ 각", "が ガ 각"),
    ],
)
def test_case_goes_everywhere_and_accents_on_latin_letters(text: str, folded: str) -> None:
    assert fold(clean(text)) == folded


@pytest.mark.parametrize(
    "nothing", ["\u00ad", "\u200b", "\u200d", "\ufeff", "\u202e", "\ufe0f", "\U000e0101", "\u034f"]
)
def test_what_nobody_sees_is_removed(nothing: str) -> None:
    assert clean(f"pass{nothing}port") == "passport"
    assert clean(f"cafe{nothing}\u0301") == "café"


def test_stacked_marks_on_a_latin_letter_all_go() -> None:
    assert fold(clean("a\u0301\u0323\u0489b")) == "ab"


def test_the_mark_of_another_script_stays_beside_latin() -> None:
    assert fold(clean("eи\u0306e\u0306")) == "eйe"


@given(st.one_of(texts, st.text()))
def test_composed_and_decomposed_text_fold_alike(text: str) -> None:
    forms = {fold(clean(unicodedata.normalize(form, text))) for form in ("NFC", "NFD")} | {fold(clean(text))}
    assert len(forms) == 1


@given(st.one_of(texts, st.text()))
def test_folding_twice_changes_nothing(text: str) -> None:
    once = fold(clean(text))
    assert fold(once) == once
    assert clean(clean(text)) == clean(text)


def test_every_letter_a_to_z_loses_its_accents_and_strokes() -> None:
    left = []
    for code in (*range(0xC0, 0x250), *range(0x1E00, 0x1F00), *range(0x2C60, 0x2C80), *range(0xA720, 0xA7CA)):
        named = re.match("LATIN (?:SMALL|CAPITAL) LETTER ([A-Z])(?: WITH (.*))?$", unicodedata.name(chr(code), ""))
        composed = len(unicodedata.normalize("NFD", chr(code))) > 1
        folds = named and (composed or re.search(r"STROKE\b", named[2] or ""))
        if named and folds and fold(clean(chr(code))) != named[1].lower():
            left.append(chr(code))
    assert not left


@pytest.mark.parametrize(
    ("word", "is_accented"), [("ăn", True), ("Łódź", True), ("an", False), ("ẞ", False), ("мой", False), ("ÀN", True)]
)
def test_an_accent_is_what_folding_takes_beyond_case(word: str, is_accented: bool) -> None:
    assert accented(clean(word)) is is_accented


def test_labels_are_compared_without_case_but_with_accents() -> None:
    assert label(" ÉCOLE ") == label("e\u0301cole") != label("ecole")
    assert label("Straße") == label("STRASSE")


def test_lone_surrogates_and_unassigned_code_points_pass() -> None:
    assert fold(clean("A\ud800É\U000e1000")) == "a\ud800e\U000e1000"
