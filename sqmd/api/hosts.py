"""Which names this server answers to: a web page that makes its own name lead here (DNS rebinding) is not let in."""

from __future__ import annotations

import ipaddress
import re
import socket

_FORM = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?", re.ASCII)


class Hosts:
    """What may be in `Host` when listening at `host`; any port, since a tunnel may begin at another.

    At a loopback address that is this machine under its loopback names. At others it is also any address, which no
    page can make its own name look like, the name that was configured and the machine's.
    """

    def __init__(self, host: str) -> None:
        plain = host.strip("[]").lower()
        self._names = {"localhost", plain}
        address = _address(plain)
        self.local = plain == "localhost" or (address is not None and address.is_loopback)
        if not self.local:
            self._names.add(socket.gethostname().lower())

    def allows(self, header: str) -> bool:
        """Whether the value of a `Host` header is one of them."""
        found = _FORM.fullmatch(header)
        if found is None:
            return False
        name = found[1].strip("[]").lower()
        address = _address(name)
        if address is None:
            return name in self._names
        return address.is_loopback or not self.local


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
