"""key_set.json: wraps and previous keys as one account's key set."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any

from squirrel_mcp.crypto import envelope, key_set
from squirrel_mcp.crypto.envelope import Context
from squirrel_mcp.crypto.key_set import KeyRing, KeySet, RetiredKey
from squirrel_mcp.crypto.keys import Dek
from tests.vectors.making.files import Case, case
from tests.vectors.making.seeded import Seeded
from tests.vectors.making.wraps import ACCOUNT_ID, DEK, PASSED, RECOVERED, RECOVERY, Recipe

_RANDOM = Seeded("key_set.json")
RETIRED = tuple(RetiredKey(Dek(_RANDOM(32)), seq, _RANDOM(32)) for seq in (4, 9))
GENERATION = PASSED.generation

# Both slots of one account, made at generation 3; the KDF of slot 1 is paid once for all of these cases.
SLOT_1, SLOT_2 = PASSED.raw(), RECOVERED.raw()
OLDER_SLOT_2 = replace(RECOVERED, generation=1).raw()


def build() -> dict[str, Any]:
    return {
        "about": "Key sets: section 1 of the protocol, `Key set`. `recovery` opens slot 2, which costs nothing.",
        "cases": [*_positive(), *_shapes(), *_previous_keys()],
    }


def items(retired: tuple[RetiredKey, ...] = RETIRED) -> bytes:
    return b"".join(struct.pack(">32sQ32s", key.dek.secret(), key.seq, key.mac) for key in retired)


def previous(payload: bytes, dek: Dek = DEK, **place: Any) -> bytes:
    """A previous-keys object for this payload, wrong in the ways that `place` says."""
    right = Context(ACCOUNT_ID, bytes(16), GENERATION, envelope.PREVIOUS_KEYS)
    return envelope.seal(dek, right._replace(**place), payload, Seeded("previous keys"))


def _positive() -> list[Case]:
    found = []
    for name, wraps, previous_keys, retired, comment in (
        ("one_slot", [SLOT_1], None, (), "A passphrase and nothing else."),
        ("two_slots", [SLOT_1, SLOT_2], None, (), "A passphrase and a recovery code."),
        ("older_slot_2", [SLOT_1, OLDER_SLOT_2], None, (), "A slot that was kept; the generation is the higher one."),
        ("two_previous", [SLOT_1, SLOT_2], previous(items()), RETIRED, "After two rotations."),
    ):
        parsed = KeySet.parse(wraps, previous_keys)
        found.append(
            case(
                name,
                "ok",
                comment,
                step="open",
                **_set(wraps, previous_keys),
                dek=DEK.secret(),
                **({"recovery": RECOVERY} if len(wraps) > 1 else {}),
                generation=GENERATION,
                kid=DEK.kid,
                sha256=parsed.sha256,
                previous=[{"dek": k.dek.secret().hex(), "seq": k.seq, "mac": k.mac.hex()} for k in retired],
            )
        )
    made = key_set.make(
        KeyRing(RETIRED, DEK), ACCOUNT_ID, 4, passphrase=None, recovery=RECOVERY,
        kept=KeySet.parse([SLOT_1, SLOT_2], previous(items())), random=Seeded("rewrap"),
    )  # fmt: skip
    found.append(
        case(
            "rewrapped_slot_2",
            "ok",
            "Slot 2 and the previous keys made anew at generation 4, slot 1 kept byte for byte.",
            step="open",
            **_set([each.raw for each in made.wraps], made.previous_keys),
            dek=DEK.secret(),
            recovery=RECOVERY,
            generation=4,
            kid=DEK.kid,
            sha256=made.sha256,
            previous=found[-1]["previous"],
        )
    )
    return found


def _shapes() -> list[Case]:
    other_account = replace(RECOVERED, account_id=bytes(16)).raw()
    other_kid = replace(RECOVERED, kid=Dek(bytes(32)).kid).raw()
    shapes: list[tuple[str, list[bytes], str]] = [
        ("no_slot", [], "Nothing."),
        ("slot_2_alone", [SLOT_2], "Slot 1 is required."),
        ("reversed", [SLOT_2, SLOT_1], "Slots in the wrong order."),
        ("slot_1_twice", [SLOT_1, SLOT_1], "The same slot again."),
        ("slot_2_twice", [SLOT_1, SLOT_2, SLOT_2], "The same slot again."),
        ("two_accounts", [SLOT_1, other_account], "The second slot is of another account."),
        ("two_kids", [SLOT_1, other_kid], "The second slot holds another key."),
        ("damaged_slot_2", [SLOT_1, SLOT_2[:-1]], "A wrap of 163 bytes."),
        ("empty_slot_2", [SLOT_1, b""], "A wrap of no bytes."),
    ]
    found = [
        case(name, "key_set_damaged", comment, step="parse", **_set(wraps, None)) for name, wraps, comment in shapes
    ]
    asked = _set([Recipe(account_id=bytes(16)).unopened()], None)
    found.append(
        case("another_account", "key_set_damaged", "Not the account that was asked for.", step="parse", **asked)
    )
    found.append(
        case(
            "previous_keys_too_long",
            "key_set_damaged",
            "65,537 bytes.",
            step="parse",
            **(_set([SLOT_1, SLOT_2], None) | {"previousKeys": [["00", 65_537]]}),
        )
    )
    return found


def _previous_keys() -> list[Case]:
    right = previous(items())
    altered: list[tuple[str, bytes, str]] = [
        ("71_bytes", previous(items()[:71]), "One item less a byte."),
        ("73_bytes", previous(items()[:73]), "One item and a byte."),
        ("143_bytes", previous(items()[:143]), "Two items less a byte."),
        ("no_items", previous(b""), "An object without items."),
        ("other_generation", previous(items(), revision=GENERATION - 1), "That of the generation before."),
        ("memory_type", previous(items(), type=1), "A memory instead of previous keys."),
        ("memory_id_set", previous(items(), memory_id=b"\1" * 16), "It belongs to a memory."),
        ("other_account_object", previous(items(), account_id=bytes(16)), "Taken from another account."),
        ("under_retired_key", previous(items(), dek=RETIRED[1].dek), "Sealed under a key that went out of force."),
        ("flipped", right[:-1] + bytes((right[-1] ^ 1,)), "One bit of the tag."),
        ("cut", right[:-1], "The last byte is missing."),
        ("empty_object", b"", "No bytes where an object or nothing belongs."),
    ]
    return [
        case(name, "key_set_damaged", comment, step="open", **_set([SLOT_1, SLOT_2], value), recovery=RECOVERY)
        for name, value, comment in altered
    ]


def _set(wraps: list[bytes], previous_keys: bytes | None) -> dict[str, Any]:
    return {"accountId": ACCOUNT_ID, "wraps": [wrap.hex() for wrap in wraps], "previousKeys": previous_keys}
