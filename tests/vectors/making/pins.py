"""pin.json: the local pin, and what a store may not say once there is one."""

from __future__ import annotations

import struct
from typing import Any

from squirrel_mcp.crypto import key_set
from squirrel_mcp.crypto import pin as pin_format
from squirrel_mcp.crypto.key_set import KeyRing, KeySet
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.pin import Pin
from squirrel_mcp.crypto.primitives import mac
from tests.squirrel_mcp.crypto.log_simulator import CHEAPEST, Account, Keys
from tests.vectors.making.files import Case, case
from tests.vectors.making.seeded import Seeded

ROUTE = ("https://memory.example", "keyid0123456")
ROUTES = (ROUTE, ("/srv/v\u00e9/squirrel.db", ""))


def build() -> dict[str, Any]:
    account = Account("pinned")
    memory_id = account.save()
    account.rewrap()
    account.correct(memory_id)
    account.rotate()
    return {
        "about": "The pin: section 1 of the protocol, `Local pin`; its bytes are this implementation's (pin.py).",
        "cases": [*_positive(account), *_damaged(account), *_replies(account)],
    }


def pinned(account: Account, seq: int) -> bytes:
    """The pin of a device that has seen the account up to `seq`."""
    keys = account.keys_at(seq)
    return pin_format.encode(Pin(keys.key_set, account.head_at(seq), ROUTES), keys.ring.current)


def _positive(account: Account) -> list[Case]:
    found = []
    for name, seq, comment in (
        ("current", len(account.entries), "Everything was seen."),
        ("before_a_rotation", 4, "The pin's key is among the previous keys now."),
        ("at_registration", 1, "The first entry alone."),
    ):
        raw = pinned(account, seq)
        found.append(
            case(
                name,
                "ok",
                comment,
                step="read",
                pin=raw,
                deks=_deks(account),
                accountId=account.id,
                kid=account.keys_at(seq).ring.current.kid,
                headSeq=seq,
                headMac=account.head_at(seq).mac,
                routes=[list(route) for route in ROUTES],
                fileName=pin_format.file_name(account.id),
            )
        )
    return found


def _damaged(account: Account) -> list[Case]:
    raw, dek = pinned(account, 4), account.deks[0]
    body = raw[:-32]

    def signed(changed: bytes) -> bytes:
        return changed + mac(dek.local_state, changed)

    at_routes = 84 + struct.unpack_from(">I", raw, 80)[0]
    altered = [
        ("mac_flipped", raw[:-1] + bytes((raw[-1] ^ 1,)), "The last bit of the MAC."),
        ("one_byte_less", raw[:-1], "The MAC's last byte is missing."),
        ("one_byte_more", raw + b"\0", "A byte after the MAC."),
        ("byte_before_the_mac", signed(body + b"\0"), "A byte after the routes, authenticated."),
        ("empty", b"", "Nothing."),
        ("header_only", raw[:84], "No key set."),
        ("other_magic", signed(b"SQPM" + body[4:]), "Another format, authenticated."),
        ("reserved_set", signed(body[:5] + b"\1" + body[6:]), "A reserved byte, authenticated."),
        ("other_account", signed(body[:24] + bytes(16) + body[40:]), "Not the account of its key set."),
        ("other_kid", signed(body[:8] + bytes(16) + body[24:]), "Not the key of its key set."),
        ("key_set_too_long", signed(body[:80] + b"\xff\xff\xff\xff" + body[84:]), "A length past the end."),
        ("too_many_routes", signed(body[:at_routes] + b"\xff\xff" + body[at_routes + 2 :]), "65,535 routes."),
        ("signed_with_another_key", body + mac(account.deks[1].local_state, body), "The later key's MAC."),
    ]
    found = [
        case(name, "pin_damaged", comment, step="read", pin=value, deks=_deks(account))
        for name, value, comment in altered
    ]
    found.append(
        case(
            "version_2",
            "update_required",
            "A version that does not exist.",
            step="read",
            pin=signed(body[:4] + b"\2" + body[5:]),
            deks=_deks(account),
        )
    )
    found.append(
        case(
            "every_bit",
            "see expectByRange",
            "Each single flipped bit. Bytes 4, 88 and 252 are versions: of the pin and of its two wraps.",
            step="read",
            mutation="flip_every_bit",
            pin=raw,
            deks=_deks(account),
            expectByRange=[
                [0, 4, "pin_damaged"],
                [4, 5, "update_required"],
                [5, 88, "pin_damaged"],
                [88, 89, "update_required"],
                [89, 252, "pin_damaged"],
                [252, 253, "update_required"],
                [253, len(raw), "pin_damaged"],
            ],
        )
    )
    return found


def _replies(account: Account) -> list[Case]:
    stranger = Account("stranger with a pin")
    impostor = _made(account, KeyRing((), Dek(Seeded("impostor")(32))), 4)
    whole, newest = len(account.entries), account.keys[-1]
    without = newest._replace(key_set=KeySet.parse([newest.key_set.wraps[0].raw], newest.key_set.previous_keys))
    replies: list[tuple[str, str, Keys, int, str]] = [
        ("same_keys", "ok", newest, whole, "What was pinned."),
        ("later_keys", "ok", newest, 1, "A rewrap and a rotation later."),
        ("foreign_account", "foreign_account", stranger.keys[-1], whole, "Another account behind the same key."),
        ("lower_generation", "key_record_downgrade", account.keys_at(4), whole, "The set from before the rotation."),
        (
            "other_bytes",
            "key_record_downgrade",
            _made(account, account.keys[-1].ring, 3),
            whole,
            "Generation 3, another slot 1.",
        ),
        ("slot_2_dropped", "key_record_downgrade", without, whole, "Generation 3 without slot 2."),
        ("foreign_key", "foreign_key", impostor, 1, "A higher generation, and a key that follows from none."),
    ]
    return [
        case(
            name,
            expect,
            comment,
            step="reply",
            pin=pinned(account, seq),
            route=list(ROUTE),
            accountId=keys.key_set.account_id,
            wraps=[each.raw.hex() for each in keys.key_set.wraps],
            previousKeys=keys.key_set.previous_keys,
            dek=keys.ring.current.secret(),
        )
        for name, expect, keys, seq, comment in replies
    ]


def _made(account: Account, ring: KeyRing, generation: int) -> Keys:
    """A key set of that account and generation that the account never had."""
    made = key_set.make(
        ring, account.id, generation, passphrase="another passphrase", parameters=CHEAPEST, random=Seeded("another")
    )
    return Keys(0, made, ring)


def _deks(account: Account) -> list[str]:
    return [dek.secret().hex() for dek in account.deks]
