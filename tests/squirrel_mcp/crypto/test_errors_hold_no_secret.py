"""Every failure of every vector, and what can be reached from its exception."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from squirrel_mcp.crypto import envelope, kdf, wrap
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.errors import SquirrelError
from tests.squirrel_mcp.crypto.log_simulator import CHEAPEST
from tests.squirrel_mcp.crypto.secrets_walk import spilled
from tests.squirrel_mcp.crypto.vector_readers import READERS, flips, simple
from tests.vectors.making import records, wraps
from tests.vectors.making.files import Case, load, unpack

pytestmark = pytest.mark.usefixtures("free_kdf")

SECRET_FIELDS = ("passphrase", "recovery", "code", "dek", "plaintext", "payload", "kek")


def secrets_of(case: Case) -> list[str | bytes]:
    """What the case knows that no error may."""
    known: list[str | bytes] = [
        wraps.DEK.secret(),
        wraps.PASSPHRASE,
        wraps.RECOVERY,
        records.DEK.secret(),
        records.PAYLOAD,
    ]
    for name in SECRET_FIELDS:
        value: Any = case.get(name)
        if isinstance(value, str) and len(value) > 4:
            known.append(value)
            if name not in ("passphrase", "code"):
                known.append(bytes.fromhex(value))
        elif isinstance(value, list):
            known.append(unpack(value)[:64])
    known += [bytes.fromhex(dek) for dek in case.get("deks", [])]
    return known


def failures() -> Iterator[tuple[str, Case]]:
    for name in READERS:
        for case in simple(name):
            if case["expect"] != "ok" and (name != "padding.json" or "plaintext" in case):
                yield name, case


@pytest.mark.parametrize(("name", "case"), [pytest.param(n, c, id=f"{n[:-5]}-{c['name']}") for n, c in failures()])
def test_no_failure_of_a_vector_holds_a_secret(name: str, case: Case) -> None:
    secrets = secrets_of(case)
    if name == "log.json":
        secrets += [bytes.fromhex(keys["dek"]) for keys in load("log.json")["keySets"].values()]
    try:
        READERS[name](case)
    except SquirrelError as error:
        assert spilled(error, secrets) == []


@pytest.mark.parametrize(("name", "field"), [("wrap.json", "wrap"), ("record.json", "record"), ("pin.json", "pin")])
def test_no_flipped_bit_makes_an_error_hold_a_secret(name: str, field: str) -> None:
    for bit, _, case in flips(name, field):
        if bit % 61 == 0:  # a prime, so that every bit of a byte and every field has its turn
            try:
                READERS[name](case)
            except SquirrelError as error:
                assert spilled(error, secrets_of(case)) == []


@pytest.mark.parametrize("passphrase", ["${CANARY_PASSPHRASE}", "canary passphrase \ud800", "canary12345"], ids=ascii)
def test_a_refused_passphrase_is_not_in_the_error(passphrase: str) -> None:
    with pytest.raises(SquirrelError) as caught:
        kdf.check_new(passphrase)
    assert spilled(caught.value, [passphrase, "canary", "CANARY"]) == []


def test_a_wrong_passphrase_is_not_in_the_error() -> None:
    raw = wrap.seal(Dek(b"d" * 32), "canary passphrase", account_id=bytes(16), generation=1, parameters=CHEAPEST)
    with pytest.raises(SquirrelError) as caught:
        wrap.open_wrap(wrap.parse(raw), "canary guess")
    assert spilled(caught.value, ["canary", b"d" * 32]) == []


def test_a_programming_error_holds_no_secret_either() -> None:
    with pytest.raises(ValueError, match="32 bytes") as caught:
        Dek(b"canary")
    assert spilled(caught.value, [b"canary"]) == []
    with pytest.raises(ValueError, match="fit") as caught:
        envelope.seal(Dek(b"d" * 32), envelope.Context(bytes(16), bytes(16), 1), b"canary" * 20_000)
    assert spilled(caught.value, [b"canary", b"d" * 32]) == []


def test_the_search_itself_finds_what_hangs_on_an_exception() -> None:
    try:
        try:
            "canary \ud800".encode()
        except UnicodeEncodeError as error:
            raise RuntimeError("hidden") from error
    except RuntimeError as outer:
        assert spilled(outer, ["canary"])
    noted = ValueError(b"\0canary")
    noted.add_note("canary")
    assert spilled(noted, [b"canary"]) and spilled(noted, ["canary"])
    assert spilled(ValueError("nothing"), ["canary"]) == []
