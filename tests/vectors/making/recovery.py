"""recovery.json: 20 bytes written as 32 Crockford base32 symbols and a check symbol."""

from __future__ import annotations

from typing import Any

from squirrel_mcp.crypto import recovery
from tests.vectors.making.files import Case, case
from tests.vectors.making.seeded import Seeded


def build() -> dict[str, Any]:
    return {
        "about": "Recovery codes: section 1 of the protocol, `Recovery code`.",
        "cases": [*_positive(), *_refused()],
    }


def with_check(symbol: str) -> bytes:
    """A secret whose code ends in that check symbol."""
    number = int.from_bytes(Seeded("check")(20), "big") & ~0xFF
    wanted = "0123456789ABCDEFGHJKMNPQRSTVWXYZ*~$=U".index(symbol)
    return next((number + low).to_bytes(20, "big") for low in range(37) if (number + low) % 37 == wanted)


ZEROS = bytes(20)
ONES = b"\x08\x42\x10\x84\x21" * 4  # every symbol is a 1
COUNTING = bytes(range(20))


def _positive() -> list[Case]:
    code = recovery.to_code(COUNTING)
    found = [
        case(f"canonical_{name}", "ok", "As it is shown.", code=recovery.to_code(secret), secret=secret, canonical=True)
        for name, secret in (
            ("zeros", ZEROS),
            ("highest", b"\xff" * 20),
            ("counting", COUNTING),
            *((f"check_{ord(symbol):x}", with_check(symbol)) for symbol in "*~$=U"),
        )
    ]
    for name, text, secret in (
        ("lower_case", code.lower(), COUNTING),
        ("no_hyphens", code.replace("-", ""), COUNTING),
        ("spaces", f"  {code.replace('-', ' ')} \n", COUNTING),
        ("hyphens_elsewhere", "-".join(code.replace("-", "")), COUNTING),
        ("lower_case_check_u", recovery.to_code(with_check("U")).lower(), with_check("U")),
        ("letter_o", "O" * 16 + "o" * 16 + "0", ZEROS),
        ("letters_i_l", "ILil" * 8 + recovery.to_code(ONES)[-1], ONES),
    ):
        found.append(case(name, "ok", "Read as it may be typed.", code=text, secret=secret, canonical=False))
    return found


def _refused() -> list[Case]:
    code = recovery.to_code(COUNTING)
    plain = code.replace("-", "")
    with_f1 = recovery.to_code((15 << 5 | 1).to_bytes(20, "big")).replace("-", "")
    ones = "1" * 32 + recovery.to_code(ONES)[-1]
    refused = [
        ("wrong_symbol", "1" + plain[1:], "One symbol is another."),
        ("wrong_check", plain[:-1] + "0", "The check symbol is another."),
        ("transposed", plain[:9] + plain[10] + plain[9] + plain[11:], "Two neighbours changed places."),
        ("31_symbols_and_check", plain[:-1], "31 symbols and a check symbol."),
        ("33_symbols_and_check", plain[:5] + plain[5] + plain[5:], "33 symbols and a check symbol."),
        ("no_check", plain[:32], "The check symbol is missing."),
        ("empty", "", "Nothing."),
        ("letter_u_inside", "U" + plain[1:], "U is a check symbol only."),
        ("asterisk_inside", "*" + plain[1:], "* is a check symbol only."),
        ("check_o_for_0", "0" * 32 + "O", "No letter stands for a digit in the check symbol."),
        ("check_l_for_1", "0" * 31 + "1L", "No letter stands for a digit in the check symbol."),
        ("long_s", recovery.to_code(bytes([0xCE]) * 20).replace("S", "\u017f"), "A letter that upper-cases to S."),
        ("dotless_i", ones.replace("1", "\u0131", 1), "A letter that upper-cases to I."),
        ("ligature", with_f1.replace("F1", "\ufb01"), "One letter that upper-cases to F and I."),
        ("fullwidth", plain.replace("0", "\uff10", 1), "A digit of another script."),
    ]
    return [case(name, "invalid_input", comment, code=text) for name, text, comment in refused]
