"""record.json: sealed records, and what must not open where it was put."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from squirrel_mcp.crypto import envelope
from squirrel_mcp.crypto.envelope import Context
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.padding import pad
from squirrel_mcp.crypto.primitives import derive, encrypt, hash_bytes
from tests.vectors.making.files import Case, case
from tests.vectors.making.seeded import Seeded

_RANDOM = Seeded("record.json")
DEK, NEXT_DEK, EARLIER_DEK = Dek(_RANDOM(32)), Dek(_RANDOM(32)), Dek(_RANDOM(32))
PLACE = Context(account_id=_RANDOM(16), memory_id=_RANDOM(16), revision=7)
SALT = _RANDOM(24)
_TIME = b'"2026-03-01T09:30:00.000Z"'
PAYLOAD = b'{"createdAt":%b,"text":"Acorns are under the oak.","updatedAt":%b,"v":1}' % (_TIME, _TIME)


@dataclass(frozen=True)
class Recipe:
    """A record with any part wrong and everything that follows from it right."""

    place: Context = PLACE
    dek: Dek = DEK
    version: int = 1
    type: int = envelope.MEMORY
    reserved: int = 0
    kid: bytes = DEK.kid
    plaintext: bytes = pad(PAYLOAD)
    commit: bytes | None = None
    nonce: bytes = bytes(12)
    aad_type: int | None = None

    def raw(self) -> bytes:
        bound = bytes((self.version, self.type)) + self.reserved.to_bytes(2, "big") + self.kid + SALT
        ctx = self.place.encode()
        okm = derive(self.dek.record, salt=SALT, info=b"squirrel/v1/record\0" + hash_bytes(ctx + bound), length=64)
        header = bound + (self.commit or okm[32:])
        return header + encrypt(okm[:32], self.nonce, self.plaintext, ctx + header)


def build() -> dict[str, Any]:
    return {
        "about": "Records: section 2 of the protocol. The place is what the reader asked for, not what a store says.",
        "cases": [*_positive(), *_misplaced(), *_altered()],
    }


def _positive() -> list[Case]:
    found = []
    for name, place, payload, comment in (
        ("memory", PLACE, PAYLOAD, "A memory."),
        ("empty", PLACE, b"", "No payload at all."),
        ("one_byte", PLACE._replace(revision=1), b"a", "One byte."),
        ("fills_the_minimum", PLACE, b"a" * 252, "252 bytes: a plaintext of exactly 256."),
        ("passes_the_minimum", PLACE, b"a" * 253, "253 bytes: the first PADME size after 256."),
        ("last_revision", PLACE._replace(revision=2**64 - 1), b"a", "The last revision a u64 holds."),
        ("previous_keys", PLACE._replace(memory_id=bytes(16), type=2), b"k" * 72, "Type 2."),
    ):
        record = envelope.seal(DEK, place, payload, lambda _: SALT)
        found.append(
            case(name, "ok", comment, **_place(place), dek=DEK.secret(), salt=SALT, payload=payload, record=record)
        )
    largest = envelope.seal(DEK, PLACE, b"a" * 63_484, lambda _: SALT)
    found.append(
        case(
            "largest",
            "ok",
            "The longest payload; seal it with this salt and compare the hash.",
            **_place(PLACE),
            dek=DEK.secret(),
            salt=SALT,
            payload=[[b"a".hex(), 63_484]],
            recordSha256=hash_bytes(largest),
        )
    )
    return found


def _misplaced() -> list[Case]:
    record = Recipe().raw()
    moved = [
        ("other_id", PLACE._replace(memory_id=bytes(16)), "Moved to another memory."),
        ("earlier_revision", PLACE._replace(revision=6), "Replayed one revision earlier."),
        ("later_revision", PLACE._replace(revision=8), "Replayed one revision later."),
        ("other_account", PLACE._replace(account_id=bytes(16)), "Taken from another account."),
        ("other_type", PLACE._replace(type=2), "A memory where previous keys are asked for."),
    ]
    found = [_refused(name, record, comment, place=place) for name, place, comment in moved]
    found += [
        _refused("key_before_its_time", Recipe(dek=NEXT_DEK, kid=NEXT_DEK.kid).raw(), "Sealed with the next key."),
        _refused("key_after_its_time", Recipe(dek=EARLIER_DEK, kid=EARLIER_DEK.kid).raw(), "With the one before."),
        _refused("other_key_right_kid", Recipe(dek=NEXT_DEK).raw(), "Sealed with the next key under this kid."),
    ]
    return found


def _altered() -> list[Case]:
    record = Recipe().raw()
    sealed = [
        ("version_2", Recipe(version=2), "A version that does not exist, sealed consistently."),
        ("type_in_header", Recipe(type=2), "The header says type 2, the place says 1."),
        ("reserved_set", Recipe(reserved=1), "A reserved bit, sealed consistently."),
        ("other_kid", Recipe(kid=bytes(16)), "Another kid, sealed consistently."),
        ("commit_differs", Recipe(commit=bytes(32)), "The tag is right, also over this commit."),
        ("nonce_not_zero", Recipe(nonce=bytes(11) + b"\1"), "Another nonce."),
        ("pad_not_zero", Recipe(plaintext=pad(PAYLOAD)[:-1] + b"\1"), "A one in the padding."),
        (
            "padme_step_too_long",
            Recipe(plaintext=pad(b"a" * 300) + bytes(16)),
            "320 bytes of plaintext for 304 of content.",
        ),
        (
            "padme_step_too_short",
            Recipe(plaintext=pad(b"a" * 1_000)[:1_008]),
            "1,008 bytes of plaintext; PADME makes 1,024 of 1,004.",
        ),
        ("length_past_the_end", Recipe(plaintext=b"\0\0\0\xfd" + bytes(252)), "253 bytes announced, 252 there."),
        ("plaintext_too_short", Recipe(plaintext=bytes(240)), "Less than 256 bytes of plaintext."),
        ("plaintext_empty", Recipe(plaintext=b""), "A tag and nothing else."),
    ]
    found = [_refused(name, recipe.raw(), comment) for name, recipe, comment in sealed]
    found += [
        _refused("one_byte_less", record[:-1], "The last byte of the tag is missing."),
        _refused("one_byte_more", record + b"\0", "A byte after the tag."),
        _refused("header_only", record[:76], "No ciphertext."),
        _refused("no_bytes", b"", "Nothing."),
        _refused("above_the_cap", [record.hex(), ["00", 65_537 - len(record)]], "65,537 bytes."),
        _refused(
            "every_bit",
            record,
            "Each single flipped bit of this record.",
            mutation="flip_every_bit",
            expectByRange=[[0, len(record), "record_damaged"]],
        ),
    ]
    return found


def _refused(name: str, record: bytes | list[Any], comment: str, place: Context = PLACE, **more: Any) -> Case:
    return case(name, "record_damaged", comment, **_place(place), dek=DEK.secret(), record=record, **more)


def _place(place: Context) -> dict[str, Any]:
    return {
        "accountId": place.account_id,
        "memoryId": place.memory_id,
        "revision": place.revision,
        "type": place.type,
    }
