"""wrap.json: the 164 bytes that hold a DEK under a passphrase or a recovery code."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from squirrel_mcp.crypto import kdf
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.primitives import derive, encrypt, hash_bytes
from tests.vectors.making.files import Case, case
from tests.vectors.making.gcm import several_keys
from tests.vectors.making.seeded import Seeded

_RANDOM = Seeded("wrap.json")
DEK = Dek(_RANDOM(32))
ACCOUNT_ID = _RANDOM(16)
PASSPHRASE = "correct horse battery staple"
RECOVERY = _RANDOM(20)
COMPOSED, DECOMPOSED = "caf\u00e9 \uac00\u00c5", "cafe\u0301 \u1100\u1161\u212b"

_CHEAPEST = (2, 19_456, 1)
_FLOOR = (600_000, 0, 0)


@dataclass(frozen=True)
class Recipe:
    """A wrap with any field wrong and everything that follows from it right."""

    slot: int = 1
    kdf: int = 2
    costs: tuple[int, int, int] = _CHEAPEST
    flags: int = 0
    version: int = 1
    magic: bytes = b"SQKW"
    generation: int = 3  # no single flipped bit makes it 0
    account_id: bytes = ACCOUNT_ID
    kid: bytes = DEK.kid
    salt: bytes = bytes(range(16))
    nonce: bytes = bytes(range(100, 112))
    secret: str | bytes = PASSPHRASE
    commit: bytes | None = None

    @property
    def header(self) -> bytes:
        return struct.pack(
            ">4s4B4I16s16s16s",
            self.magic,
            self.version,
            self.slot,
            self.kdf,
            self.flags,
            *self.costs,
            self.generation,
            self.account_id,
            self.kid,
            self.salt,
        )

    def derived(self) -> tuple[bytes, bytes, bytes]:
        """r, KEK and commit."""
        r = _stretched(self.secret, self.salt, self.kdf, self.costs)
        okm = derive(r, salt=hash_bytes(self.header), info=b"squirrel/v1/kek", length=64)
        return r, okm[:32], okm[32:]

    def raw(self) -> bytes:
        _, kek, commit = self.derived()
        aad = self.header + (self.commit or commit) + self.nonce
        return aad + encrypt(kek, self.nonce, DEK.secret(), aad)

    def unopened(self) -> bytes:
        """For numbers that no KDF should be asked for: what follows the header is arbitrary."""
        return self.header + Seeded("unopened")(164 - 72)


@cache
def _stretched(secret: str | bytes, salt: bytes, code: int, costs: tuple[int, int, int]) -> bytes:
    if isinstance(secret, bytes):
        return kdf.from_recovery(secret)
    if code == 1:
        return kdf.stretch(secret, salt, kdf.Pbkdf2(costs[0]))
    return kdf.stretch(secret, salt, kdf.Argon2id(*costs))


PASSED = Recipe()
RECOVERED = Recipe(slot=2, kdf=3, costs=(0, 0, 0), secret=RECOVERY)


def build() -> dict[str, Any]:
    return {
        "about": "Wrap records: section 1 of the protocol, `Wrap record`.",
        "cases": [*_positive(), *_altered(), *_shapes(), *_bounds(), *_several_keys()],
    }


def _positive() -> list[Case]:
    found = []
    for name, recipe, comment in (
        ("argon2id", PASSED, "Slot 1, the smallest Argon2id that is allowed."),
        ("pbkdf2", replace(PASSED, kdf=1, costs=_FLOOR), "Slot 1, PBKDF2 with 600,000 iterations."),
        ("argon2id_two_lanes", replace(PASSED, costs=(3, 20_000, 2)), "Slot 1, other costs."),
        ("recovery", RECOVERED, "Slot 2: no KDF, r is the SHA-256 of the 20 bytes."),
        ("nfc_composed", replace(PASSED, secret=COMPOSED), "A passphrase in NFC: accents and Hangul composed."),
        (
            "nfc_decomposed",
            replace(PASSED, secret=DECOMPOSED),
            "The same text decomposed, with the Angstrom sign: the same wrap as nfc_composed.",
        ),
        ("highest_generation", replace(RECOVERED, generation=2**32 - 1), "The last generation a u32 holds."),
    ):
        r, kek, commit = recipe.derived()
        found.append(
            case(
                name,
                "ok",
                comment,
                step="open",
                wrap=recipe.raw(),
                **_secret(recipe.secret),
                accountId=recipe.account_id,
                generation=recipe.generation,
                kid=DEK.kid,
                r=r,
                kek=kek,
                commit=commit,
                dek=DEK.secret(),
            )
        )
    return found


def _altered() -> list[Case]:
    wrong_kid = replace(RECOVERED, kid=Dek(bytes(32)).kid)
    opened: list[tuple[str, bytes, str | bytes, str]] = [
        ("wrong_passphrase", PASSED.raw(), "incorrect horse", "The wrong passphrase."),
        ("nfkc_is_not_nfc", replace(PASSED, secret="\ufb01ne").raw(), "fine", "NFC leaves the ligature alone."),
        ("passphrase_for_slot_2", RECOVERED.raw(), PASSPHRASE, "A passphrase does not open a recovery slot."),
        ("recovery_for_slot_1", PASSED.raw(), RECOVERY, "A recovery code does not open a passphrase slot."),
        ("wrong_recovery", RECOVERED.raw(), bytes(20), "The wrong recovery code."),
        ("wrong_kid", wrong_kid.raw(), RECOVERY, "The right secret; the DEK inside is not the one named."),
        (
            "wrong_kid_passphrase",
            replace(PASSED, kid=Dek(bytes(32)).kid).raw(),
            PASSPHRASE,
            "The same with a passphrase.",
        ),
        (
            "commit_differs",
            replace(RECOVERED, commit=bytes(32)).raw(),
            RECOVERY,
            "The GCM tag is right, also over this commit; the commit is not the derived one.",
        ),
        ("empty_passphrase", PASSED.raw(), "", "Nothing."),
        ("placeholder", PASSED.raw(), "${SQUIRREL_PASSPHRASE}", "A variable that was never filled in."),
        ("placeholder_start", PASSED.raw(), "${", "Anything that starts with a dollar sign and a brace."),
    ]
    refused = {"empty_passphrase", "placeholder", "placeholder_start"}
    found = [
        case(
            name,
            "passphrase_refused" if name in refused else "wrong_passphrase",
            comment,
            step="open",
            wrap=raw,
            **_secret(secret),
        )
        for name, raw, secret, comment in opened
    ]
    found.append(
        case(
            "every_bit",
            "see expectByRange",
            "Each single flipped bit of this wrap; the first range that holds the byte says how it fails.",
            step="open",
            mutation="flip_every_bit",
            wrap=RECOVERED.raw(),
            **_secret(RECOVERY),
            expectByRange=[
                [0, 4, "key_set_damaged"],
                [4, 5, "update_required"],
                [5, 20, "key_set_damaged"],
                [20, 164, "wrong_passphrase"],
            ],
        )
    )
    return found


def _shapes() -> list[Case]:
    raw = RECOVERED.raw()
    shapes = [
        ("one_byte_less", raw[:-1], "163 bytes."),
        ("one_byte_more", raw + b"\0", "165 bytes."),
        ("two_wraps_in_one", raw + raw, "328 bytes."),
        ("header_only", raw[:72], "72 bytes."),
        ("empty", b"", "Nothing."),
        ("other_magic", replace(RECOVERED, magic=b"SQKX").raw(), "Another format."),
        ("flags_set", replace(RECOVERED, flags=1).raw(), "A reserved bit, authenticated."),
        ("generation_0", replace(RECOVERED, generation=0).raw(), "Generations start at 1."),
        ("slot_0", replace(RECOVERED, slot=0).raw(), "There is no slot 0."),
        ("slot_3", replace(RECOVERED, slot=3).raw(), "There is no slot 3."),
        ("kdf_0", replace(PASSED, kdf=0).unopened(), "There is no KDF 0."),
        ("kdf_4", replace(PASSED, kdf=4).unopened(), "There is no KDF 4."),
        ("slot_1_kdf_3", replace(RECOVERED, slot=1).raw(), "A passphrase slot without a KDF."),
        ("slot_2_kdf_2", replace(PASSED, slot=2).raw(), "A recovery slot with Argon2id."),
        ("slot_2_kdf_1", replace(PASSED, slot=2, kdf=1, costs=_FLOOR).unopened(), "A recovery slot with PBKDF2."),
        ("kdf_1_memory", replace(PASSED, kdf=1, costs=(600_000, 1, 0)).unopened(), "PBKDF2 with memory set."),
        ("kdf_1_lanes", replace(PASSED, kdf=1, costs=(600_000, 0, 1)).unopened(), "PBKDF2 with lanes set."),
        ("kdf_3_time", replace(RECOVERED, costs=(1, 0, 0)).raw(), "No KDF, with a time cost."),
        ("kdf_3_memory", replace(RECOVERED, costs=(0, 1, 0)).raw(), "No KDF, with memory."),
        ("kdf_3_lanes", replace(RECOVERED, costs=(0, 0, 1)).raw(), "No KDF, with lanes."),
    ]
    found = [case(name, "key_set_damaged", comment, step="parse", wrap=value) for name, value, comment in shapes]
    for name, value in (
        ("version_2", replace(RECOVERED, version=2).raw()),
        ("version_0", replace(RECOVERED, version=0).raw()),
        ("version_2_longer", replace(RECOVERED, version=2).raw() + bytes(36)),
    ):
        found.append(case(name, "update_required", "Another version, of any length.", step="parse", wrap=value))
    return found


def _bounds() -> list[Case]:
    found = []
    for code, costs, allowed in (
        (1, (600_000, 0, 0), True),
        (1, (10_000_000, 0, 0), True),
        (1, (0, 0, 0), False),
        (1, (1, 0, 0), False),
        (1, (5_000, 0, 0), False),
        (1, (599_999, 0, 0), False),
        (1, (10_000_001, 0, 0), False),
        (1, (2**32 - 1, 0, 0), False),
        (2, (2, 19_456, 1), True),
        (2, (16, 19_456, 1), True),
        (2, (2, 1_048_576, 1), True),
        (2, (2, 19_456, 16), True),
        (2, (4, 1_048_576, 16), True),
        (2, (16, 262_144, 1), True),
        (2, (0, 19_456, 1), False),
        (2, (1, 19_456, 1), False),
        (2, (17, 19_456, 1), False),
        (2, (2, 19_455, 1), False),
        (2, (2, 1_048_577, 1), False),
        (2, (2, 2**32 - 1, 1), False),
        (2, (2, 19_456, 0), False),
        (2, (2, 19_456, 17), False),
        (2, (2**32 - 1, 2**32 - 1, 2**32 - 1), False),
        (2, (5, 1_048_576, 1), False),
        (2, (16, 262_145, 1), False),
    ):
        name = "bounds_" + "_".join(["pbkdf2", str(costs[0])] if code == 1 else ["argon2id", *map(str, costs)])
        found.append(
            case(
                name,
                "ok" if allowed else "key_set_damaged",
                "On the bound." if allowed else "Beyond a bound: refused before any KDF is called.",
                step="parse",
                wrap=replace(PASSED, kdf=code, costs=costs).unopened(),
            )
        )
    return found


def _several_keys() -> list[Case]:
    """One ciphertext whose tag is right under the KEKs of three passphrases (or codes)."""
    groups: list[tuple[str, Recipe, list[str | bytes]]] = [
        ("passphrases", PASSED, ["hunter2hunter2", "password1234", "letmeinletmein"]),
        ("recovery_codes", RECOVERED, [Seeded(f"code {index}")(20) for index in range(3)]),
    ]
    found = []
    for name, recipe, secrets in groups:
        keys = [replace(recipe, secret=secret).derived()[1] for secret in secrets]
        for index, secret in enumerate(secrets):
            commit = replace(recipe, secret=secrets[0]).derived()[2]
            aad = recipe.header + commit + recipe.nonce
            found.append(
                case(
                    f"several_keys_{name}_{index + 1}",
                    "wrong_passphrase",
                    "AES-GCM alone opens this ciphertext under `kek` and under the KEKs of the two cases beside it. "
                    + ("The commit is this secret's own; the kid is not." if index == 0 else "The commit is not."),
                    step="open",
                    wrap=aad + several_keys(keys, recipe.nonce, aad),
                    **_secret(secret),
                    kek=keys[index],
                )
            )
    return found


def _secret(secret: str | bytes) -> dict[str, Any]:
    return {"recovery": secret} if isinstance(secret, bytes) else {"passphrase": secret}
