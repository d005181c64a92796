"""The one line that brings a second device to an account: address, API key, and the certificate where it is our own.

`sqj1_` and base64url without padding of the JSON `{"api": ..., "key": ..., "certificate": ...}`. It does not hold the
passphrase: whoever reads it can fetch ciphertext, and nothing more.
"""

from __future__ import annotations

import base64
import json
from typing import NamedTuple

from squirrel_mcp.errors import InvalidInput, SquirrelError
from squirrel_mcp.sync import strict_json
from squirrel_mcp.sync.api_key import ApiKey
from squirrel_mcp.sync.certificate import normal_fingerprint
from squirrel_mcp.sync.transport import check_origin

_PREFIX = "sqj1_"
_MAX = 4096  # characters


class JoinCode(NamedTuple):
    """`certificate` is a SHA-256 fingerprint, or None for a server whose certificate the system trusts."""

    origin: str
    api_key: ApiKey
    certificate: str | None


def encode(code: JoinCode) -> str:
    fields = {"api": code.origin, "key": code.api_key.secret(), "certificate": code.certificate}
    raw = json.dumps(fields, separators=(",", ":")).encode()
    return _PREFIX + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def decode(text: str) -> JoinCode:
    """InvalidInput, which does not quote it, for anything but a whole code."""
    plain = "".join(text.split())
    try:
        if not plain.startswith(_PREFIX) or len(plain) > _MAX:
            raise ValueError
        body = plain.removeprefix(_PREFIX)
        fields = strict_json.parse(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        if fields.keys() != {"api", "key", "certificate"} or not isinstance(fields["key"], str):
            raise ValueError
        fingerprint = fields["certificate"]
        return JoinCode(
            check_origin(fields["api"]),
            ApiKey(fields["key"]),
            None if fingerprint is None else normal_fingerprint(fingerprint),
        )
    except (ValueError, TypeError, AttributeError, SquirrelError):
        pass
    raise InvalidInput("code", "The join code is not complete: copy the whole line that `keys create --join` printed.")
