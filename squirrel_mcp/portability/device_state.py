"""What one device has seen of an account on a server, as a sealed export: pin and state cache put together.

No key is needed. What comes out is verified when it is imported, as any export is.
"""

from __future__ import annotations

from squirrel_mcp.crypto import log
from squirrel_mcp.crypto.pin import Pin
from squirrel_mcp.crypto.primitives import hash_bytes
from squirrel_mcp.portability.sealed_file import SealedExport
from squirrel_mcp.sync.state_cache import StateCache
from squirrel_mcp.sync.store import Store


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


def complete(export: SealedExport, store: Store) -> SealedExport:
    """With the earlier revisions that the store still has: a cache keeps the latest ones only.

    The store is not believed: an object is taken for its hash, and its log is not read further than the export's.
    """
    entries = [(log.parse(raw), raw, content) for raw, content in export.items]
    forgotten = {entry.memory_id for entry, _, _ in entries if entry.op == log.TOMBSTONE}
    missing = {
        entry.sha256
        for entry, _, content in entries
        if entry.op == log.PUT and content is None and entry.memory_id not in forgotten
    }
    found: dict[bytes, bytes] = {}
    after, more = 0, True
    while more and len(found) < len(missing) and after < export.head.seq:
        page = store.read_log(after, objects="all")
        for _, content in page.items:
            if content is not None and (sha256 := hash_bytes(content)) in missing:
                found[sha256] = content
        after += len(page.items)
        more = page.more and bool(page.items)
    items = [(raw, found.get(entry.sha256) if content is None else content) for entry, raw, content in entries]
    return SealedExport(export.key_set, export.head, tuple(items))
