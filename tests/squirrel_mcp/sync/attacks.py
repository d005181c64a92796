"""What a malicious server can try, one lie each, and what the client must say to it.

`expected` is for a device that has a pin and a state cache up to entry 10; `fresh` and `pinned` (a pin, the cache
lost) are named where they see something else, and so is `running`, a client that was in step with entry 10 and asks
for what is new. ACCEPTED marks what the protocol does not promise to notice there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from squirrel_mcp.crypto import log
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.log import PUT, REWRAP, ROTATE, TOMBSTONE
from squirrel_mcp.errors import (
    BadReply,
    ForeignAccount,
    ForeignKey,
    ForkDetected,
    KeyRecordDowngrade,
    KeysChanged,
    KeySetDamaged,
    LogDamaged,
    NotFound,
    OmissionDetected,
    RollbackDetected,
    SquirrelError,
    UpdateRequired,
    WrongPassphrase,
)
from tests.hostile_server import Answer, Asked, Item, Shown, page_json

from .scene import Device, Scene, resealed, signed

Error = type[SquirrelError]
ACCEPTED: Literal["accepted"] = "accepted"
Expected = Error | Literal["accepted"]


@dataclass(frozen=True)
class Attack:
    """`act` makes the server lie; `what` says in a sentence what it does."""

    name: str
    what: str
    act: Callable[[Scene], None]
    expected: Expected
    fresh: Expected | None = None
    pinned: Expected | None = None
    running: Expected | None = None

    def error(self, device: Device | Literal["running"]) -> Expected:
        chosen = {"fresh": self.fresh, "pinned": self.pinned, "running": self.running, "cached": None}[device]
        return chosen or self.expected


def _lie(change: Callable[[Scene, Shown], Shown]) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        scene.server.lie = lambda shown: change(scene, shown)

    return act


def _restore(name: str) -> Callable[[Scene], None]:
    return lambda scene: scene.server.restore(scene.folder / name)


def _answer(path: str, change: Callable[[Answer], Answer]) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        scene.server.answer = lambda asked, answer: change(answer) if asked.path == path else answer

    return act


def _items(change: Callable[[Scene, list[Item]], Sequence[Item]], *, keep_head: bool = True) -> Callable[[Scene], None]:
    """A lie about the entries; the head stays what it was, or becomes that of the last entry."""

    def apply(scene: Scene, shown: Shown) -> Shown:
        items = tuple(change(scene, list(shown.items)))
        if keep_head:
            return replace(shown, items=items)
        head = log.parse(items[-1][0]).head
        return replace(shown, items=items, head=head, account_head=head)

    return _lie(apply)


def _entry(seq: int, change: Callable[[bytes], bytes]) -> Callable[[Scene], None]:
    def apply(_: Scene, items: list[Item]) -> list[Item]:
        raw, content = items[seq - 1]
        items[seq - 1] = (change(raw), content)
        return items

    return _items(apply)


def _object(seq: int, content: Callable[[Scene, list[Item]], bytes | None]) -> Callable[[Scene], None]:
    def apply(scene: Scene, items: list[Item]) -> list[Item]:
        items[seq - 1] = (items[seq - 1][0], content(scene, items))
        return items

    return _items(apply)


def _own(items: list[Item], seq: int) -> bytes:
    content = items[seq - 1][1]
    assert content is not None
    return content


def _swapped(scene: Scene, items: list[Item]) -> list[Item]:
    (one, a), (two, b) = items[11], items[14]
    items[11], items[14] = (one, b), (two, a)
    return items


def _set(raw: bytes, at: int, new: bytes) -> bytes:
    return raw[:at] + new + raw[at + len(new) :]


def _swapped_ids(scene: Scene, items: list[Item]) -> list[Item]:
    """Hash and id follow the object: only the MAC is left to notice."""
    (one, a), (two, b) = items[11], items[14]
    items[11] = (_set(one, 18, two[18:34])[:42] + two[42:74] + one[74:], b)
    items[14] = (_set(two, 18, one[18:34])[:42] + one[42:74] + two[74:], a)
    return items


def _repeated(at: int) -> Callable[[Scene, list[Item]], list[Item]]:
    return lambda _, items: [*items[:at], items[at - 1], *items[at:]]


def _without(*seqs: int) -> Callable[[Scene, list[Item]], list[Item]]:
    return lambda _, items: [item for number, item in enumerate(items, 1) if number not in seqs]


def _exchanged(_: Scene, items: list[Item]) -> list[Item]:
    items[11], items[12] = items[12], items[11]
    return items


def _appended(*more: Callable[[Scene, list[Item]], Item]) -> Callable[[Scene], None]:
    """Further entries behind the honest ones, their head shown with them."""

    def apply(scene: Scene, items: list[Item]) -> list[Item]:
        for make in more:
            items.append(make(scene, items))
        return items

    return _items(apply, keep_head=False)


def _new(
    op: int, *, dek: Callable[[Scene], Dek] | None = None, content: bytes | None = b"forged", **fields: object
) -> Callable[[Scene, list[Item]], Item]:
    def make(scene: Scene, items: list[Item]) -> Item:
        given = {name: value(scene) if callable(value) else value for name, value in fields.items()}
        key = dek(scene) if dek else scene.dek(15)
        last = log.parse(items[-1][0]).head
        return signed(key, scene, last, op, content=content, **given), content if op == PUT else None

    return make


def _from_8_with_the_old_key(scene: Scene, items: list[Item]) -> list[Item]:
    """Whoever stole the first key goes on from entry 8 as if it had never been retired."""
    items = list(scene.states[8].items)
    for number in range(6):
        make = _new(PUT, dek=lambda scene: scene.dek(8), memory_id=bytes([number + 1]) * 16)
        items.append(make(scene, items))
    return items


def _rotated_early(scene: Scene, items: list[Item]) -> list[Item]:
    items = list(scene.states[8].items)
    items.append(_new(PUT, dek=lambda scene: scene.dek(8), memory_id=b"\1" * 16)(scene, items))
    items.append(_new(ROTATE, dek=lambda scene: scene.dek(8), content=scene.key_sets[3].raw, revision=3)(scene, items))
    return items


def _keys(change: Callable[[Scene, Shown], tuple[Sequence[bytes], bytes | None]]) -> Callable[[Scene], None]:
    def apply(scene: Scene, shown: Shown) -> Shown:
        wraps, previous = change(scene, shown)
        return replace(shown, wraps=tuple(wraps), previous_keys=previous)

    return _lie(apply)


def _key_set(make: Callable[[Scene], object]) -> Callable[[Scene], None]:
    def change(scene: Scene, _: Shown) -> tuple[Sequence[bytes], bytes | None]:
        keys = make(scene)
        return [wrap.raw for wrap in keys.wraps], keys.previous_keys  # type: ignore[attr-defined]

    return _keys(change)


def _wrap(change: Callable[[bytes], bytes]) -> Callable[[Scene], None]:
    return _keys(lambda _, shown: ([change(shown.wraps[0]), *shown.wraps[1:]], shown.previous_keys))


def _log_until(seq: int) -> Callable[[Scene], None]:
    """The log as it was at `seq`, under the present key set."""

    def apply(scene: Scene, shown: Shown) -> Shown:
        then = scene.states[seq]
        return replace(shown, items=then.items, head=then.head, account_head=then.head)

    return _lie(apply)


def _heads(**heads: Callable[[Shown], tuple[int, bytes]]) -> Callable[[Scene], None]:
    def apply(_: Scene, shown: Shown) -> Shown:
        given = {"head": shown.head, "account_head": shown.account_head}
        given |= {name: head(shown) for name, head in heads.items()}
        return replace(shown, head=given["head"], account_head=given["account_head"])

    return _lie(apply)


def _foreign(scene: Scene) -> None:
    scene.server.keys[scene.key] = scene.other_id


def _foreign_log(scene: Scene) -> None:
    other = scene.server.shown(scene.other_id, "latest")
    scene.server.lie = lambda shown: replace(shown, items=other.items, head=other.head, account_head=other.head)


def _foreign_name(scene: Scene) -> None:
    scene.server.lie = lambda shown: replace(shown, account_id=scene.other_id)


def _foreign_object(scene: Scene) -> None:
    other = scene.server.shown(scene.other_id, "latest")
    _object(15, lambda _, items: other.items[-1][1])(scene)


def _pages(change: Callable[[Scene, Asked, Answer], Answer], size: int = 4) -> Callable[[Scene], None]:
    def act(scene: Scene) -> None:
        scene.server.page_entries = size
        scene.server.answer = lambda asked, answer: change(scene, asked, answer) if asked.path == "/v1/log" else answer

    return act


def _same_page(scene: Scene, asked: Asked, answer: Answer) -> Answer:
    first = scene.server.shown(scene.account_id, "latest").items[10:12]
    return Answer(200, page_json(first, scene.states[15].head, True))


def _empty_page(scene: Scene, asked: Asked, answer: Answer) -> Answer:
    assert isinstance(answer.body, dict)
    return Answer(200, {**answer.body, "entries": [], "more": True})


def _cut_off(scene: Scene, asked: Asked, answer: Answer) -> Answer:
    assert isinstance(answer.body, dict)
    return Answer(200, {**answer.body, "more": False})


def _json(change: Callable[[dict[str, object]], object], path: str = "/v1/log") -> Callable[[Scene], None]:
    def apply(answer: Answer) -> Answer:
        assert isinstance(answer.body, dict)
        changed = change(dict(answer.body))
        return answer._replace(body=changed)  # type: ignore[arg-type]

    return _answer(path, apply)


def _flip(at: int) -> Callable[[bytes], bytes]:
    return lambda raw: _set(raw, at, bytes([raw[at] ^ 1]))


def _random_mac(shown: Shown) -> tuple[int, bytes]:
    return (shown.head[0], b"\x55" * 32)


def _not_there(answer: Answer) -> Answer:
    return Answer(404, {"code": "unknown_account", "status": 404, "title": "not found", "type": "about:blank"})


ATTACKS = (
    Attack("swap_ids", "two memories' objects exchanged", _items(_swapped), LogDamaged),
    Attack("swap_ids_in_entries", "the same, with ids and hashes to match", _items(_swapped_ids), LogDamaged),
    Attack(
        "replay_revision", "an earlier revision's object under a later entry",
        _object(11, lambda scene, items: _own(list(scene.states[4].items), 4)), LogDamaged,
    ),
    Attack(
        "replay_entry", "an earlier entry and object again in the place of a later one",
        _items(lambda scene, items: [*items[:10], (items[3][0], scene.states[4].items[3][1]), *items[11:]]),
        OmissionDetected,
    ),
    Attack(
        "wrong_type", "the previous-keys object as a memory's object",
        _object(12, lambda scene, items: scene.key_sets[4].previous_keys), LogDamaged,
    ),
    Attack(
        "wrong_type_of_keys", "a memory's object as the previous keys",
        _keys(lambda _, shown: (shown.wraps, shown.items[14][1])), KeySetDamaged,
    ),
    Attack("foreign_account", "another account behind the same API key", _foreign, ForeignAccount, fresh=ACCEPTED,
           running=ForkDetected),
    Attack("foreign_account_name", "another account's id beside these keys", _foreign_name, KeySetDamaged,
           running=ForeignAccount),
    Attack("foreign_log", "another account's log under these keys", _foreign_log, LogDamaged, running=ForkDetected),
    Attack("foreign_object", "another account's object under an entry", _foreign_object, LogDamaged),
    Attack("stale_head", "the state as it was at entry 9, keys unchanged since", _restore("9.db"), RollbackDetected,
           fresh=ACCEPTED),
    Attack("stale_keys", "the state as it was at entry 8, with the keys of then", _restore("8.db"), KeyRecordDowngrade,
           fresh=ACCEPTED, running=RollbackDetected),
    Attack("stale_page_head", "an old head beside a page", _heads(head=lambda shown: (9, bytes(32))), RollbackDetected,
           fresh=OmissionDetected),
    Attack("stale_account_head", "an old head beside the keys", _heads(account_head=lambda shown: (9, bytes(32))),
           RollbackDetected, fresh=OmissionDetected),
    Attack("withhold_newer", "nothing newer than this device has seen", _restore("10.db"), ACCEPTED),
    Attack("omit_record", "one entry left out", _items(_without(12)), OmissionDetected),
    Attack("omit_key_change", "a change of keys left out", _items(_without(14)), OmissionDetected),
    Attack("omit_tombstone", "a forgotten memory's last entry left out", _items(_without(13)), OmissionDetected),
    Attack("omit_object", "a living memory without its object", _object(12, lambda *_: None), OmissionDetected),
    Attack("omit_early_object", "an older memory without its object", _object(7, lambda *_: None), ACCEPTED,
           fresh=OmissionDetected, pinned=OmissionDetected),
    Attack("omit_end", "the last entries left out", _items(_without(14, 15)), OmissionDetected),
    Attack("omit_everything", "no entries at all", _items(lambda *_: []), OmissionDetected),
    Attack("two_histories", "another branch, shown to somebody else before", _restore("fork.db"), ForkDetected,
           fresh=ACCEPTED),
    Attack("two_histories_same_length", "another branch of the same length", _restore("fork-10.db"), ForkDetected,
           fresh=ACCEPTED),
    Attack("duplicate", "one entry twice", _items(_repeated(12)), OmissionDetected),
    Attack("duplicate_last", "the last entry twice", _items(_repeated(15)), OmissionDetected),
    Attack("reorder", "two entries in the wrong order", _items(_exchanged), OmissionDetected),
    Attack("resurrect", "the forgotten memory's put again at the end",
           _items(lambda scene, items: [*items, (items[9][0], scene.states[10].items[9][1])]), OmissionDetected),
    Attack("resurrect_renumbered", "the same with the next seq and link",
           _items(lambda scene, items: [*items, (
               _set(items[9][0], 2, (16).to_bytes(8, "big"))[:74] + items[14][0][106:] + items[9][0][106:],
               scene.states[10].items[9][1],
           )]), LogDamaged),
    Attack("resurrect_signed", "a put after the tombstone by a thief of the key",
           _appended(_new(PUT, memory_id=lambda scene: bytes.fromhex(scene.cake), revision=3)), LogDamaged),
    Attack("tombstone_unknown", "a tombstone for an unknown memory by a thief of the key",
           _appended(_new(TOMBSTONE, memory_id=b"\7" * 16, content=None)), LogDamaged),
    Attack("revision_gap", "a revision skipped by a thief of the key",
           _appended(_new(PUT, memory_id=lambda scene: bytes.fromhex(scene.honey), revision=3)), LogDamaged),
    Attack("memory_without_id", "a memory with an id of zeros by a thief of the key",
           _appended(_new(PUT, memory_id=bytes(16))), LogDamaged),
    Attack("rotate_unknown", "a rotation that the keys do not name by a thief of the key",
           _appended(_new(ROTATE, revision=5)), LogDamaged),
    Attack("rewrap_unknown", "a change of keys that is not shown by a thief of the key",
           _appended(_new(REWRAP, revision=5)), KeyRecordDowngrade),
    Attack("rewrap_skipped_generation", "a generation skipped by a thief of the key",
           _appended(_new(REWRAP, revision=6)), LogDamaged),
    Attack("old_key_after_rotation", "an entry under the retired key behind the rotation",
           _appended(_new(PUT, dek=lambda scene: scene.dek(8), memory_id=b"\7" * 16)), LogDamaged),
    Attack("old_key_goes_on", "a history forged with the retired key under the genuine key set",
           _items(_from_8_with_the_old_key, keep_head=False), ForkDetected, fresh=LogDamaged),
    Attack("old_key_rotates", "the same, ending with a forged rotation",
           _items(_rotated_early, keep_head=False), ForkDetected, fresh=LogDamaged),
    Attack("truncate_entry", "an entry one byte short", _entry(12, lambda raw: raw[:-1]), LogDamaged),
    Attack("trailing_byte_entry", "an entry one byte long", _entry(12, lambda raw: raw + b"\0"), LogDamaged),
    Attack("empty_entry", "an entry of no bytes", _entry(12, lambda raw: b""), LogDamaged),
    Attack("truncate_object", "an object one byte short", _object(12, lambda _, i: _own(i, 12)[:-1]), LogDamaged),
    Attack("trailing_byte_object", "an object one byte long", _object(12, lambda _, i: _own(i, 12) + b"\0"),
           LogDamaged),
    Attack("empty_object", "an object of no bytes", _object(12, lambda *_: b""), LogDamaged),
    Attack("truncate_wrap", "a key record one byte short", _wrap(lambda raw: raw[:-1]), KeySetDamaged),
    Attack("trailing_byte_wrap", "a key record one byte long", _wrap(lambda raw: raw + b"\0"), KeySetDamaged),
    Attack("truncate_previous_keys", "the previous keys one byte short",
           _keys(lambda _, shown: (shown.wraps, (shown.previous_keys or b"")[:-1])), KeySetDamaged),
    Attack("drop_previous_keys", "no previous keys after a rotation",
           _keys(lambda _, shown: (shown.wraps, None)), LogDamaged, running=ForeignKey),
    Attack("mac_bitflip", "one bit of a MAC", _entry(12, _flip(137)), LogDamaged),
    Attack("link_bitflip", "one bit of a link", _entry(12, _flip(80)), LogDamaged),
    Attack("link_onto_seen_bitflip", "one bit of the link onto what was seen", _entry(11, _flip(80)), ForkDetected,
           fresh=LogDamaged),
    Attack("time_bitflip", "one bit of a time", _entry(12, _flip(17)), LogDamaged),
    Attack("hash_bitflip", "one bit of a hash", _entry(12, _flip(42)), LogDamaged),
    Attack("object_bitflip", "one bit of an object", _object(12, lambda _, i: _flip(100)(_own(i, 12))), LogDamaged),
    Attack("unknown_version", "an entry of a later version", _entry(12, lambda raw: b"\2" + raw[1:]), UpdateRequired),
    Attack("unknown_version_other_length", "one of another length too", _entry(12, lambda raw: b"\2later"),
           UpdateRequired),
    Attack("unknown_op", "an unknown op", _entry(12, lambda raw: _set(raw, 1, b"\5")), UpdateRequired),
    Attack("unknown_op_signed", "an unknown op with a right MAC", _appended(_new(5, memory_id=b"\7" * 16)),
           UpdateRequired),
    Attack("wrap_rollback", "an older key set beside the present log", _key_set(lambda scene: scene.key_sets[2]),
           KeyRecordDowngrade, fresh=LogDamaged),
    Attack("wrap_rollback_to_seen", "the key set this device has seen beside a log with a later one",
           _key_set(lambda scene: scene.key_sets[3]), KeyRecordDowngrade),
    Attack("wrap_same_generation", "the same generation with other bytes",
           _key_set(lambda scene: resealed(scene, 3)), KeyRecordDowngrade),
    Attack("wrap_unlogged_generation", "a later generation that the log does not name",
           _key_set(lambda scene: resealed(scene, 5)), KeyRecordDowngrade),
    Attack("new_keys_old_log", "the present key set beside an older log", _log_until(12), KeyRecordDowngrade,
           running=ACCEPTED),
    Attack("wrap_bitflip", "one bit of the sealed key", _wrap(_flip(150)), WrongPassphrase, running=KeysChanged),
    Attack("wrap_commit_bitflip", "one bit of the commitment", _wrap(_flip(80)), WrongPassphrase,
           running=KeysChanged),
    Attack("foreign_wrap", "a key of the attacker's under the right passphrase",
           _key_set(lambda scene: resealed(scene, 5, Dek(b"\x66" * 32))), ForeignKey, fresh=LogDamaged),
    Attack("drop_slot_2", "the recovery slot left out",
           _keys(lambda _, shown: (shown.wraps[:1], shown.previous_keys)), KeyRecordDowngrade),
    Attack("slots_reversed", "slots in the wrong order",
           _keys(lambda _, shown: (shown.wraps[::-1], shown.previous_keys)), KeySetDamaged),
    Attack("slot_twice", "one slot twice",
           _keys(lambda _, shown: (shown.wraps[:1] * 2, shown.previous_keys)), KeySetDamaged),
    Attack("no_slots", "no key record", _keys(lambda _, shown: ((), shown.previous_keys)), KeySetDamaged),
    Attack("two_keys", "slots of two keys",
           _keys(lambda scene, shown: ((shown.wraps[0], scene.key_sets[3].wraps[1].raw[:40] + b"\0" * 16
                                        + scene.key_sets[3].wraps[1].raw[56:]), shown.previous_keys)), KeySetDamaged),
    Attack("kdf_low", "a key derivation that is too cheap", _wrap(lambda raw: _set(raw, 8, bytes(3) + b"\1")),
           KeySetDamaged),
    Attack("kdf_huge", "a key derivation of 4 TiB", _wrap(lambda raw: _set(raw, 12, b"\xff" * 4)), KeySetDamaged),
    Attack("kdf_none", "a passphrase slot without derivation", _wrap(lambda raw: _set(raw, 6, b"\3")), KeySetDamaged),
    Attack("wrap_later_version", "a key record of a later version", _wrap(lambda raw: _set(raw, 4, b"\2")),
           UpdateRequired),
    Attack("setup_not_implicit", "the account is said not to exist", _answer("/v1/account", _not_there), NotFound),
    Attack("empty_page_with_more", "empty pages that promise more", _pages(_empty_page), OmissionDetected),
    Attack("repeated_page", "the same page whatever was asked for", _pages(_same_page), OmissionDetected),
    Attack("last_page_first", "the end announced in the middle", _pages(_cut_off, 3), OmissionDetected),
    Attack("head_not_last_entry", "a page's head that is not its last entry", _heads(head=_random_mac),
           OmissionDetected),
    Attack("head_beyond_log", "a head that the log never reaches",
           _heads(head=lambda shown: (99, bytes(32)), account_head=lambda shown: (99, bytes(32))), OmissionDetected),
    Attack("account_head_elsewhere", "another head beside the keys than on the log", _heads(account_head=_random_mac),
           OmissionDetected),
    Attack("negative_seq", "a head below zero", _json(lambda body: {**body, "head": {"seq": -1, "mac": "00" * 32}}),
           BadReply),
    Attack("seq_as_text", "numbers as text", _json(lambda body: {**body, "head": {"seq": "15", "mac": "00" * 32}}),
           BadReply),
    Attack("seq_as_true", "true for a number", _json(lambda body: {**body, "head": {"seq": True, "mac": "00" * 32}}),
           BadReply),
    Attack("seq_as_float", "a float for a number", _json(lambda body: {**body, "head": {"seq": 15.0, "mac": "0" * 64}}),
           BadReply),
    Attack("upper_case_hex", "hex in upper case", _json(lambda body: {**body, "head": {"seq": 15, "mac": "AA" * 32}}),
           BadReply),
    Attack("missing_field", "a field left out", _json(lambda body: {"entries": body["entries"], "head": body["head"]}),
           BadReply),
    Attack("null_entries", "null for a list", _json(lambda body: {**body, "entries": None}), BadReply),
    Attack("loose_base64", "base64 that no encoder makes",
           _json(lambda body: {**body, "entries": [{"entry": "QUJ=", "object": None}]}), BadReply),
    Attack("list_for_object", "a list for the whole reply", _json(lambda body: [body]), BadReply),
)  # fmt: skip

assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
