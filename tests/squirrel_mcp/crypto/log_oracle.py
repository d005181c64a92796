"""The table of verdicts a second time, written from the document with no thought of speed or memory.

It shares no code with the package: HKDF is two HMACs here, an entry is sliced by hand, everything read is kept and
looked through again for each question. Where it and `LogVerifier` differ, one of them misreads the protocol.
"""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import NamedTuple

PUT, TOMBSTONE, REWRAP, ROTATE = 1, 2, 3, 4

SeqMac = tuple[int, bytes]
NOTHING: SeqMac = (0, bytes(32))


class Judgement(NamedTuple):
    code: str  # "ok" or the stable code of an error
    seq: int | None = None  # with log_damaged
    confirmed: int = 0  # memory entries that nothing read later can take back


@dataclass(frozen=True)
class Question:
    """Everything a client has in hand when it judges one sync from the first entry on."""

    account_id: bytes
    key_set_sha256: bytes
    key_set_generation: int
    deks: Sequence[bytes]  # oldest first, the one in force last
    retired_at: Sequence[SeqMac]  # the previous-keys items
    pinned: SeqMac
    account_head: SeqMac
    pages: Sequence[tuple[Sequence[tuple[bytes, bytes | None]], SeqMac, bool]]


@dataclass
class _Read:
    """What was accepted so far, one tuple per entry: op, memory, revision, hash, mac, object, rotations before it."""

    entries: list[tuple[int, bytes, int, bytes, bytes, bytes | None, int]] = field(default_factory=list)


class _Verdict(Exception):
    def __init__(self, code: str, seq: int | None = None) -> None:
        super().__init__(code)
        self.code, self.seq = code, seq


def judge(question: Question) -> Judgement:
    read = _Read()
    try:
        _head(question, question.account_head)
        for items, head, more in question.pages:
            _head(question, head)
            if more and not items:
                raise _Verdict("omission_detected")
            for raw, content in items:
                _entry(question, read, raw, content)
            if not more and _last(read) != head:
                raise _Verdict("omission_detected")
        _end(question, read)
    except _Verdict as verdict:
        return Judgement(verdict.code, verdict.seq, _confirmed(question, read))
    return Judgement("ok", None, _confirmed(question, read))


def _head(question: Question, head: SeqMac) -> None:
    if head[0] < question.pinned[0]:
        raise _Verdict("rollback_detected")
    if question.pinned[0] and head[0] == question.pinned[0] and head != question.pinned:
        raise _Verdict("fork_detected")


def _entry(question: Question, read: _Read, raw: bytes, content: bytes | None) -> None:
    expected = len(read.entries) + 1
    if (len(raw) > 0 and raw[0] != 1) or (len(raw) > 1 and raw[1] not in (1, 2, 3, 4)):
        raise _Verdict("update_required")
    if len(raw) != 138:
        raise _Verdict("log_damaged", expected)
    op, seq, memory_id = raw[1], int.from_bytes(raw[2:10], "big"), raw[18:34]
    revision, digest = int.from_bytes(raw[34:42], "big"), raw[42:74]
    prev_mac, mac = raw[74:106], raw[106:138]

    pinned_seq, pinned_mac = question.pinned
    if pinned_seq and ((seq == pinned_seq and mac != pinned_mac) or (seq == pinned_seq + 1 and prev_mac != pinned_mac)):
        raise _Verdict("fork_detected")
    if seq != expected:
        raise _Verdict("omission_detected")

    rotations = sum(each[0] == ROTATE for each in read.entries)
    generation = sum(each[0] in (REWRAP, ROTATE) for each in read.entries)
    history = [each for each in read.entries if each[0] in (PUT, TOMBSTONE) and each[1] == memory_id]
    right_mac = hmac.digest(_log_key(question.deks[rotations]), question.account_id + raw[:106], "sha256")
    good = prev_mac == _last(read)[1] and mac == right_mac
    if op in (REWRAP, ROTATE):
        good = good and memory_id == bytes(16) and content is None and revision == generation + 1
        if op == ROTATE:
            fits = rotations < len(question.retired_at) and question.retired_at[rotations] == (
                seq - 1,
                prev_mac,
            )
            good = good and seq > 1 and fits
    else:
        forgotten = any(each[0] == TOMBSTONE for each in history)
        good = good and seq > 1 and memory_id != bytes(16) and not forgotten and revision == len(history) + 1
        if op == TOMBSTONE:
            good = good and len(history) > 0 and digest == bytes(32) and content is None
        else:
            good = good and (content is None or sha256(content).digest() == digest)
    if not good:
        raise _Verdict("log_damaged", seq)
    read.entries.append((op, memory_id, revision, digest, mac, content, rotations))


def _end(question: Question, read: _Read) -> None:
    seq, mac = question.account_head
    on_log = NOTHING[1] if seq == 0 else read.entries[seq - 1][4] if seq <= len(read.entries) else None
    if on_log != mac:
        raise _Verdict("omission_detected")
    last = {each[1]: each for each in read.entries if each[0] in (PUT, TOMBSTONE)}
    if any(each[0] == PUT and each[5] is None for each in last.values()):
        raise _Verdict("omission_detected")
    if sum(each[0] == ROTATE for each in read.entries) != len(question.retired_at):
        raise _Verdict("log_damaged", len(read.entries))
    changes = [each for each in read.entries if each[0] in (REWRAP, ROTATE)]
    named = (changes[-1][3], changes[-1][2]) if changes else None
    if named != (question.key_set_sha256, question.key_set_generation):
        raise _Verdict("key_record_downgrade")


def _confirmed(question: Question, read: _Read) -> int:
    """Memory entries up to the last rotate entry that fitted, up to the pin, or under the newest key."""
    certain = 0
    for index, (op, *_, mac, _content, rotations) in enumerate(read.entries):
        newest = rotations == len(question.retired_at)
        if op == ROTATE or newest or (index + 1, mac) == question.pinned:
            certain = index + 1
    return sum(each[0] in (PUT, TOMBSTONE) for each in read.entries[:certain])


def _last(read: _Read) -> SeqMac:
    return (len(read.entries), read.entries[-1][4]) if read.entries else NOTHING


def _log_key(dek: bytes) -> bytes:
    extracted = hmac.digest(bytes(32), dek, "sha256")
    return hmac.digest(extracted, b"squirrel/v1/log\x01", "sha256")
