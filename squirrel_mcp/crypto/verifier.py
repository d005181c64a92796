"""What a store says about an account, believed only after it fits: every rule about the log in one place.

`LogVerifier` cannot reach a disk or a network. It is given the opened keys, the head this device has seen before
(the pin) and pages of the log, and either accepts them or raises the verdict of section 3 of the protocol. Nothing
it has read counts until `finish` accepted it: `commit` then makes it the new verified state, `discard` drops it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from squirrel_mcp.crypto.key_set import KeyRing, KeySet
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.log import (
    EMPTY,
    ENTRY_BYTES,
    KEY_OPS,
    NO_HASH,
    NO_MEMORY,
    PUT,
    REWRAP,
    ROTATE,
    TOMBSTONE,
    Entry,
    Head,
    entry_mac,
    parse,
)
from squirrel_mcp.crypto.primitives import equal, hash_bytes
from squirrel_mcp.errors import (
    ForeignKey,
    ForkDetected,
    KeyRecordDowngrade,
    LogDamaged,
    OmissionDetected,
    RollbackDetected,
    UpdateRequired,
)

LogItem = tuple[bytes, bytes | None]
"""An entry and the object it stores, where the store still has and sends it."""


class Trace(NamedTuple):
    """What the log says of one memory: the hash of every revision, and whether it was forgotten.

    Item i of `hashes` and `rotations` belongs to revision i + 1: the object's hash, and how many rotate entries
    came before, which tells the key that sealed it. A tombstone is a revision that adds to neither.
    """

    revision: int
    hashes: tuple[bytes, ...]
    rotations: tuple[int, ...] = ()
    forgotten: bool = False


class Update(NamedTuple):
    """One verified change, in the order of the log. `object` is None where a later entry replaced it."""

    entry: Entry
    object: bytes | None
    dek: Dek


class _Position(NamedTuple):
    """How far the log was followed."""

    head: Head = EMPTY
    rotations: int = 0
    generation: int = 0
    key_set_sha256: bytes = NO_HASH


class LogVerifier:
    """Follows one account's log. `pinned` is the head known from before, if any."""

    def __init__(self, account_id: bytes, key_set: KeySet, ring: KeyRing, pinned: Head | None = None) -> None:
        self._account_id = account_id
        self._key_set = key_set
        self._ring = ring
        self._accepted_keys = (key_set, ring)
        self._pinned = pinned or EMPTY
        self._accepted = _Position()
        self._position = _Position()
        self._traces: dict[bytes, Trace] = {}
        self._pending: dict[bytes, Trace] = {}
        self._without_object: set[bytes] = set()
        self._updates: list[Update] = []
        self._read_updates = 0
        self._firm_updates = 0  # of these, the ones before a rotate entry that fitted or up to the pin
        self._must_reach: Head | None = None
        self._macs: list[bytes] = []  # of every entry since the accepted state

    @property
    def head(self) -> Head:
        """The last accepted entry."""
        return self._accepted.head

    @property
    def reading(self) -> Head:
        """The last entry read, accepted or not: where the next page goes on."""
        return self._position.head

    @property
    def reached_expected(self) -> bool:
        """Whether the head given to `expect` was read."""
        return self._must_reach is None or self._position.head.seq >= self._must_reach.seq

    @property
    def generation(self) -> int:
        return self._accepted.generation

    @property
    def keys(self) -> tuple[KeySet, KeyRing]:
        """The key set it goes by, and what it opened to."""
        return self._key_set, self._ring

    @property
    def pinned(self) -> Head:
        """The later of the pin and what was accepted here."""
        return self._pinned

    @property
    def confirmed(self) -> int:
        """How many of the updates since the last accepted state no later entry can take back.

        An entry under a retired key is one only when the rotation that ended it, or the pinned head, was reached:
        whoever stole that key could have written it too.
        """
        # Asked anew each time: `replace_keys` may just have told that the key of what was read is a retired one.
        newest = self._position.rotations == len(self._ring.retired)
        return self._read_updates if newest else self._firm_updates

    def trace(self, memory_id: bytes) -> Trace | None:
        return self._traces.get(memory_id)

    def expect(self, account_head: Head) -> None:
        """The head that came with the key set: it must be on the log. RollbackDetected, ForkDetected."""
        self._check_head(account_head)
        self._must_reach = account_head

    def replace_keys(self, key_set: KeySet, ring: KeyRing) -> None:
        """Go on with a later key set. ForeignKey unless every key used so far has its place in it."""
        used = [key.dek for key in self._ring.retired] + [self._ring.current]
        known = [key.dek for key in ring.retired] + [ring.current]
        if known[: len(used)] != used:
            raise ForeignKey("The account now has a key that does not follow from the one known here.")
        for before, now in zip(self._ring.retired, ring.retired, strict=False):
            if before != now:
                raise LogDamaged(before.seq + 1, "a rotation stands where the account did not rotate")
        self._key_set, self._ring = key_set, ring

    def page(self, items: Sequence[LogItem], head: Head, *, more: bool) -> None:
        """Check one page. Raises the first verdict that fits; what was read before it is still drained."""
        self._check_head(head)
        if more and not items:
            raise OmissionDetected("The store promised more of the log and sent nothing.")
        for raw, content in items:
            self._read(raw, content)
        if not more and self._position.head != head:
            raise OmissionDetected("The log ends before the head that the store names.")

    def drain(self) -> list[Update]:
        """The changes read since the last drain, in the order of the log; not to be shown before `finish`."""
        updates, self._updates = self._updates, []
        return updates

    def finish(self) -> None:
        """Check the log's end against the keys; raises where the two disagree or an object is missing."""
        position = self._position
        if position.head.seq < self.pinned.seq:
            raise RollbackDetected(_ROLLED_BACK)
        if self._must_reach is not None and not self._is_on_log(self._must_reach):
            raise OmissionDetected("The head of the account is not on the log.")
        for memory_id in self._without_object:
            if not self._pending[memory_id].forgotten:
                raise OmissionDetected(f"The store does not send memory {memory_id.hex()}.")
        if position.rotations != len(self._ring.retired) or self._ring.current.kid != self._key_set.kid:
            raise LogDamaged(position.head.seq, "it ends before all earlier keys were retired")
        if (position.key_set_sha256, position.generation) != (
            self._key_set.sha256,
            self._key_set.generation,
        ):
            raise KeyRecordDowngrade("The key record is not the one that the log names last.")

    def commit(self) -> None:
        """Make what `finish` checked the accepted state."""
        self._traces.update(self._pending)
        self._accepted = self._position
        self._accepted_keys = (self._key_set, self._ring)
        if self._accepted.head.seq > self._pinned.seq:
            self._pinned = self._accepted.head
        self._forget_reading()

    def discard(self) -> None:
        """Go back to the accepted state and its keys."""
        self._position = self._accepted
        self._key_set, self._ring = self._accepted_keys
        self._forget_reading()

    def _forget_reading(self) -> None:
        self._pending, self._without_object, self._updates, self._macs = {}, set(), [], []
        self._read_updates = self._firm_updates = 0
        self._must_reach = None

    def _check_head(self, head: Head) -> None:
        pinned = self.pinned
        if head.seq < pinned.seq:
            raise RollbackDetected(_ROLLED_BACK)
        if pinned.seq and head.seq == pinned.seq and head != pinned:
            raise ForkDetected(_FORKED)

    def _is_on_log(self, head: Head) -> bool:
        accepted = self._accepted.head
        if head.seq <= accepted.seq:
            return head == accepted  # `expect` has refused everything below
        index = head.seq - accepted.seq - 1
        return index < len(self._macs) and self._macs[index] == head.mac

    def _read(self, raw: bytes, content: bytes | None) -> None:
        position = self._position
        expected = position.head.seq + 1
        if raw and (raw[0] != 1 or (len(raw) > 1 and not PUT <= raw[1] <= ROTATE)):
            raise UpdateRequired(f"Entry {expected} was written by a later version: update this program.")
        if len(raw) != ENTRY_BYTES:
            raise LogDamaged(expected, "an entry has the wrong length")
        entry = parse(raw)
        pinned = self.pinned
        if pinned.seq and (
            (entry.seq == pinned.seq and entry.mac != pinned.mac)
            or (entry.seq == pinned.seq + 1 and entry.prev_mac != pinned.mac)
        ):
            raise ForkDetected(_FORKED)
        if entry.seq != expected:
            raise OmissionDetected(f"The log goes from entry {expected - 1} to entry {entry.seq}.")
        if entry.prev_mac != position.head.mac:
            raise LogDamaged(entry.seq, "it does not continue the entry before it")
        dek = self._ring.at(position.rotations)
        if dek is None or not equal(entry_mac(dek, self._account_id, raw), entry.mac):
            raise LogDamaged(entry.seq, "it was not written with the account's key")
        if entry.op in KEY_OPS:
            self._position = self._key_entry(entry, content)
        else:
            self._memory_entry(entry, content, dek)
            self._position = position._replace(head=entry.head)
        self._macs.append(entry.mac)
        if entry.op == ROTATE or entry.head == pinned:
            self._firm_updates = self._read_updates

    def _key_entry(self, entry: Entry, content: bytes | None) -> _Position:
        position = self._position
        if entry.memory_id != NO_MEMORY or content is not None:
            raise LogDamaged(entry.seq, "a change of keys carries a memory")
        if entry.revision != position.generation + 1:
            raise LogDamaged(entry.seq, "the generation of the keys is not the next one")
        if position.head.seq == 0 and entry.op != REWRAP:
            raise LogDamaged(entry.seq, "the log does not begin with a key set")
        rotations = position.rotations
        if entry.op == ROTATE:
            if rotations >= len(self._ring.retired):
                raise LogDamaged(entry.seq, "a rotation names no earlier key")
            item = self._ring.retired[rotations]
            if (item.seq, item.mac) != position.head:
                raise LogDamaged(entry.seq, "a rotation stands where the account did not rotate")
            rotations += 1
        return _Position(entry.head, rotations, entry.revision, entry.sha256)

    def _memory_entry(self, entry: Entry, content: bytes | None, dek: Dek) -> None:
        memory_id = entry.memory_id
        if self._position.head.seq == 0:
            raise LogDamaged(entry.seq, "the log does not begin with a key set")
        if memory_id == NO_MEMORY:
            raise LogDamaged(entry.seq, "a memory has no id")
        trace = self._pending.get(memory_id) or self._traces.get(memory_id)
        if trace is not None and trace.forgotten:
            raise LogDamaged(entry.seq, "a forgotten memory was written again")
        if entry.revision != (trace.revision if trace else 0) + 1:
            raise LogDamaged(entry.seq, "the revision of a memory is not the next one")
        if entry.op == TOMBSTONE:
            if trace is None:
                raise LogDamaged(entry.seq, "an unknown memory was forgotten")
            if entry.sha256 != NO_HASH or content is not None:
                raise LogDamaged(entry.seq, "a forgotten memory carries content")
            self._pending[memory_id] = trace._replace(revision=entry.revision, forgotten=True)
        else:
            if content is not None and not equal(hash_bytes(content), entry.sha256):
                raise LogDamaged(entry.seq, "an object does not have the hash that the log names")
            rotations = self._position.rotations
            if trace is None:
                trace = Trace(1, (entry.sha256,), (rotations,))
            else:
                trace = Trace(entry.revision, (*trace.hashes, entry.sha256), (*trace.rotations, rotations))
            self._pending[memory_id] = trace
            if content is None:
                self._without_object.add(memory_id)
            else:
                self._without_object.discard(memory_id)
        self._updates.append(Update(entry, content, dek))
        self._read_updates += 1


_ROLLED_BACK = (
    "The store shows an older state than this device has seen. If it was restored from a backup, run "
    "`squirrel-mcp accept-rollback`."
)
_FORKED = "The store shows another history than the one this device has seen."
