"""The cases of log.json in which an entry is damaged, out of place or forged, or the keys do not fit the log."""

from __future__ import annotations

from typing import Any

from squirrel_mcp.crypto import envelope, log
from squirrel_mcp.crypto.envelope import Context
from squirrel_mcp.crypto.key_set import RetiredKey
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.log import EMPTY, PUT, REWRAP, ROTATE, TOMBSTONE
from squirrel_mcp.crypto.verifier import LogItem
from tests.squirrel_mcp.crypto.log_simulator import Account, forge, reforge
from tests.vectors.making.log_book import Book, Items, flip, last_head, resealed, with_set
from tests.vectors.making.seeded import Seeded


def damaged(book: Book, plain: Account) -> None:
    items = plain.items()
    first, second = log.parse(items[1][0]).memory_id, log.parse(items[2][0]).memory_id
    stranger = Account("stranger")
    stranger.save()

    def replaced(seq: int, raw: bytes, content: bytes | None) -> Items:
        return [*items[: seq - 1], (raw, content), *items[seq:]]

    def signed(seq: int, **changes: int | bytes) -> bytes:
        return reforge(plain.dek, plain.id, items[seq - 1][0], **changes)

    last_object = items[-1][1]
    feeds: list[tuple[str, Items, int, str]] = [
        ("mac_flipped_in_the_middle", replaced(3, flip(items[2][0], 137), None), 3, "A bit of a MAC."),
        ("mac_flipped_at_the_end", replaced(6, flip(items[5][0], 106), last_object), 6, "A bit of the last MAC."),
        ("body_flipped", replaced(3, flip(items[2][0], 17), None), 3, "A bit of the time."),
        ("hash_flipped", replaced(6, flip(items[5][0], 42), last_object), 6, "A bit of the hash."),
        ("other_account", stranger.items(), 1, "The log of another account."),
        ("other_key", replaced(6, reforge(stranger.dek, plain.id, items[5][0]), last_object), 6, "Another key's MAC."),
        ("link_wrong", replaced(3, signed(3, prev_mac=bytes(32)), None), 3, "It continues nothing; the MAC is right."),
        ("first_link_not_zero", replaced(1, signed(1, prev_mac=b"\1" * 32), None), 1, "The first entry has a link."),
        ("one_byte_less", replaced(3, items[2][0][:-1], None), 3, "137 bytes."),
        ("one_byte_more", replaced(3, items[2][0] + b"\0", None), 3, "139 bytes."),
        ("no_bytes", replaced(3, b"", None), 3, "An empty entry."),
        ("version_byte_only", replaced(3, b"\1", None), 3, "Version 1 and nothing else."),
        ("object_flipped", replaced(6, items[5][0], flip(last_object or b"", 100)), 6, "A bit of the object."),
        ("object_of_another", replaced(6, items[5][0], items[3][1]), 6, "The object of another memory."),
        ("object_empty", replaced(6, items[5][0], b""), 6, "An object of no bytes."),
        ("revision_skipped", replaced(4, signed(4, revision=3), items[3][1]), 4, "From revision 1 to 3."),
        ("revision_repeated", replaced(4, signed(4, revision=1), items[3][1]), 4, "Revision 1 again."),
        ("revision_of_new_memory", replaced(6, signed(6, revision=2), last_object), 6, "It begins with revision 2."),
        ("tombstone_revision", replaced(5, signed(5, revision=3), None), 5, "A tombstone that skips a revision."),
        ("tombstone_with_hash", replaced(5, signed(5, sha256=b"\1" * 32), None), 5, "A tombstone names an object."),
        ("tombstone_with_object", replaced(5, items[4][0], b"object"), 5, "A tombstone comes with an object."),
        ("put_after_tombstone", replaced(6, signed(6, memory_id=second, revision=3), last_object), 6, "Revived."),
        (
            "tombstone_after_tombstone",
            replaced(6, signed(6, op=TOMBSTONE, memory_id=second, revision=3, sha256=bytes(32)), None),
            6,
            "Forgotten twice.",
        ),
        (
            "tombstone_of_unknown_memory",
            replaced(6, signed(6, op=TOMBSTONE, revision=1, sha256=bytes(32)), None),
            6,
            "Forgotten before it was known.",
        ),
        ("memory_id_zero", replaced(6, signed(6, memory_id=bytes(16)), last_object), 6, "A memory without an id."),
        ("first_entry_put", replaced(1, signed(1, op=PUT, memory_id=first), None), 1, "It begins with a memory."),
        (
            "first_entry_tombstone",
            replaced(1, signed(1, op=TOMBSTONE, memory_id=first, sha256=bytes(32)), None),
            1,
            "It begins with a tombstone.",
        ),
        ("first_entry_rotate", replaced(1, signed(1, op=ROTATE), None), 1, "It begins with a rotation."),
    ]
    for name, feed, seq, comment in feeds:
        book.add(name, "log_damaged", comment, plain, feed, head=plain.head, seq=seq, confirmed=max(0, seq - 2))


def key_entries(book: Book, plain: Account, rotated: Account) -> None:
    items, key_set = plain.items(), plain.keys[-1].key_set.raw

    def after(raw: bytes, content: bytes | None = None) -> Items:
        return [*items, (raw, content)]

    def rewrap(**changes: Any) -> bytes:
        fields: dict[str, Any] = {"revision": 2, "content": key_set} | changes
        return forge(plain.dek, plain.id, plain.head, REWRAP, **fields)

    for name, feed, comment in (
        ("memory_id_in_rewrap", after(rewrap(memory_id=b"\1" * 16)), "A rewrap names a memory."),
        ("object_with_rewrap", after(rewrap(), key_set), "A rewrap comes with an object."),
        ("generation_skipped", after(rewrap(revision=3)), "From generation 1 to 3."),
        ("generation_repeated", after(rewrap(revision=1)), "Generation 1 again."),
        (
            "rotate_without_item",
            after(forge(plain.dek, plain.id, plain.head, ROTATE, revision=2, content=key_set)),
            "A rotation that no previous-keys item belongs to.",
        ),
    ):
        book.add(name, "log_damaged", comment, plain, feed, seq=7, confirmed=5)

    honest, deks = rotated.items(), rotated.deks
    rotate = honest[3][0]
    wrong = [
        ("memory_id_in_rotate", reforge(deks[0], rotated.id, rotate, memory_id=b"\1" * 16), 4, "It names a memory."),
        ("rotate_under_the_new_key", reforge(deks[1], rotated.id, rotate), 4, "The old key must sign it."),
        ("rotate_generation", reforge(deks[0], rotated.id, rotate, revision=3), 4, "It skips a generation."),
        ("put_under_the_old_key", reforge(deks[0], rotated.id, honest[4][0]), 5, "The new key is in force."),
        ("put_under_a_later_key", reforge(deks[1], rotated.id, honest[2][0]), 3, "The new key is not yet in force."),
    ]
    for name, raw, seq, comment in wrong:
        feed = [*honest[: seq - 1], (raw, honest[seq - 1][1])]
        book.add(name, "log_damaged", comment, rotated, feed, account_head=rotated.head, seq=seq,
                 confirmed=2 if seq == 5 else 0)  # fmt: skip


def wrong_key_sets(book: Book, rotated: Account, rewrapped: Account) -> None:
    first = rewrapped.keys[0]
    book.add(
        "old_key_set", "key_record_downgrade", "The key set from before the rewrap with the current log.", rewrapped,
        rewrapped.items(), keys=first, confirmed=2,
    )  # fmt: skip
    book.add(
        "old_log", "key_record_downgrade", "The current key set with the log from before the rewrap.", rewrapped,
        rewrapped.items(upto=2), confirmed=1,
    )  # fmt: skip
    book.add(
        "slot_2_dropped", "key_record_downgrade", "Slot 2 was left out of the key set.", rewrapped, rewrapped.items(),
        keys=with_set(first, [rewrapped.keys[-1].key_set.wraps[0].raw], None), confirmed=2,
    )  # fmt: skip
    again = forge(rewrapped.dek, rewrapped.id, rewrapped.head_at(2), REWRAP, revision=2, content=first.key_set.raw)
    book.add(
        "generation_disagrees", "key_record_downgrade",
        "The entry names these very bytes at generation 2; their slots say 1.", rewrapped,
        [*rewrapped.items(upto=2), (again, None)], keys=first, confirmed=1,
    )  # fmt: skip
    book.add(
        "old_key_set_after_rotation", "log_damaged",
        "The key set from before the third rotation with the current log: its rotate entry fits no item.", rotated,
        rotated.items(), keys=rotated.keys_at(8), seq=9, confirmed=4,
    )  # fmt: skip
    book.add(
        "log_without_the_last_rotation", "log_damaged", "The log ends before the third key was retired.", rotated,
        rotated.items(upto=8), seq=8, confirmed=3,
    )  # fmt: skip

    ring = rotated.keys[-1].ring
    one, two, three = ring.retired
    for name, retired, seq, confirmed, comment in (
        ("previous_keys_missing", (), 1, 0, "Nothing tells of the key that signed entry 1."),
        ("previous_keys_reordered", (two, one, three), 1, 0, "The second key stands first."),
        ("previous_keys_reordered_later", (one, three, two), 5, 2, "The third key stands second."),
        ("previous_keys_first_missing", (two, three), 1, 0, "The oldest item is gone."),
        ("previous_keys_last_missing", (one, two), 8, 3, "The youngest item is gone."),
        ("previous_keys_one_more", (one, two, three, RetiredKey(ring.current, *rotated.head)), 11, 4, "Never retired."),
        ("item_seq_differs", (one, RetiredKey(two.dek, two.seq + 1, two.mac), three), 7, 2, "An item's seq."),
        ("item_mac_differs", (one, RetiredKey(two.dek, two.seq, one.mac), three), 7, 2, "An item's MAC."),
    ):
        keys = resealed(rotated, tuple(retired))
        comment += " Sealed under the right key; the log names other bytes."
        book.add(name, "log_damaged", comment, rotated, rotated.items(), keys=keys, seq=seq, confirmed=confirmed)


def forged(book: Book, rotated: Account) -> None:
    """The attacks that the three rules about previous keys are there for."""
    genuine = rotated.keys[-1].key_set
    old, middle = rotated.deks[0], rotated.deks[1]

    def broken(seq: int) -> LogItem:
        return bytes((1, PUT)) + seq.to_bytes(8, "big") + bytes(128), None

    def chain(dek: Dek, start: Items, steps: list[tuple[int, int, bytes]]) -> Items:
        items = list(start)
        for op, revision, memory_id in steps:
            previous = last_head(items) if items else EMPTY
            if op == PUT:
                record = envelope.seal(dek, Context(rotated.id, memory_id, revision), b"forged", Seeded("forged"))
                raw = forge(dek, rotated.id, previous, op, revision=revision, memory_id=memory_id, content=record)
                items.append((raw, record))
            else:
                raw = forge(dek, rotated.id, previous, op, revision=revision, content=genuine.raw)
                items.append((raw, None))
        return items

    evil = b"forged memory id"
    put, rewrap = (PUT, 1, evil), [(REWRAP, generation, bytes(16)) for generation in range(1, 6)]
    whole = {
        "with_a_rotate": (chain(old, [], [rewrap[0], put, (ROTATE, 2, bytes(16))]), 3, 0),
        "with_a_rotate_at_the_right_seq": (chain(old, [], [rewrap[0], put, rewrap[1], (ROTATE, 3, bytes(16))]), 4, 0),
        "with_rewraps_only": (chain(old, [], [rewrap[0], put, *rewrap[1:]]), 6, 0),
        "after_an_honest_start": (chain(old, rotated.items(upto=2), [put, *rewrap[1:]]), 7, 0),
        "under_the_second_key": (chain(middle, rotated.items(upto=4), [put, (REWRAP, 3, bytes(16))]), 6, 2),
        "and_rotated_under_the_second_key": (
            chain(middle, rotated.items(upto=4), [put, (REWRAP, 3, bytes(16)), (ROTATE, 4, bytes(16))]),
            7,
            2,
        ),
    }
    for name, (items, seq, confirmed) in whole.items():
        comment = "Made with a leaked, retired key under the genuine key set."
        book.add(f"forged_{name}", "log_damaged", comment, rotated, items, seq=seq, confirmed=confirmed)
        stop = len(items) - (items[-1][0][1] == ROTATE)
        book.add(
            f"forged_{name}_broken", "log_damaged",
            "The same before an entry that is broken, so that a verified prefix is left: it holds nothing forged.",
            rotated, [*items[:stop], broken(stop + 1)], head=rotated.head, seq=stop + 1, confirmed=confirmed,
        )  # fmt: skip
    pinned = rotated.head_at(3)
    book.add(
        "forged_after_the_pin_broken", "log_damaged", "The pinned entries are verified, the forged ones are not.",
        rotated, [*chain(old, rotated.items(upto=3), [put]), broken(5)], head=rotated.head, pinned=pinned,
        seq=5, confirmed=2,
    )  # fmt: skip
