"""One account, followed through a store that is not trusted: pull, append, change keys, pin.

The replica holds the keys and the verified log. What an entry stores is opened and kept by a `Reader` (the vault),
which is told of changes only once they are verified.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import Any, NamedTuple, Protocol

from squirrel_mcp.crypto import entropy, envelope, log
from squirrel_mcp.crypto.key_set import KeyRing, KeySet
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.pin import Pin
from squirrel_mcp.crypto.primitives import hash_bytes
from squirrel_mcp.crypto.verifier import LogItem, LogVerifier, Trace, Update
from squirrel_mcp.errors import (
    AppendDenied,
    Conflict,
    ForeignAccount,
    HeadMoved,
    KeysChanged,
    LogDamaged,
    NotFound,
    NotUnlocked,
    OmissionDetected,
    RecordDamaged,
    StoreFull,
    StoreUnavailable,
    UpdateRequired,
    Verdict,
)
from squirrel_mcp.sync.pins import PinFolder, check_ring, refuse_downgrade
from squirrel_mcp.sync.races import pause
from squirrel_mcp.sync.store import AccountRecord, Store

Unlock = Callable[[KeySet], KeyRing]
"""Opens a key set with the secret in hand; NotUnlocked where that is not possible."""

_ATTEMPTS = 100  # each lost race means that somebody else's write went through


class Change(NamedTuple):
    """One entry to append: a put (1) with its payload, or a tombstone (2)."""

    op: int
    memory_id: bytes
    revision: int
    payload: bytes | None = None


class Reader(Protocol):
    """Who makes memories of updates."""

    def open(self, update: Update) -> Any:
        """Open one update. It is not verified yet: nothing may be shown before `apply`."""

    def apply(self, opened: Sequence[Any]) -> None:
        """These are verified now."""


class Replica:
    """Follows one account. Not thread-safe; one owner calls it."""

    def __init__(
        self,
        store: Store,
        pins: PinFolder,
        unlock: Unlock,
        reader: Reader,
        *,
        time_ms: Callable[[], int],
        random: entropy.Random = entropy.system,
    ) -> None:
        """Fetches and opens the key set; raises the verdicts that come before the log. `pull` reads the rest."""
        self._store, self._pins, self._unlock, self._reader = store, pins, unlock, reader
        self._time_ms, self._random = time_ms, random
        try:
            record, self.offline = store.account(), False
        except StoreUnavailable as error:
            record, self.offline = _pinned_account(pins, store, error), True
        self.account_id = record.account_id
        self._key_set = KeySet.parse(record.wraps, record.previous_keys, record.account_id)
        sealed = pins.check(store.route, self._key_set)
        self._ring = unlock(self._key_set)
        if sealed is not None:
            check_ring(sealed, self._ring)
        pinned = sealed.pin.head if sealed else None
        self._pinned = sealed.pin if sealed else None
        self._verifier = LogVerifier(self.account_id, self._key_set, self._ring, pinned)
        self._verifier.expect(record.head)
        self.verdict: Verdict | None = None

    @property
    def head(self) -> Head:
        return self._verifier.head

    @property
    def last_seen(self) -> float | None:
        """Seconds since the epoch when this device last was in step with the store; None if never."""
        return self._pins.seen(self.account_id)

    @property
    def key_set(self) -> KeySet:
        return self._key_set

    @property
    def ring(self) -> KeyRing:
        return self._ring

    def trace(self, memory_id: bytes) -> Trace | None:
        """What the verified log says of a memory."""
        return self._verifier.trace(memory_id)

    def pull(self) -> None:
        """Read and verify what is new. LogDamaged and UpdateRequired leave the verified prefix with the reader."""
        if self.verdict is not None:
            raise self.verdict
        opened: list[Any] = []
        try:
            self._read(opened)
            self._verifier.finish()
        except (LogDamaged, UpdateRequired) as verdict:
            self.verdict = verdict
            self._reader.apply(opened[: self._verifier.confirmed])
            self._discard()
            raise
        except BaseException:
            self._discard()
            raise
        self._commit(opened)

    def append(self, plan: Callable[[], Sequence[Change]]) -> None:
        """Write what `plan` wants now. It is asked again after every lost race; no changes mean nothing is left to do.

        A write whose answer was lost is found in the log and counts as done.
        """
        self._refuse_damaged()
        attempts: list[Sequence[LogItem]] = []
        for _ in range(_ATTEMPTS):
            changes = plan()
            if not changes:
                return
            items = self._seal(changes)
            attempts.append(items)
            begun = monotonic()
            try:
                head = self._store.append(self._ring.current.append, items)
            except (HeadMoved, AppendDenied, StoreUnavailable) as error:
                before = self.head
                if isinstance(error, HeadMoved):
                    sleep(pause(len(attempts), monotonic() - begun))
                self._pull_after_write()
                if any(self._has(log.parse(attempt[0][0])) for attempt in attempts):
                    return
                if self.head == before:
                    raise
            else:
                self._accept(items, head)
                return
        raise StoreUnavailable("Others kept writing first; try again.")

    def change_keys(self, op: int, build: Callable[[Head, int], tuple[KeySet, KeyRing]]) -> None:
        """Replace the key set (op 3 or 4) by what `build` makes for (head, generation).

        Conflict if another device changed the keys first: that change stands, and this one is not tried again.
        """
        self._refuse_damaged()
        old, generation = self._ring.current, self._key_set.generation + 1
        mine: dict[bytes, KeyRing] = {}
        unlock, self._unlock = self._unlock, lambda key_set: mine.get(key_set.raw) or unlock(key_set)
        try:
            for _ in range(_ATTEMPTS):
                key_set, ring = build(self.head, generation)
                mine[key_set.raw] = ring
                entry = log.make(
                    old, self.account_id, self.head, op,
                    time_ms=self._time_ms(), revision=generation, content=key_set.raw,
                )  # fmt: skip
                verifier = hash_bytes(ring.current.append) if op == log.ROTATE else None
                try:
                    head = self._store.replace_key_set(old.append, key_set, entry, verifier)
                except (HeadMoved, AppendDenied, StoreUnavailable):
                    before = self.head
                    self._pull_after_write()
                    if self._key_set.raw in mine:
                        return
                    if self._key_set.generation >= generation:
                        raise Conflict("The keys were changed elsewhere at the same time; that stands.") from None
                    if self.head == before:
                        raise
                else:
                    self._use_keys(key_set, ring)
                    self._accept([(entry, None)], head)
                    return
        finally:
            self._unlock = unlock
        raise StoreUnavailable("Others kept writing first; try again.")

    def object(self, memory_id: bytes, revision: int) -> bytes:
        """The payload of one revision; NotFound once forgotten, OmissionDetected, RecordDamaged if it does not open."""
        trace = self.trace(memory_id)
        if trace is None or trace.forgotten or not 1 <= revision <= trace.revision:
            raise NotFound("There is no such revision.")
        sha256 = trace.hashes[revision - 1]
        content = self._store.object(sha256)
        if hash_bytes(content) != sha256:
            raise OmissionDetected(f"The store sends something else for revision {revision} of {memory_id.hex()}.")
        dek = self._ring.at(trace.rotations[revision - 1])
        context = envelope.Context(self.account_id, memory_id, revision)
        payload = envelope.open_record(dek, context, content) if dek else None
        if payload is None:
            raise RecordDamaged(memory_id.hex())
        return payload

    def fingerprint(self, seq: int) -> Head:
        """The verified head as it was at `seq`; NotFound past the end."""
        if not 1 <= seq <= self.head.seq:
            raise NotFound(f"The log has entries 1 to {self.head.seq}.")
        if seq == self.head.seq:
            return self.head
        raw, _ = self._store.read_log(seq - 1, limit=1).items[0]
        entry = log.parse(raw)
        keys = [key.dek for key in self._ring.retired] + [self._ring.current]
        if entry.seq != seq or all(log.entry_mac(dek, self.account_id, raw) != entry.mac for dek in keys):
            raise LogDamaged(seq, "it is not the entry that was verified")
        return entry.head

    def close(self) -> None:
        self._store.close()

    def _pull_after_write(self) -> None:
        try:
            self.pull()
        except StoreUnavailable as error:
            raise type(error)(
                f"{error} It is not known whether the change was stored: look for it before you repeat it."
            ) from None

    def _read(self, opened: list[Any]) -> None:
        verifier = self._verifier
        while True:
            page = self._store.read_log(verifier.reading.seq)
            if any(self._needs_keys(raw) for raw, _ in page.items):
                self._fetch_keys()
            try:
                verifier.page(page.items, page.head, more=page.more)
            finally:
                opened.extend(map(self._reader.open, verifier.drain()))
            # Keys fetched in between may name a head that this page did not reach yet.
            if not page.more and (not page.items or verifier.reached_expected):
                return

    def _needs_keys(self, raw: bytes) -> bool:
        # Not verified yet: this only decides whether to fetch the key set again.
        if len(raw) != log.ENTRY_BYTES or raw[1] not in log.KEY_OPS:
            return False
        return log.parse(raw).revision > self._key_set.generation

    def _fetch_keys(self) -> None:
        record = self._store.account()
        if record.account_id != self.account_id:
            raise ForeignAccount("Another account's memories stand where this device knows a different account.")
        key_set = KeySet.parse(record.wraps, record.previous_keys, self.account_id)
        refuse_downgrade(self._key_set, key_set)
        try:
            ring = self._unlock(key_set)
        except NotUnlocked:
            raise KeysChanged(
                "The passphrase was changed elsewhere. Put the new one where this program takes it from; until then "
                "memories are shown as they were and nothing is saved."
            ) from None
        self._use_keys(key_set, ring)
        self._verifier.expect(record.head)

    def _use_keys(self, key_set: KeySet, ring: KeyRing) -> None:
        self._verifier.replace_keys(key_set, ring)
        self._key_set, self._ring = key_set, ring

    def _seal(self, changes: Sequence[Change]) -> list[LogItem]:
        dek, head = self._ring.current, self.head
        items: list[LogItem] = []
        for change in changes:
            content = None
            if change.payload is not None:
                context = envelope.Context(self.account_id, change.memory_id, change.revision)
                content = envelope.seal(dek, context, change.payload, self._random)
            entry = log.make(
                dek, self.account_id, head, change.op,
                time_ms=self._time_ms(), revision=change.revision, memory_id=change.memory_id, content=content,
            )  # fmt: skip
            head = log.parse(entry).head
            items.append((entry, content))
        return items

    def _has(self, entry: log.Entry) -> bool:
        """Whether this entry's content is on the verified log, perhaps re-chained."""
        trace = self.trace(entry.memory_id)
        if trace is None:
            return False
        if entry.op == log.TOMBSTONE:
            return trace.forgotten
        return entry.revision <= len(trace.hashes) and trace.hashes[entry.revision - 1] == entry.sha256

    def _accept(self, items: Sequence[LogItem], head: Head) -> None:
        verifier = self._verifier
        try:
            verifier.page(items, head, more=False)
            opened = [self._reader.open(update) for update in verifier.drain()]
            verifier.finish()
        except BaseException:
            self._discard()
            raise
        self._commit(opened)

    def _commit(self, opened: Sequence[Any]) -> None:
        self._verifier.commit()
        self._reader.apply(opened)
        self._store.settled(self.head)
        pin = Pin(self._key_set, self.head, (self._store.route,))
        known = self._pinned
        if known is None or known.head != pin.head or not set(pin.routes) <= set(known.routes):
            # A pin that lags behind is harmless, and what was stored is stored: the next sync tries again.
            with suppress(StoreFull, StoreUnavailable):
                self._pins.write(pin, self._ring)
                self._pinned = pin
        elif not self.offline:
            self._pins.touch(self.account_id)

    def _discard(self) -> None:
        # The keys too: a set that a liar sent must not stand in the way of the right one.
        self._verifier.discard()
        self._key_set, self._ring = self._verifier.keys

    def _refuse_damaged(self) -> None:
        if self.verdict is not None:
            raise self.verdict


def _pinned_account(pins: PinFolder, store: Store, error: StoreUnavailable) -> AccountRecord:
    """The account as this device last saw it, while the store cannot be reached; StoreUnavailable if it never did."""
    known = pins.by_route(store.route)
    if len(known) != 1:
        raise type(error)(f"{error} This device has not seen the account yet.") from None
    pin = known[0].pin
    wraps = [wrap.raw for wrap in pin.key_set.wraps]
    return AccountRecord(pin.account_id, wraps, pin.key_set.previous_keys, pin.head)
