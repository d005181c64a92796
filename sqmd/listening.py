"""The port of a server: taken before anything else is begun, so that a busy one costs nothing."""

from __future__ import annotations

import errno
import os
import socket

from sqmd.errors import ConfigError, PortBusy

_BACKLOG = 128


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections from now on, though nobody answers yet. PortBusy, ConfigError."""
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP, flags=socket.AI_PASSIVE
        )[0]
        # With the protocol named, asyncio turns Nagle's algorithm off; without, each reply would wait 40 ms.
        listening = socket.socket(family, kind, protocol)
        try:
            if os.name == "posix":
                listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind(where)
            listening.listen(_BACKLOG)
        except BaseException:
            listening.close()
            raise
    except (OSError, ValueError) as error:  # ValueError: of what is no name at all, such as a..b
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise PortBusy(f"Port {port} of {host} is taken by another program: choose another with --port.") from error
        reason = error.strerror or error if isinstance(error, OSError) else "it is no name of a machine"
        raise ConfigError(f"Port {port} of {host} cannot be listened at: {reason}.") from error
    return listening
