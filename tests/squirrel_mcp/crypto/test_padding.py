from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.crypto.padding import pad, padded_size, padme, unpad
from tests.squirrel_mcp.crypto.vector_readers import outcome, read_padding
from tests.vectors.making.files import Case, cases

LARGEST = 63_484


@pytest.mark.parametrize("case", cases("padding.json"), ids=lambda case: case["name"])
def test_padding_is_exactly_what_the_vector_says(case: Case) -> None:
    if case["expect"] == "ok":
        plaintext = pad(b"p" * case["payloadBytes"])
        assert len(plaintext) == case["paddedBytes"]
        assert read_padding({"plaintext": plaintext.hex()}) == b"p" * case["payloadBytes"]
    else:
        assert outcome(lambda: read_padding(case)) == case["expect"]


@given(length=st.integers(1, 2**40))
def test_padme_is_the_published_formula(length: int) -> None:
    # Nikitin et al. 2019, algorithm 1. A logarithm in floating point is exact enough up to 2**40.
    exponent = math.floor(math.log2(length))
    low_bits = exponent - (math.floor(math.log2(exponent)) + 1) if exponent else 0
    mask = (1 << low_bits) - 1
    assert padme(length) == (length + mask) & ~mask


@given(length=st.integers(1, 2**40))
def test_padme_adds_at_most_12_percent_and_is_idempotent(length: int) -> None:
    padded = padme(length)
    assert length <= padded <= length * 1.12
    assert padme(padded) == padded


def test_sizes_never_shrink_and_there_are_few_of_them() -> None:
    sizes = [padded_size(length) for length in range(LARGEST + 1)]
    assert sizes == sorted(sizes)
    assert min(sizes) == 256 and max(sizes) == 63_488
    assert len(set(sizes)) == 128  # 16 with each doubling from 256 bytes on


@given(one=st.integers(0, LARGEST), other=st.integers(0, LARGEST))
def test_the_size_tells_the_bucket_and_nothing_else(one: int, other: int) -> None:
    same_bucket = padded_size(one) == padded_size(other)
    assert (len(pad(b"a" * one)) == len(pad(b"b" * other))) == same_bucket


@given(payload=st.binary(max_size=5_000))
def test_what_was_padded_comes_back(payload: bytes) -> None:
    plaintext = pad(payload)
    assert unpad(plaintext) == payload
    assert len(plaintext) == padded_size(len(payload))


@given(payload=st.binary(max_size=600), data=st.data())
def test_only_the_exact_padding_is_read(payload: bytes, data: st.DataObject) -> None:
    plaintext = pad(payload)
    size = data.draw(st.integers(0, 2 * len(plaintext)))
    if size != len(plaintext):
        assert unpad(plaintext[:size].ljust(size, b"\0")) is None
    if len(plaintext) > 4 + len(payload):
        at = data.draw(st.integers(4 + len(payload), len(plaintext) - 1))
        assert unpad(plaintext[:at] + data.draw(st.sampled_from([b"\1", b"\x80"])) + plaintext[at + 1 :]) is None


@given(plaintext=st.binary(max_size=700))
def test_whatever_is_read_is_what_would_have_been_written(plaintext: bytes) -> None:
    payload = unpad(plaintext)
    assert payload is None or pad(payload) == plaintext
