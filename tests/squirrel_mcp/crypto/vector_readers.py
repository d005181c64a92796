"""One function per vector file: does with a case what a client would, returns the result or raises the error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from squirrel_mcp.crypto import envelope, pin, recovery, wrap
from squirrel_mcp.crypto.envelope import Context
from squirrel_mcp.crypto.key_set import KeyRing, KeySet
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.padding import unpad
from squirrel_mcp.crypto.verifier import LogItem, LogVerifier
from squirrel_mcp.errors import RecordDamaged, SquirrelError
from squirrel_mcp.memory import Memory, from_json
from squirrel_mcp.sync.pins import check_ring, refuse_downgrade
from tests.vectors.making.files import Case, cases, load, unpack

MEMORY_ID = "5c" * 16


def outcome(call: Callable[[], object]) -> str:
    """`ok`, or the stable code of the error."""
    try:
        call()
    except SquirrelError as error:
        return error.code
    return "ok"


def simple(name: str) -> list[Case]:
    """The cases of a file that stand for themselves."""
    return [case for case in cases(name) if "mutation" not in case]


def flips(name: str, field: str) -> Iterator[tuple[int, str, Case]]:
    """Every single-bit variant of the file's `flip_every_bit` cases: bit number, expected code, case."""
    for case in cases(name):
        if case.get("mutation") == "flip_every_bit":
            raw = unpack(case[field])
            for bit in range(8 * len(raw)):
                changed = bytearray(raw)
                changed[bit // 8] ^= 0x80 >> bit % 8
                expect = next(code for low, high, code in case["expectByRange"] if low <= bit // 8 < high)
                yield bit, expect, case | {field: changed.hex(), "expect": expect}


def read_wrap(case: Case) -> wrap.Wrap | Dek:
    parsed = wrap.parse(unpack(case["wrap"]))
    return parsed if case["step"] == "parse" else wrap.open_wrap(parsed, _secret(case))


def read_recovery(case: Case) -> bytes:
    return recovery.from_code(case["code"])


def read_key_set(case: Case) -> KeySet | KeyRing:
    parsed = _key_set(case)
    if case["step"] == "parse":
        return parsed
    return parsed.open(_secret(case)) if "recovery" in case else parsed.open_with(Dek(unpack(case["dek"])))


def read_padding(case: Case) -> bytes:
    payload = unpad(unpack(case["plaintext"]))
    if payload is None:
        raise RecordDamaged(MEMORY_ID)
    return payload


def read_record(case: Case) -> bytes:
    payload = envelope.open_record(Dek(unpack(case["dek"])), context(case), unpack(case["record"]))
    if payload is None:
        raise RecordDamaged(case["memoryId"])
    return payload


def context(case: Case) -> Context:
    return Context(unpack(case["accountId"]), unpack(case["memoryId"]), case["revision"], case["type"])


def read_memory_json(case: Case) -> Memory:
    return from_json(unpack(case["payload"]), MEMORY_ID, 1)


def read_log(case: Case) -> LogVerifier:
    verifier = log_verifier(case)
    follow(verifier, case)
    return verifier


def log_verifier(case: Case) -> LogVerifier:
    keys = _LOG["keySets"][case["keys"]]
    key_set = _key_set(keys)
    ring = key_set.open_with(Dek(unpack(keys["dek"])))
    return LogVerifier(key_set.account_id, key_set, ring, _head(case["pinned"]) if case["pinned"] else None)


def follow(verifier: LogVerifier, case: Case) -> None:
    verifier.expect(_head(case["accountHead"]))
    for page in case["pages"]:
        verifier.page([_item(*names) for names in page["items"]], _head(page["head"]), more=page["more"])
    verifier.finish()


def read_pin(case: Case) -> pin.SealedPin:
    sealed = pin.decode(unpack(case["pin"]))
    if case["step"] == "read":
        sealed.check([Dek(unpack(dek)) for dek in case["deks"]])
        return sealed
    # What sync/pins.py does with a reply, once it has found the pin of that account.
    served = _key_set(case)
    refuse_downgrade(sealed.pin.key_set, served)
    check_ring(sealed, served.open_with(Dek(unpack(case["dek"]))))
    return sealed


READERS: dict[str, Callable[[Case], object]] = {
    "wrap.json": read_wrap,
    "recovery.json": read_recovery,
    "key_set.json": read_key_set,
    "padding.json": read_padding,
    "record.json": read_record,
    "memory_json.json": read_memory_json,
    "log.json": read_log,
    "pin.json": read_pin,
}

_LOG = load("log.json")


def _secret(case: Case) -> wrap.Secret:
    passphrase: str | None = case.get("passphrase")
    return unpack(case["recovery"]) if passphrase is None else passphrase


def _key_set(fields: dict[str, Any]) -> KeySet:
    previous = fields["previousKeys"]
    return KeySet.parse(
        [unpack(raw) for raw in fields["wraps"]],
        None if previous is None else unpack(previous),
        unpack(fields["accountId"]),
    )


def _head(written: dict[str, Any]) -> Head:
    return Head(written["seq"], bytes.fromhex(written["mac"]))


def _item(entry: str, content: str | None) -> LogItem:
    stored = None if content is None else bytes.fromhex(_LOG["objects"][content])
    return bytes.fromhex(_LOG["entries"][entry]), stored
