"""The log of an embedded vault, as its owner would send it to a server: a rewrap, a rotate, a correction, a forget."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from tests.squirrel_server.http.member import opening_of
from tests.squirrel_server.store.builder import Client, KeySetRequest, Pair, sha256


@dataclass
class MovedLog:
    """Everything after the first entry, and the owner at the head of it."""

    client: Client
    first: KeySetRequest
    pairs: list[Pair]
    kept: dict[bytes, bytes]  # objects by their hashes, of memories that live
    gone: bytes  # the object of a memory that is forgotten

    def opening(self, invite: str, **changes: Any) -> dict[str, Any]:
        """The body of POST /v1/accounts: the current key set, the log's first entry, the head to reach."""
        now = KeySetRequest(
            list(self.client.wraps), self.client.previous_keys, self.first.entry, sha256(self.client.append_key)
        )
        upload = {"seq": self.client.seq, "mac": self.client.mac.hex()}
        return {**opening_of(self.client, now, invite), "upload": upload, **changes}


def moved_log() -> MovedLog:
    """A new one; 13 entries."""
    client = Client()
    first = client.first(recovery=True)
    client.took(first)
    stays, corrected, forgotten = (os.urandom(16) for _ in range(3))
    pairs = [client.put(stays), client.put(corrected), client.put(forgotten)]
    rewrap = client.rewrap()
    client.took(rewrap)
    pairs += [(rewrap.entry, None), client.put(corrected, 2), client.put(forgotten, 2)]
    client, rotate = client.rotate()
    pairs += [(rotate.entry, None), client.put(), client.forget(forgotten, 3), client.put()]
    last = client.rewrap()
    client.took(last)
    pairs += [(last.entry, None), client.put(stays, 2)]
    kept = {sha256(body): body for entry, body in pairs if body and entry[18:34] != forgotten}
    (gone, _) = [body for entry, body in pairs if body and entry[18:34] == forgotten]
    return MovedLog(client, first, pairs, kept, gone)
