"""An account that remembers everything it ever was, and the forging that a thief of its keys could do.

`Account` is honest: it seals, chains, rewraps and rotates as a client would and hands out pages as a store would.
`forge` writes single entries with any field wrong and any key under the MAC.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from squirrel_mcp.crypto import envelope, key_set, log
from squirrel_mcp.crypto.envelope import Context
from squirrel_mcp.crypto.kdf import Argon2id, Parameters
from squirrel_mcp.crypto.key_set import KeyRing, KeySet, RetiredKey
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.log import EMPTY, PUT, REWRAP, ROTATE, TOMBSTONE, Head
from squirrel_mcp.crypto.primitives import hash_bytes
from squirrel_mcp.crypto.verifier import LogItem, LogVerifier
from tests.vectors.making.seeded import Seeded

CHEAPEST = Argon2id(time=2, memory_kib=19_456, lanes=1)
START_MS = 1_772_000_000_000


class Page(NamedTuple):
    """What a store answers to one request for the log."""

    items: list[LogItem]
    head: Head
    more: bool


class Keys(NamedTuple):
    """A key set of the account, opened, and the seq of the entry that brought it into force."""

    seq: int
    key_set: KeySet
    ring: KeyRing


class Account:
    """One account from its registration on. The same name and the same steps give the same bytes."""

    def __init__(self, name: str, *, recovery: bool = True, parameters: Parameters = CHEAPEST) -> None:
        self.random = Seeded(name)
        self.name = name
        self.parameters = parameters
        self.id = self.random(16)
        self.entries: list[bytes] = []
        self.objects: list[bytes | None] = []  # all of them, whatever a store would still hold
        self.keys: list[Keys] = []
        self.revisions: dict[bytes, int] = {}
        self.forgotten: set[bytes] = set()
        self._change_keys(REWRAP, KeyRing((), Dek.generate(self.random)), recovery=recovery)

    @property
    def head(self) -> Head:
        return self.head_at(len(self.entries))

    @property
    def dek(self) -> Dek:
        return self.keys[-1].ring.current

    @property
    def deks(self) -> list[Dek]:
        """Every key so far, oldest first."""
        return [each.dek for each in self.keys[-1].ring.retired] + [self.dek]

    @property
    def live(self) -> list[bytes]:
        return [memory_id for memory_id in self.revisions if memory_id not in self.forgotten]

    def head_at(self, seq: int) -> Head:
        return log.parse(self.entries[seq - 1]).head if seq else EMPTY

    def keys_at(self, seq: int) -> Keys:
        """What was in force after entry `seq`."""
        return [each for each in self.keys if each.seq <= seq][-1]

    # What a client does.

    def save(self, memory_id: bytes | None = None) -> bytes:
        memory_id = memory_id or self.random(16)
        self._put(memory_id, 1)
        return memory_id

    def correct(self, memory_id: bytes) -> None:
        self._put(memory_id, self.revisions[memory_id] + 1)

    def forget(self, memory_id: bytes) -> None:
        revision = self.revisions[memory_id] + 1
        self._append(self.dek, TOMBSTONE, memory_id, revision, None)
        self.revisions[memory_id] = revision
        self.forgotten.add(memory_id)

    def rewrap(self, *, passphrase: bool = True, recovery: bool = False) -> None:
        self._change_keys(REWRAP, self.keys[-1].ring, passphrase=passphrase, recovery=recovery)

    def rotate(self, *, recovery: bool = True) -> None:
        old = self.keys[-1].ring
        retired = (*old.retired, RetiredKey(old.current, *self.head))
        self._change_keys(ROTATE, KeyRing(retired, Dek.generate(self.random)), recovery=recovery)

    def _put(self, memory_id: bytes, revision: int) -> None:
        payload = b"payload %d of %s" % (revision, memory_id.hex().encode())
        record = envelope.seal(self.dek, Context(self.id, memory_id, revision), payload, self.random)
        self._append(self.dek, PUT, memory_id, revision, record)
        self.revisions[memory_id] = revision

    def _change_keys(self, op: int, ring: KeyRing, *, recovery: bool, passphrase: bool = True) -> None:
        writer = self.dek if self.keys else ring.current
        generation = len(self.keys) + 1
        made = key_set.make(
            ring,
            self.id,
            generation,
            passphrase=self.passphrase(generation) if passphrase else None,
            recovery=self.random(20) if recovery else None,
            kept=self.keys[-1].key_set if op == REWRAP and self.keys else None,
            parameters=self.parameters,
            random=self.random,
        )
        self._append(writer, op, log.NO_MEMORY, generation, made.raw)
        self.keys.append(Keys(len(self.entries), made, ring))

    def passphrase(self, generation: int) -> str:
        return f"{self.name} passphrase {generation}"

    def _append(self, dek: Dek, op: int, memory_id: bytes, revision: int, content: bytes | None) -> None:
        self.entries.append(
            log.make(
                dek,
                self.id,
                self.head,
                op,
                time_ms=START_MS + 1000 * len(self.entries),
                revision=revision,
                memory_id=memory_id,
                content=content,
            )
        )
        self.objects.append(content if op == PUT else None)

    # What a store answers.

    def items(self, after: int = 0, upto: int | None = None) -> list[LogItem]:
        """Entries after `after` with the objects that `objects=latest` sends when `upto` is the head."""
        upto = len(self.entries) if upto is None else upto
        latest: dict[bytes, int] = {}
        for raw in self.entries[:upto]:
            latest[log.parse(raw).memory_id] = log.parse(raw).seq
        return [
            (raw, self.objects[index] if latest[log.parse(raw).memory_id] == index + 1 else None)
            for index, raw in enumerate(self.entries[:upto])
        ][after:]

    def pages(self, sizes: Iterable[int] = (), after: int = 0, upto: int | None = None) -> list[Page]:
        """The feed cut into pages of these sizes; what is left over is one last page."""
        return cut(self.items(after, upto), self.head_at(len(self.entries) if upto is None else upto), sizes)

    # What a client believes.

    def verifier(self, pinned: Head | None = None, seq: int | None = None) -> LogVerifier:
        """A verifier with the key set in force at `seq`, by default the newest."""
        keys = self.keys[-1] if seq is None else self.keys_at(seq)
        return LogVerifier(self.id, keys.key_set, keys.ring, pinned)


def cut(items: Sequence[LogItem], head: Head, sizes: Iterable[int] = ()) -> list[Page]:
    rest, found = list(items), []
    for size in sizes:
        if size < len(rest):
            found.append(Page(rest[:size], head, True))
            rest = rest[size:]
    return [*found, Page(rest, head, False)]


def read(verifier: LogVerifier, pages: Iterable[Page], account_head: Head | None = None) -> None:
    """One sync up to, but without, `commit`: raises what the verifier raises."""
    pages = list(pages)
    verifier.expect(pages[-1].head if account_head is None else account_head)
    for page in pages:
        verifier.page(page.items, page.head, more=page.more)
    verifier.finish()


def forge(
    dek: Dek,
    account_id: bytes,
    previous: Head,
    op: int,
    *,
    revision: int = 1,
    memory_id: bytes = bytes(16),
    content: bytes | None = None,
    sha256: bytes | None = None,
    seq: int | None = None,
    prev_mac: bytes | None = None,
    version: int = 1,
    time_ms: int = START_MS,
) -> bytes:
    """An entry with a MAC that is right under `dek`, whatever its fields say."""
    digest = sha256 if sha256 is not None else log.NO_HASH if content is None else hash_bytes(content)
    body = struct.pack(
        ">BBQQ16sQ32s32s",
        version,
        op,
        previous.seq + 1 if seq is None else seq,
        time_ms,
        memory_id,
        revision,
        digest,
        previous.mac if prev_mac is None else prev_mac,
    )
    return body + log.entry_mac(dek, account_id, body)


def reforge(dek: Dek, account_id: bytes, raw: bytes, **changes: int | bytes) -> bytes:
    """`raw` with these fields replaced and a fresh MAC."""
    entry = log.parse(raw)._replace(**changes)  # type: ignore[arg-type]
    body = struct.pack(">BBQQ16sQ32s32s", *entry[:-1])
    return body + log.entry_mac(dek, account_id, body)
