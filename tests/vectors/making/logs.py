"""log.json: what a client believes of a log, and the verdict on what it does not.

Three accounts: `plain` never rotated, `rotated` did three times, `rewrapped` only changed its passphrase. The forgers
of the last group hold keys that leaked before they were retired, and the genuine key set.
"""

from __future__ import annotations

from typing import Any

from squirrel_mcp.crypto.log import Head
from tests.squirrel_mcp.crypto.log_simulator import Account, Page, cut, reforge
from tests.vectors.making import log_damage
from tests.vectors.making.log_book import Book, Items, branch, flip, last_head, signed_put


def build() -> dict[str, Any]:
    book = Book()
    plain, rotated, rewrapped = _plain(), _rotated(), _rewrapped()
    _accepted(book, plain, rotated, rewrapped)
    _unknown_versions(book, plain)
    _older_and_other_states(book, plain, rewrapped)
    _missing(book, plain)
    log_damage.damaged(book, plain)
    log_damage.key_entries(book, plain, rotated)
    log_damage.wrong_key_sets(book, rotated, rewrapped)
    log_damage.forged(book, rotated)
    return {
        "about": "Logs and feeds: section 3 of the protocol. One sync from the first entry on.",
        "keySets": book.key_sets,
        "entries": book.entries,
        "objects": book.objects,
        "cases": book.cases,
    }


def _plain() -> Account:
    account = Account("plain", recovery=False)
    first, second = account.save(), account.save()
    account.correct(first)
    account.forget(second)
    account.save()
    return account  # rewrap, put, put, put, tombstone, put


def _rotated() -> Account:
    account = Account("rotated")
    first, second = account.save(), account.save()
    account.rotate()
    account.correct(first)
    account.rewrap()
    account.rotate(recovery=False)
    account.forget(second)
    account.rotate()
    account.save()
    account.correct(first)
    return account


def _rewrapped() -> Account:
    account = Account("rewrapped")
    account.save()
    account.rewrap()
    account.save()
    return account


def _accepted(book: Book, plain: Account, rotated: Account, rewrapped: Account) -> None:
    book.add("whole", "ok", "Everything in one page.", plain, plain.items(), confirmed=5)
    book.add("one_entry_a_page", "ok", "Everything, an entry at a time.", plain, plain.pages([1] * 9), confirmed=5)
    book.add("just_registered", "ok", "A rewrap and nothing else.", plain, plain.items(upto=1))
    empty_end = [*cut(plain.items(), plain.head, [2]), Page([], plain.head, False)]
    empty_end[-2] = empty_end[-2]._replace(more=True)
    book.add("empty_last_page", "ok", "A last page without entries.", plain, empty_end, confirmed=5)
    book.add(
        "grown_between_pages", "ok", "The second page names a later head than the first.", plain,
        [Page(plain.items(upto=3), plain.head_at(3), True), Page(plain.items(after=3), plain.head, False)],
        account_head=plain.head_at(3), confirmed=5,
    )  # fmt: skip
    book.add("three_rotations", "ok", "Four keys.", rotated, rotated.items(), confirmed=6)
    for seq in (1, 3, 4, 8, 11):
        book.add(
            f"pinned_at_{seq}", "ok", "The pin is an earlier head; 1 and 3 are before three rotations.", rotated,
            rotated.pages([3, 3]), pinned=rotated.head_at(seq), confirmed=6,
        )  # fmt: skip
    book.add("rewrapped", "ok", "The same key, another passphrase.", rewrapped, rewrapped.items(), confirmed=2)
    book.add(
        "tail_withheld", "ok",
        "NOT noticed, and not promised: without a pin nobody knows that two entries are missing.",
        plain, plain.items(upto=4), confirmed=3,
    )  # fmt: skip


def _unknown_versions(book: Book, plain: Account) -> None:
    items, last = plain.items(), plain.items()[-1][0]
    for name, raw, comment in (
        ("unknown_op_5", reforge(plain.dek, plain.id, last, op=5), "Op 5 with a MAC that is right."),
        ("unknown_op_0", reforge(plain.dek, plain.id, last, op=0), "Op 0 with a MAC that is right."),
        ("unknown_version", reforge(plain.dek, plain.id, last, version=2), "Version 2 with a MAC that is right."),
        ("unknown_version_longer", b"\2" + last[1:] + bytes(30), "Version 2, 168 bytes."),
        ("unknown_version_one_byte", b"\2", "Version 2 and nothing else."),
        ("unknown_version_at_a_gap", reforge(plain.dek, plain.id, last, version=2, seq=9), "The version comes first."),
    ):
        feed = [Page([*items[:-1], (raw, items[-1][1])], plain.head, False)]
        book.add(name, "update_required", comment, plain, feed, confirmed=4)


def _older_and_other_states(book: Book, plain: Account, rewrapped: Account) -> None:
    other = branch(plain, 4)
    book.add(
        "page_head_below_pin", "rollback_detected", "An older log than was pinned.", plain, plain.items(upto=4),
        pinned=plain.head, account_head=plain.head,
    )  # fmt: skip
    book.add(
        "account_head_below_pin", "rollback_detected", "The account's head is older than the pin.", plain,
        plain.items(), pinned=plain.head, account_head=plain.head_at(5),
    )  # fmt: skip
    book.add(
        "account_head_beside_pin", "fork_detected", "The account's head has the pinned seq and another MAC.", plain,
        plain.items(), pinned=plain.head, account_head=Head(6, last_head(other).mac),
    )  # fmt: skip
    book.add(
        "page_head_beside_pin", "fork_detected", "The page's head has the pinned seq and another MAC.", plain, other,
        pinned=plain.head, account_head=plain.head,
    )  # fmt: skip
    longer = [*other, (signed_put(plain, last_head(other), bytes([8]) * 16), b"forged")]
    book.add(
        "entry_beside_pin", "fork_detected", "Another entry at the pinned seq, under the right key.", plain, longer,
        pinned=plain.head, confirmed=4,
    )  # fmt: skip
    wrong_link = (signed_put(plain, Head(6, bytes(32)), bytes([8]) * 16), b"forged")
    book.add(
        "link_beside_pin", "fork_detected", "The entry after the pinned one continues another.", plain,
        [*plain.items(), wrong_link], pinned=plain.head, confirmed=5,
    )  # fmt: skip
    book.add(
        "link_beside_pin_after_a_gap", "fork_detected", "The same, and the pinned entry is left out.", plain,
        [*plain.items(upto=5), wrong_link], pinned=plain.head, confirmed=4,
    )  # fmt: skip
    flipped = rewrapped.items()
    flipped[1] = (flip(flipped[1][0], 137), flipped[1][1])
    book.add(
        "pinned_entry_flipped", "fork_detected", "A bit of the pinned entry's MAC: another entry at that seq.",
        rewrapped, flipped, pinned=rewrapped.head_at(2), account_head=rewrapped.head,
    )  # fmt: skip


def _missing(book: Book, plain: Account) -> None:
    items, head = plain.items(), plain.head
    feeds: list[tuple[str, Items | list[Page], int, str]] = [
        ("gap", items[:3] + items[4:], 2, "Entry 4 is left out."),
        ("gap_at_the_start", items[1:], 0, "The log begins with entry 2."),
        ("entry_twice", [*items[:3], items[2], *items[3:]], 2, "Entry 3 comes twice."),
        ("entries_swapped", [*items[:2], items[3], items[2], *items[4:]], 1, "Entries 3 and 4 changed places."),
        ("page_twice", [Page(items[:3], head, True), *plain.pages([3])], 2, "The same page again."),
        ("empty_page_with_more", [Page(items[:3], head, True), Page([], head, True)], 2, "More, it says."),
        ("empty_first_page_with_more", [Page([], head, True), *plain.pages()], 0, "More, it says."),
        ("head_beyond_the_last_entry", cut(items[:-1], head), 4, "The log ends before the head."),
        ("head_not_the_last_entry", cut(items, Head(6, bytes(32))), 5, "The head's seq with another MAC."),
        ("head_before_the_last_entry", cut(items, plain.head_at(5)), 5, "The log goes beyond the head."),
        ("nothing", [Page([], head, False)], 0, "No entries at all."),
        ("live_object_missing", [*items[:-1], (items[-1][0], None)], 5, "No object for a live memory."),
        (
            "corrected_object_missing",
            [*items[:3], (items[3][0], None), *items[4:]],
            5,
            "No object for the newest revision of a memory.",
        ),
    ]
    for name, feed, confirmed, comment in feeds:
        book.add(name, "omission_detected", comment, plain, feed, head=head, account_head=head, confirmed=confirmed)
    book.add(
        "account_head_not_reached", "omission_detected", "The account's head is beyond the log.", plain,
        plain.items(upto=5), account_head=head, confirmed=4,
    )  # fmt: skip
    book.add(
        "account_head_on_a_branch", "omission_detected", "The account's head is on another branch.", plain, items,
        account_head=Head(4, bytes(32)), confirmed=5,
    )  # fmt: skip
