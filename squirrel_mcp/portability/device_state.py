"""What one device has seen of an account on a server, as a sealed export: pin and state cache put together.

No key is needed. What comes out is verified when it is imported, as any export is.
"""

from __future__ import annotations

from squirrel_mcp.crypto import log
from squirrel_mcp.crypto.pin import Pin
from squirrel_mcp.portability.sealed_file import SealedExport
from squirrel_mcp.sync.state_cache import StateCache


def take(pin: Pin, cache: StateCache) -> SealedExport | None:
    """The account up to the pinned head, with the latest revision of each memory; None if the cache lacks any of it."""
    items = cache.page(0, pin.head.seq)
    head, key_set = log.EMPTY, log.NO_HASH
    for raw, _ in items:
        if len(raw) != log.ENTRY_BYTES:
            return None
        entry = log.parse(raw)
        if (entry.seq, entry.prev_mac) != (head.seq + 1, head.mac):
            return None
        if entry.op in log.KEY_OPS:
            key_set = entry.sha256
        head = entry.head
    if head != pin.head or key_set != pin.key_set.sha256:
        return None
    return SealedExport(pin.key_set, pin.head, tuple(items))
