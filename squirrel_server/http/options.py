"""What can be set about a server, as plain values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

MAX_BODY_BYTES = 2 * 1024 * 1024  # of a request, and of a page of the log


class Rate(NamedTuple):
    """A token bucket: so many requests a second for long, and so many at once. A rate of 0 is no limit."""

    per_second: float
    burst: float


KEY_RATE = Rate(50, 500)
ADDRESS_RATE = Rate(200, 2_000)


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """database: see `squirrel_server.store.database.open_database`.

    key_rate, address_rate: limits in each process; an address is a client's, an IPv6 one counts by its /64.
    behind_proxy: the client's address is the last one in X-Forwarded-For. open_metrics: /metrics for everybody,
    not for loopback alone. threads: how many requests are worked on at once, each with a database connection and
    up to about 10 MiB; more wait.
    """

    database: str
    key_rate: Rate = KEY_RATE
    address_rate: Rate = ADDRESS_RATE
    behind_proxy: bool = False
    open_metrics: bool = False
    threads: int = 8
