from __future__ import annotations

import random
from collections import defaultdict
from itertools import product

import pytest
import snowballstemmer
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.search.stems import Stems, has_forms

_ENDINGS = (
    "s es ed ing ings ly edly ingly er y ies ied ily ness ful fully fulness less ation ational ate ated ating ize izer "
    "ization ity ive ivity able ably bility al ally ism ment ence ency ant ic ical icate ogy ogist ous ion "
    "ying d ng e eed"
).split()


def filed(vocabulary: set[str]) -> Stems:
    stems = Stems()
    for word in sorted(vocabulary):
        stems.add(word)
    return stems


def families(vocabulary: set[str]) -> dict[str, set[str]]:
    porter2 = snowballstemmer.stemmer("english")
    found: dict[str, set[str]] = defaultdict(set)
    for word in vocabulary:
        if has_forms(word):
            found[porter2.stemWord(word)].add(word)
    return found


def test_forms_are_all_words_of_one_stem_and_only_those() -> None:
    # Which words are looked at rests on what the stemmer may change; every kind of ending is tried on short and
    # long beginnings, because a release of it could change that.
    rng = random.Random(7)
    beginnings = ["".join(letters) for n in (0, 1, 2) for letters in product("aeiosty", repeat=n)]
    beginnings += ["".join(rng.choices("abcdefghilmnoprstuvwyz", k=rng.randint(2, 6))) for _ in range(100)]
    vocabulary = {beginning + ending for beginning in beginnings for ending in _ENDINGS} | set(beginnings)
    vocabulary |= set(
        "die dies died dying lie lying tie tied tying skis skies sky use uses used using user ate".split()
    )
    vocabulary |= set("try tries tried trying fit fitted fitting con cons conned icy ices icing owe owed owing".split())
    stems = filed(vocabulary)
    for family in families(vocabulary).values():
        for word in family:
            assert set(stems.forms(word)) == family - {word}


def test_a_word_that_nobody_holds_has_forms_too() -> None:
    assert filed({"allergies", "pollen"}).forms("allergy") == ["allergies"]


@pytest.mark.parametrize("word", ["go", "mp3", "кошки", "cafés", "pi-hole", "c++", ""])
def test_short_words_and_words_not_in_ascii_letters_have_no_forms(word: str) -> None:
    stems = filed({"going", "goes", "mp", "кошка", "cafes", word})
    assert stems.forms(word) == []


def test_the_stemmer_is_porter2() -> None:
    # The first Porter stemmer makes "gener" of both.
    assert filed({"generous"}).forms("generate") == []


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("try tries trying use used using die dying go".split()))))
def test_words_come_and_go(steps: list[tuple[bool, str]]) -> None:
    stems, vocabulary = Stems(), set[str]()
    for adding, word in steps:
        if adding and word not in vocabulary:
            stems.add(word)
            vocabulary.add(word)
        elif not adding and word in vocabulary:
            stems.remove(word)
            vocabulary.discard(word)
        for asked in ("tried", "use", "dies"):
            assert set(stems.forms(asked)) == {
                other
                for other in vocabulary
                if other != asked and other in families({asked, *vocabulary})[_stem(asked)]
            }


def _stem(word: str) -> str:
    stem: str = snowballstemmer.stemmer("english").stemWord(word)
    return stem


@pytest.mark.parametrize("family", [("ups", "upped", "upping"), ("ims", "immed"), ("fits", "fitted", "fitting")])
def test_forms_with_a_doubled_consonant_are_found_from_each_other(family: tuple[str, ...]) -> None:
    stems = Stems()
    for word in family:
        stems.add(word)
    for word in family:
        assert set(stems.forms(word)) == set(family) - {word}
