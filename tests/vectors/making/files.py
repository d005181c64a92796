"""How a vector file is written and read: README.md beside the files is the specification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent

Case = dict[str, Any]
Bytes = str | list[Any]
"""Hex, or parts to be joined: hex, or [hex, times]."""


def unpack(value: Bytes) -> bytes:
    """The bytes that a vector spells."""
    if isinstance(value, str):
        return bytes.fromhex(value)
    return b"".join(
        bytes.fromhex(part) if isinstance(part, str) else bytes.fromhex(part[0]) * part[1] for part in value
    )


def case(name: str, expect: str, comment: str, **fields: Any) -> Case:
    """One case; fields that are bytes become hex."""
    written = {key: value.hex() if isinstance(value, bytes) else value for key, value in fields.items()}
    return {"name": name, "expect": expect, "comment": comment, **written}


def render(content: dict[str, Any]) -> str:
    """The text of a vector file: ASCII, one field per line, the same for the same content."""
    return json.dumps(content, indent=1) + "\n"


def load(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((FOLDER / name).read_text("ascii"))
    return content


def cases(name: str) -> list[Case]:
    found: list[Case] = load(name)["cases"]
    return found
