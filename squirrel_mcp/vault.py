"""An unlocked account: its memories, and every way they change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Literal, NamedTuple, Protocol

from squirrel_mcp.catalog import Catalog
from squirrel_mcp.crypto import entropy, envelope, kdf, key_set, log
from squirrel_mcp.crypto.key_set import KeyRing, KeySet, RetiredKey
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.primitives import hash_bytes
from squirrel_mcp.crypto.verifier import Update
from squirrel_mcp.errors import InvalidInput, LogDamaged, MemoryNotFound, RecordDamaged, UpdateRequired, Verdict
from squirrel_mcp.memory import Changes, Draft, Memory, apply_changes, from_draft, from_json, to_json
from squirrel_mcp.sync.pins import PinFolder
from squirrel_mcp.sync.replica import Change, Replica, Unlock
from squirrel_mcp.sync.store import Store

Clock = Callable[[], datetime]
_BATCH_BYTES = 1 << 20  # a store takes bodies of up to 2 MiB; base64 and headers need room


class Listener(Protocol):
    """Who wants to know of every memory that is new, changed or gone."""

    def put_many(self, memories: Iterable[Memory]) -> None: ...

    def remove_many(self, memory_ids: Collection[str]) -> None: ...


class Outcome(NamedTuple):
    """What became of a change, and the memory as it now is (None where there is none)."""

    status: Literal["saved", "already_present", "updated", "unchanged", "conflict", "not_found", "forgotten"]
    memory: Memory | None


class _Opened(NamedTuple):
    """An update whose record was opened; neither a memory nor an error: forgotten or replaced later in the log."""

    memory_id: str
    revision: int
    memory: Memory | None = None
    damage: RecordDamaged | None = None
    forgotten: bool = False


def utc_now() -> datetime:
    return datetime.now(UTC)


class Registrar(Protocol):
    """Where a new account can be made."""

    def register(self, key_set: KeySet, entry: bytes, append_verifier: bytes) -> Head: ...


def create_account(
    store: Registrar,
    passphrase: str,
    *,
    recovery: bytes | None = None,
    clock: Clock = utc_now,
    parameters: kdf.Parameters = kdf.DEFAULT,
    random: entropy.Random = entropy.system,
) -> None:
    """Make a new account with a new key; PassphraseRefused for a passphrase that is too short.

    recovery: the 20 bytes of a recovery code that opens it from the beginning.
    """
    kdf.check_new(passphrase)
    account_id, dek = random(16), Dek.generate(random)
    keys = key_set.make(
        KeyRing((), dek), account_id, 1,
        passphrase=passphrase, recovery=recovery, parameters=parameters, random=random,
    )  # fmt: skip
    entry = log.make(dek, account_id, log.EMPTY, log.REWRAP, time_ms=_milliseconds(clock), revision=1, content=keys.raw)
    store.register(keys, entry, hash_bytes(dek.append))


class Vault:
    """Not thread-safe: one owner calls it. `sync` first, then read; every write syncs by itself where it has to."""

    def __init__(
        self,
        store: Store,
        pins: PinFolder,
        unlock: Unlock,
        *,
        clock: Clock = utc_now,
        parameters: kdf.Parameters = kdf.DEFAULT,
        random: entropy.Random = entropy.system,
    ) -> None:
        """Unlocks and reads everything. NotUnlocked, a Verdict or a StoreError where that fails.

        With LogDamaged and UpdateRequired the verified part stays readable: see `verdict`.
        """
        self.memories = Catalog()
        self.damaged: dict[str, RecordDamaged] = {}
        self._listeners: list[Listener] = [self.memories]
        self._clock, self._parameters, self._random = clock, parameters, random
        self._replica = Replica(store, pins, unlock, self, time_ms=lambda: _milliseconds(clock), random=random)
        with suppress(LogDamaged, UpdateRequired):  # kept as `verdict`
            self._replica.pull()

    @property
    def account_id(self) -> bytes:
        return self._replica.account_id

    @property
    def head(self) -> Head:
        return self._replica.head

    @property
    def key_set(self) -> KeySet:
        return self._replica.key_set

    @property
    def ring(self) -> KeyRing:
        """The account's keys, for the companion's vector file."""
        return self._replica.ring

    @property
    def verdict(self) -> Verdict | None:
        """Why only the beginning of the log is shown and nothing can be saved, if that is so."""
        return self._replica.verdict

    @property
    def offline(self) -> bool:
        """Whether all that is known is what this device had seen before: the store has not answered yet."""
        return self._replica.offline

    @property
    def last_seen(self) -> datetime | None:
        """When this device last saw the store, as far as that was noted."""
        seen = self._replica.last_seen
        return None if seen is None else datetime.fromtimestamp(seen, UTC)

    def add_listener(self, listener: Listener) -> None:
        """Tell it of every memory there is, and from now on of every change."""
        listener.put_many(self.memories)
        self._listeners.append(listener)

    def sync(self) -> None:
        """Take in what others wrote. Does nothing when the log is known to be damaged."""
        if self.verdict is None:
            self._replica.pull()
            self._replica.offline = False

    def save(self, draft: Draft) -> Outcome:
        """Store a new memory, unless the same one is there already."""
        memory = from_draft(draft, self._random(16).hex(), self._clock())
        payload, present = to_json(memory), None

        def plan() -> list[Change]:
            nonlocal present
            present = self.memories.same(memory.text, memory.entity, memory.category)
            return [] if present else [Change(log.PUT, bytes.fromhex(memory.id), 1, payload)]

        self._replica.append(plan)
        return Outcome("already_present", present) if present else Outcome("saved", memory)

    def correct(self, memory_id: str, changes: Changes, expected_revision: int | None = None) -> Outcome:
        """Make a new revision. A change that somebody else made meanwhile is a conflict, unless it is the same."""
        current = self.memories.get(memory_id)
        if current is None:
            return Outcome("not_found", None)
        base = expected_revision or current.revision
        corrected: Memory | None = None
        outcome = Outcome("unchanged", current)

        def plan() -> list[Change]:
            nonlocal corrected, outcome
            now = self.memories.get(memory_id)
            if now is None:
                outcome = Outcome("not_found", None)
                return []
            corrected = apply_changes(now, changes, self._clock())
            if corrected is now:
                outcome = Outcome("unchanged", now)
                return []
            if now.revision != base:
                outcome = Outcome("conflict", now)
                return []
            outcome = Outcome("updated", corrected)
            return [Change(log.PUT, bytes.fromhex(memory_id), corrected.revision, to_json(corrected))]

        self._replica.append(plan)
        return outcome

    def forget(self, memory_id: str, expected_revision: int | None = None) -> Outcome:
        """Erase every revision. A memory that does not open can be forgotten too."""
        raw_id = _raw_id(memory_id)
        trace = self._replica.trace(raw_id) if raw_id else None
        if raw_id is None or trace is None or trace.forgotten:
            return Outcome("not_found", None)
        base = expected_revision or trace.revision
        outcome = Outcome("forgotten", None)

        def plan() -> list[Change]:
            nonlocal outcome
            now = self._replica.trace(raw_id)
            if now is None or now.forgotten:
                return []
            if now.revision != base:
                outcome = Outcome("conflict", self.memories.get(memory_id))
                return []
            return [Change(log.TOMBSTONE, raw_id, now.revision + 1)]

        self._replica.append(plan)
        return outcome

    def history(self, memory_id: str) -> list[Memory]:
        """The earlier revisions that open, latest first; NotFound for an unknown or forgotten memory."""
        raw_id = _raw_id(memory_id)
        trace = self._replica.trace(raw_id) if raw_id else None
        if raw_id is None or trace is None or trace.forgotten:
            raise MemoryNotFound
        revisions = []
        for revision in range(trace.revision - 1, 0, -1):
            try:
                revisions.append(from_json(self._replica.object(raw_id, revision), memory_id, revision))
            except RecordDamaged:
                continue  # one damaged revision; the rest goes on
        return revisions

    def revision_of(self, memory_id: str) -> tuple[int, bool]:
        """(latest revision, whether it was forgotten); (0, False) for an unknown id."""
        trace = self._replica.trace(bytes.fromhex(memory_id))
        return (trace.revision, trace.forgotten) if trace else (0, False)

    def put_revisions(self, revisions: Sequence[Memory], unless_same: Collection[str] = ()) -> None:
        """Write memories as they are, id, dates and revision included (an import). Those that exist are left alone.

        `unless_same` holds the ids that were made up for this import: those are left out where the vault has the same
        text, entity and category by then.
        """
        if any(_raw_id(memory.id) in (None, log.NO_MEMORY) for memory in revisions):
            raise InvalidInput("id", "an id has 32 lower-case hex digits, not all of them zero")
        start = 0
        while start < len(revisions):
            batch: list[Change] = []
            size = 0
            for memory in revisions[start:]:
                payload = to_json(memory)
                size += len(payload) + 1024
                if batch and size > _BATCH_BYTES:
                    break
                batch.append(Change(log.PUT, bytes.fromhex(memory.id), memory.revision, payload))
            made_up = [memory for memory in revisions[start : start + len(batch)] if memory.id in unless_same]
            self._replica.append(partial(self._still_next, batch, made_up))
            start += len(batch)

    def change_passphrase(self, passphrase: str) -> None:
        """Make the passphrase slot anew; the recovery code stays. The old passphrase opens nothing afterwards."""
        kdf.check_new(passphrase)
        self._rewrap(passphrase=passphrase)

    def set_recovery(self, secret: bytes) -> None:
        """Make a recovery code (20 bytes) valid; an earlier one no longer is."""
        self._rewrap(recovery=secret)

    def rotate(self, passphrase: str, recovery: bytes | None) -> None:
        """A new DEK for what is written from now on. Without `recovery` there is no recovery code afterwards."""
        kdf.check_new(passphrase)
        dek = Dek.generate(self._random)

        def ring(head: Head) -> KeyRing:
            old = self._replica.ring
            return KeyRing((*old.retired, RetiredKey(old.current, *head)), dek)

        self._change_keys(log.ROTATE, ring, passphrase, recovery, kept=None)

    def fingerprint(self, seq: int | None = None) -> str:
        """Head (or the entry at `seq`) as two devices compare it."""
        head = self.head if seq is None else self._replica.fingerprint(seq)
        return head.fingerprint

    def head_at(self, seq: int) -> Head:
        """The head as it was at `seq`; NotFound past the end."""
        return self._replica.fingerprint(seq)

    def close(self) -> None:
        self._replica.close()

    def open(self, update: Update) -> _Opened:
        """Part of `Reader`: the memory in an update."""
        entry = update.entry
        memory_id = entry.memory_id.hex()
        if entry.op == log.TOMBSTONE:
            return _Opened(memory_id, entry.revision, forgotten=True)
        if update.object is None:
            return _Opened(memory_id, entry.revision)
        context = envelope.Context(self.account_id, entry.memory_id, entry.revision)
        payload = envelope.open_record(update.dek, context, update.object)
        if payload is None:
            return _Opened(memory_id, entry.revision, damage=RecordDamaged(memory_id))
        try:
            return _Opened(memory_id, entry.revision, memory=from_json(payload, memory_id, entry.revision))
        except RecordDamaged as damage:
            return _Opened(memory_id, entry.revision, damage=damage)

    def apply(self, opened: Sequence[_Opened]) -> None:
        """Part of `Reader`: these updates are verified."""
        latest = {change.memory_id: change for change in opened}
        memories, gone = [], []
        for memory_id, change in latest.items():
            self.damaged.pop(memory_id, None)
            if change.memory is not None:
                memories.append(change.memory)
                continue
            if self.memories.get(memory_id) is not None:
                gone.append(memory_id)
            if not change.forgotten:
                # Only before a damaged entry can the latest revision be one whose object the store did not send.
                self.damaged[memory_id] = change.damage or RecordDamaged(memory_id)
        for listener in self._listeners:
            if gone:
                listener.remove_many(gone)
            if memories:
                listener.put_many(memories)

    def _rewrap(self, *, passphrase: str | None = None, recovery: bytes | None = None) -> None:
        kept = self._replica.key_set
        self._change_keys(log.REWRAP, lambda _: self._replica.ring, passphrase, recovery, kept)

    def _change_keys(
        self,
        op: int,
        ring: Callable[[Head], KeyRing],
        passphrase: str | None,
        recovery: bytes | None,
        kept: KeySet | None,
    ) -> None:
        wrapped: KeySet | None = None  # the slow part, done once; only the previous keys depend on the head

        def build(head: Head, generation: int) -> tuple[KeySet, KeyRing]:
            nonlocal wrapped
            keys = ring(head)
            wrapped = key_set.make(
                keys,
                self.account_id,
                generation,
                passphrase=None if wrapped else passphrase,
                recovery=None if wrapped else recovery,
                kept=wrapped or kept,
                parameters=self._parameters,
                random=self._random,
            )
            return wrapped, keys

        self._replica.change_keys(op, build)

    def _still_next(self, batch: Sequence[Change], made_up: Sequence[Memory]) -> list[Change]:
        known: dict[bytes, int] = {}
        present = {
            bytes.fromhex(memory.id)
            for memory in made_up
            if self.memories.same(memory.text, memory.entity, memory.category)
        }
        changes = []
        for change in batch:
            trace = self._replica.trace(change.memory_id)
            if change.memory_id in present or (trace is not None and trace.forgotten):
                continue  # it is there already, or was forgotten: nothing revives that
            revision = known.get(change.memory_id, trace.revision if trace else 0)
            if change.revision == revision + 1:
                changes.append(change)
                known[change.memory_id] = change.revision
        return changes


def _raw_id(memory_id: str) -> bytes | None:
    """16 bytes, or None for what is no id at all."""
    try:
        raw = bytes.fromhex(memory_id)
    except ValueError:
        return None
    return raw if len(raw) == 16 and raw.hex() == memory_id else None


def _milliseconds(clock: Clock) -> int:
    return int(clock().timestamp() * 1000)
