from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from squirrel_mcp.crypto.key_set import KeyRing, RetiredKey
from squirrel_mcp.crypto.keys import Dek
from tests.squirrel_mcp.crypto.test_primitives import hkdf_by_hand
from tests.vectors.making.files import Case, cases, unpack

SECRET = b"canary-canary-canary-canary-3210"
DEK = Dek(SECRET)
RING = KeyRing((RetiredKey(DEK, 1, bytes(32)),), Dek(bytes(32)))
PURPOSES = {
    "kid": b"key-id",
    "record": b"record",
    "log": b"log",
    "append": b"append",
    "localState": b"local-state",
    "vectorCache": b"vector-cache",
    "fileName": b"file-name",
}


@pytest.mark.parametrize("case", cases("keys.json"), ids=lambda case: case["name"])
def test_every_purpose_has_the_subkey_of_the_vector(case: Case) -> None:
    dek = Dek(unpack(case["dek"]))
    subkeys = {
        "kid": dek.kid,
        "record": dek.record,
        "log": dek.log,
        "append": dek.append,
        "localState": dek.local_state,
        "vectorCache": dek.vector_cache,
        "fileName": dek.file_name,
    }
    assert {name: value.hex() for name, value in subkeys.items()} == {name: case[name] for name in PURPOSES}
    assert len(set(subkeys.values())) == len(subkeys)
    for name, purpose in PURPOSES.items():
        by_hand = hkdf_by_hand(dek.secret(), b"", b"squirrel/v1/" + purpose, 16 if name == "kid" else 32)
        assert subkeys[name] == by_hand


@pytest.mark.parametrize("shown", [DEK, RING, RING.retired[0]], ids=lambda value: type(value).__name__)
@pytest.mark.parametrize(
    "show", [repr, str, "{}".format, "{0!r:>40}".format, ascii], ids=["repr", "str", "{}", "!r", "ascii"]
)
def test_no_way_of_printing_a_key_shows_it(show: Callable[[Any], str], shown: object) -> None:
    assert DEK.log and DEK.kid  # the cached subkeys are there
    text = show(shown)
    for secret in (SECRET, DEK.log, DEK.record, DEK.append):
        assert secret.hex() not in text and repr(secret)[2:-1] not in text


@pytest.mark.parametrize("value", [DEK, RING], ids=lambda value: type(value).__name__)
def test_a_key_is_neither_pickled_nor_copied(value: object) -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="not pickled"):
            pickle.dumps(value, protocol)
    with pytest.raises(TypeError, match="not pickled"):
        copy.deepcopy(value)
    with pytest.raises(TypeError, match="not pickled"):
        copy.copy(DEK)


def test_asdict_of_what_holds_a_key_fails_rather_than_shows_it() -> None:
    with pytest.raises(TypeError, match="not pickled") as caught:
        dataclasses.asdict(RING)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize("secret", [b"", bytes(16), bytes(31), bytes(33), bytearray(32), "0" * 32, None, 7])
def test_a_key_has_32_bytes(secret: Any) -> None:
    with pytest.raises(ValueError, match="a DEK has 32 bytes"):
        Dek(secret)


def test_two_keys_are_equal_when_their_bytes_are() -> None:
    assert Dek(SECRET) == DEK and hash(Dek(SECRET)) == hash(DEK)
    assert Dek(bytes(32)) != DEK
    assert DEK != SECRET


def test_a_generated_key_is_what_the_source_of_randomness_gave() -> None:
    asked: list[int] = []

    def source(size: int) -> bytes:
        asked.append(size)
        return SECRET[:size]

    assert Dek.generate(source) == DEK and asked == [32]
    assert Dek.generate() != Dek.generate()
