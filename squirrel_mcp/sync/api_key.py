"""An API key: `sqn_<id>_<secret>_<check>`, checked here so that a typing error needs no server to find it."""

from __future__ import annotations

import re
import zlib

from squirrel_mcp.errors import ConfigurationError, InvalidInput

_FORM = re.compile(r"sqn_([0-9A-Za-z]{12})_[0-9A-Za-z]{43}_([0-9A-Za-z]{6})", re.ASCII)
_INVITE = re.compile(r"sqi_[0-9A-Za-z]{43}_([0-9A-Za-z]{6})", re.ASCII)
_SYMBOLS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class ApiKey:
    """A well-formed key. Its repr shows the id, which is public, and nothing else."""

    __slots__ = ("_text", "id")

    def __init__(self, text: str) -> None:
        """ConfigurationError, which does not quote it, for anything but a key with the right check symbols."""
        form = _FORM.fullmatch(text.strip())
        if form is None or _check(text.strip().rpartition("_")[0]) != form[2]:
            raise ConfigurationError("The API key is not complete or has a typing error: it looks like sqn_...")
        self._text = text.strip()
        self.id = form[1]

    def header(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._text}"}

    def secret(self) -> str:
        """The key itself, to hand it to another device."""
        return self._text

    def __repr__(self) -> str:
        return f"ApiKey({self.id!r})"

    def __reduce__(self) -> str | tuple[object, ...]:
        raise TypeError("an API key is not pickled")


def check_invite(text: str) -> None:
    """InvalidInput, which does not quote it, for anything but an invite (`sqi_<secret>_<check>`) without a slip."""
    form = _INVITE.fullmatch(text)
    if form is None or _check(text.rpartition("_")[0]) != form[1]:
        raise InvalidInput("invite", "The invite is not complete or has a typing error: it looks like sqi_...")


def _check(body: str) -> str:
    """CRC-32 (IEEE 802.3) as six base62 digits."""
    number = zlib.crc32(body.encode("ascii"))
    digits = ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        digits = _SYMBOLS[digit] + digits
    return digits
