from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.search.words import Word, words
from tests.squirrel_mcp.search.samples import texts


def taken_apart(text: str) -> dict[str, tuple[str, ...]]:
    return {word.whole: word.parts for word in words(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Pi-hole", {"pihole": ("pi", "hole")}),
        ("refreshAuthToken", {"refreshauthtoken": ("refresh", "auth", "token")}),
        ("XMLHttpRequest2", {"xmlhttprequest2": ("xml", "http", "request", "2")}),
        ("PDFs iOS IPv6", {"pdfs": ("pd", "fs"), "ios": ("i", "os"), "ipv6": ("i", "pv", "6")}),
        ("aB Ab AB ab", {"ab": ()}),
        ("x\u0302Y", {"xy": ("x", "y")}),
        ("A1b2", {"a1b2": ("a", "1", "b", "2")}),
        ("snake_case-mix.py", {"snake_casemix.py": ("snake", "case", "mix", "py")}),
        ("2.14.0", {"2.14.0": ()}),
        ("v2.14.0-rc1", {"v2.14.0rc1": ("v", "2.14.0", "rc", "1")}),
        ("1.2/3.4:5", {"1.2/3.4:5": ("1.2", "3.4", "5")}),
        ("1-2.3.x.4", {"12.3.x.4": ("1", "2.3", "x", "4")}),
        ("٣.١٤", {"٣.١٤": ()}),
        ("https://a.example.org/b#c", {"https://a.example.org/b#c": ("https", "a", "example", "org", "b", "c")}),
        ("c:\\b\\d c:\\\\b\\\\d", {"c:/b/d": ("c", "b", "d"), "c://b": ("c", "b"), "d": ()}),
        ("a:/b a:://b", {"a:/b": ("a", "b"), "a": (), "b": ()}),
        ("file:///etc/hosts", {"file": (), "etc/hosts": ("etc", "hosts")}),
        ("a--b c_-d e..f", dict.fromkeys("abcdef", ())),
        ("a–b c—d e―f g‒h", {**dict.fromkeys("abcdef", ()), "gh": ("g", "h")}),
        (
            "can't l'eau d'être we've I'm",
            {"cant": ("can",), "leau": ("eau",), "detre": ("etre",), "weve": (), "im": ()},
        ),
        ("rock'n'roll o'clock's", {"rocknroll": ("rock", "roll"), "oclock": ("clock",)}),
        ("5'11", {"511": ("5", "11")}),
        ("Mira's MIRA’S mira's-", {"mira": ()}),
        ("Mira's-house", {"mirashouse": ("mira", "house")}),
        ("'s", {"s": ()}),
        ("C++ c# F# (.NET)", {"c++": (), "c#": (), "f#": (), ".net": ()}),
        ("c#7 c++17 C/C++", {"c#7": ("c", "7"), "c++": (), "17": (), "c/c++": ("c", "c++")}),
        ("C++/C#", {"c++": (), "c#": ()}),
        ("C#.NET C++'s", {"c#": (), ".net": (), "c++": ()}),
        ("ASP.NET .network x.net", {"asp.net": ("asp", "net"), "network": (), "x.net": ("x", "net")}),
        (".net8 .NET-core", {".net8": (".net", "8"), ".netcore": (".net", "core")}),
        ("1# 2++ + # ++", {"1": (), "2": ()}),
        ("東京's Tower", {"東京": ("東", "京"), "tower": ()}),
        ("ag\u0301Ed", {"aged": ("ag", "ed")}),
    ],
)
def test_texts_are_taken_apart_as_the_rules_say(text: str, expected: dict[str, tuple[str, ...]]) -> None:
    assert taken_apart(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("绿茶", ["绿茶"]),
        ("喝绿茶", ["喝绿", "绿茶"]),
        ("茶", ["茶"]),
        ("毎朝6時", ["毎朝", "6", "時"]),
        ("新しいPythonプロ", ["新し", "しい", "python", "プロ", "ロ"][:-1]),
        ("東京タワー", ["東京", "京タ", "タワ", "ワー"]),
        ("ﾌﾟﾛ", ["プロ"]),
        ("か\u3099く", ["がく"]),
        ("か\u309aく", ["か\u309a", "\u309aく"]),
        ("ห้อง๑๒", ["ห้", "้อ", "อง", "๑๒"]),
        ("〇〆々", ["〇〆", "〆々"]),
        ("東京-大阪", ["東京", "大阪"]),
        ("東京/osaka_x", ["東京", "osaka_x"]),
        ("𠮷田", ["𠮷田"]),
        ("\u0e49", []),
        ("한국어 공부", ["한국어", "공부"]),
    ],
)
def test_runs_without_spaces_give_pairs(text: str, expected: list[str]) -> None:
    assert [word.whole for word in words(text)] == expected


def test_a_pair_has_its_letters_for_parts_and_no_marks() -> None:
    assert list(words("ข้า")) == [
        Word("ข้", ("ข",), frozenset(), True),
        Word("้า", ("า",), frozenset(), True),
    ]


def test_words_spelled_with_an_accent_are_told() -> None:
    found = {word.whole: word.accented for word in words("ăn an l'À do-à Straße Мой")}
    assert found["la"] == {"la"}  # beside the apostrophe the letter itself is no part
    assert found["doa"] == {"doa", "a"}
    assert not found["strasse"] and not found["мой"]
    assert [bool(word.accented) for word in words("ăn an")] == [True, False]


@given(texts)
def test_composed_and_decomposed_text_have_the_same_words(text: str) -> None:
    assert list(words(unicodedata.normalize("NFD", text))) == list(words(unicodedata.normalize("NFC", text)))


@given(texts)
def test_no_rule_reaches_across_white_space(text: str) -> None:
    assert [word for chunk in text.split() for word in words(chunk)] == list(words(text))


@given(st.one_of(texts, st.text()))
def test_every_word_holds_a_letter_or_digit_and_has_distinct_parts(text: str) -> None:
    for word in words(text):
        # A pair may be of two marks, inside a run that holds a letter.
        assert word.unspaced or any(unicodedata.category(char)[0] in "LN" for char in word.whole)
        assert len(set(word.parts)) == len(word.parts)
        assert all(word.parts)
        assert word.accented <= {word.whole, *word.parts}


@pytest.mark.parametrize(
    "text",
    [
        "a" * 200_000,
        "aB" * 100_000,
        "a." * 100_000,
        "a'" * 100_000,
        "1." * 100_000,
        "a:" * 50_000 + "://" * 50_000,
        "c+" * 100_000,
        "c#" * 100_000,
        "\u0301" * 200_000,
        "A\u0301" * 100_000,
        "茶" * 200_000,
        ".net" * 50_000,
        "\ud800" * 200_000,
    ],
    ids=lambda text: repr(text[:4]),
)
def test_long_texts_without_white_space_end(text: str) -> None:
    assert sum(1 for _ in words(text)) <= len(text)
