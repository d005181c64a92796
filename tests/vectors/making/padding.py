"""padding.json: PADME sizes, and plaintexts whose padding is not exact."""

from __future__ import annotations

from typing import Any

from squirrel_mcp.crypto.padding import pad, padded_size
from tests.vectors.making.files import Case, case

LENGTHS = (0, 1, 251, 252, 253, 268, 269, 508, 509, 1_000, 4_092, 4_093, 16_000, 40_000, 63_484)


def build() -> dict[str, Any]:
    return {
        "about": "plaintext = u32 length || payload || zeros up to max(256, PADME(4 + length)): section 2.",
        "cases": [*_sizes(), *_refused()],
    }


def _sizes() -> list[Case]:
    return [
        case(
            f"payload_{length}",
            "ok",
            "A payload of that many bytes.",
            payloadBytes=length,
            paddedBytes=padded_size(length),
        )
        for length in LENGTHS
    ]


def _refused() -> list[Case]:
    short, thousand = pad(b"payload"), (1_000).to_bytes(4, "big") + b"a" * 1_000  # 1,024 bytes when padded
    refused = [
        ("pad_not_zero_last", short[:-1] + b"\1", "The last byte of the padding is 1."),
        ("pad_not_zero_first", short[:11] + b"\1" + short[12:], "The first byte of the padding is 1."),
        ("not_padded", thousand, "The payload and nothing after it."),
        ("step_too_short", thousand.ljust(1_008, b"\0"), "Padded to a size that is too fine for PADME."),
        ("step_too_long", thousand.ljust(1_056, b"\0"), "The PADME size after the right one."),
        ("one_byte_too_long", short + b"\0", "257 bytes."),
        ("length_past_the_end", (253).to_bytes(4, "big") + bytes(252), "253 bytes announced, 252 there."),
        ("length_far_past_the_end", b"\xff" * 4 + bytes(252), "Four gigabytes announced."),
        ("longer_than_announced", (999).to_bytes(4, "big") + b"a" * 1_020, "Payload where zeros belong."),
        ("below_the_minimum", (7).to_bytes(4, "big") + b"payload", "No padding to 256."),
        ("empty", b"", "Nothing."),
    ]
    return [case(name, "record_damaged", comment, plaintext=value) for name, value, comment in refused]
