"""Token buckets in the memory of one process: with four processes behind an address, four times as much gets in.

What they are against is a client that runs wild, not guessing: a key has 256 random bits.
"""

from __future__ import annotations

import ipaddress
import math
import threading
from collections import OrderedDict
from collections.abc import Callable

from squirrel_server.http.options import Rate

_MOST = 10_000  # buckets; beyond that the one used longest ago is dropped, which at worst is full again


class Buckets:
    """One bucket per name. `monotonic` is a clock in seconds."""

    def __init__(self, rate: Rate, monotonic: Callable[[], float]) -> None:
        self._rate, self._monotonic = rate, monotonic
        self._lock = threading.Lock()
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # name: (tokens, at that time)

    def take(self, name: str, tokens: float = 1) -> int:
        """Take tokens out of the named bucket; 0, or the seconds after which there is one again.

        A bucket may be drawn below zero by a request that costs more than it turned out to have.
        """
        per_second, burst = self._rate
        if not per_second:
            return 0
        with self._lock:
            now = self._monotonic()
            left, since = self._buckets.pop(name, (burst, now))
            left = min(burst, left + max(0.0, now - since) * per_second)
            granted = left >= 1
            if granted:
                left = max(left - tokens, -burst)
            self._buckets[name] = (left, now)
            if len(self._buckets) > _MOST:
                self._buckets.popitem(last=False)
        return 0 if granted else max(1, math.ceil((1 - left) / per_second))


def bucket_of(address: str) -> str:
    """The name under which an address is counted: itself, or its /64, in which a host has as many as it likes."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((int(found), 64), strict=False))
    return str(found)
