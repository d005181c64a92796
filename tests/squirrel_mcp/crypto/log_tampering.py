"""Hypothesis strategies: honest accounts of every shape, and what a malicious store does to their feed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

from squirrel_mcp.crypto import log
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.log import EMPTY, PUT, ROTATE, TOMBSTONE, Head
from squirrel_mcp.crypto.primitives import hash_bytes
from squirrel_mcp.crypto.verifier import LogItem
from tests.squirrel_mcp.crypto.log_simulator import Account, Page, cut, forge, reforge

STEPS = ("save", "save", "correct", "forget", "rewrap", "keep slot 1", "rotate")


@st.composite
def accounts(draw: st.DrawFn, max_steps: int = 14) -> Account:
    """An account after up to `max_steps` honest steps."""
    account = Account("random", recovery=draw(st.booleans()))
    for step in draw(st.lists(st.sampled_from(STEPS), max_size=max_steps)):
        take(account, step, draw(st.integers(0, 99)))
    return account


def take(account: Account, step: str, pick: int) -> None:
    """One honest step; a correction or a tombstone takes some live memory, or makes one if there is none."""
    live = account.live
    if step == "rewrap":
        account.rewrap(recovery=bool(pick % 2))
    elif step == "keep slot 1":
        account.rewrap(passphrase=False, recovery=True)
    elif step == "rotate":
        account.rotate(recovery=bool(pick % 2))
    elif step == "save" or not live:
        account.save()
    elif step == "correct":
        account.correct(live[pick % len(live)])
    else:
        account.forget(live[pick % len(live)])


def page_sizes() -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(1, 5), max_size=8)


@st.composite
def tampered(draw: st.DrawFn, account: Account, deks: Sequence[Dek]) -> list[Page]:
    """The account's feed after one to three hostile changes by somebody who holds `deks`, and a cut into pages."""
    items = account.items(upto=draw(st.sampled_from([None, None, draw(st.integers(1, len(account.entries)))])))
    for _ in range(draw(st.sampled_from([1, 1, 1, 2, 3]))):
        change = draw(st.sampled_from(CHANGES if deks else CHANGES_WITHOUT_KEYS))
        items = change(draw, account, deks, items)
    last = log.parse(items[-1][0]).head if items and len(items[-1][0]) == log.ENTRY_BYTES else EMPTY
    pages = cut(
        items, draw(st.sampled_from([last, last, last, account.head, Head(last.seq, bytes(32))])), draw(page_sizes())
    )
    if draw(st.integers(0, 9)) == 0:
        index = draw(st.integers(0, len(pages) - 1))
        page = pages[index]
        pages[index : index + 1] = draw(
            st.sampled_from([[page, page], [], [page._replace(more=not page.more)], [Page([], page.head, True), page]])
        )
    return pages or [Page([], account.head, False)]


Items = list[LogItem]
Change = Callable[[st.DrawFn, Account, Sequence[Dek], Items], Items]


def _index(draw: st.DrawFn, items: Items) -> int:
    return draw(st.integers(0, len(items) - 1))


def _drop(draw: st.DrawFn, account: Account, deks: Sequence[Dek], items: Items) -> Items:
    if len(items) < 2:
        return items
    index = _index(draw, items)
    return items[:index] + items[index + 1 :]


def _repeat(draw: st.DrawFn, account: Account, deks: Sequence[Dek], items: Items) -> Items:
    index = _index(draw, items)
    return items[: index + 1] + items[index:]


def _swap(draw: st.DrawFn, account: Account, deks: Sequence[Dek], items: Items) -> Items:
    one, two = _index(draw, items), _index(draw, items)
    changed = list(items)
    changed[one], changed[two] = changed[two], changed[one]
    return changed


def _end_early(draw: st.DrawFn, account: Account, deks: Sequence[Dek], items: Items) -> Items:
    return items[: _index(draw, items) + 1]


def _shorten(draw: st.DrawFn, account: Account, deks: Sequence[Dek], items: Items) -> Items:
    index = _index(draw, items)
    raw, content = items[index]
    cut_at = draw(st.integers(0, max(0, len(raw) - 1)))
    return [*items[:index], (draw(st.sampled_from([raw[:cut_at], raw + b"\0"])), content), *items[index + 1 :]]


def _flip(draw: st.DrawFn, account: Account, deks: Sequence[Dek], items: Items) -> Items:
    index = _index(draw, items)
    raw, content = items[index]
    if not raw:
        return items
    return [*items[:index], (flipped(raw, draw(st.integers(0, 8 * len(raw) - 1))), content), *items[index + 1 :]]


def _change_object(draw: st.DrawFn, account: Account, deks: Sequence[Dek], items: Items) -> Items:
    index = _index(draw, items)
    raw, content = items[index]
    others = [None, b"", *(each for each in account.objects if each is not None)]
    if content:
        others.append(flipped(content, draw(st.integers(0, 8 * len(content) - 1))))
    return [*items[:index], (raw, draw(st.sampled_from(others))), *items[index + 1 :]]


def _splice_foreign(draw: st.DrawFn, account: Account, deks: Sequence[Dek], items: Items) -> Items:
    other = Account("somebody else")
    other.save()
    index = draw(st.integers(0, len(items)))
    return items[:index] + other.items()[index:]


def _rewrite(draw: st.DrawFn, account: Account, deks: Sequence[Dek], items: Items) -> Items:
    """Change fields of one entry and sign it; perhaps chain and sign what follows, as far as the keys reach."""
    index = _index(draw, items)
    raw, content = items[index]
    if len(raw) != log.ENTRY_BYTES:
        return items
    entry = log.parse(raw)
    ids = [log.NO_MEMORY, *account.revisions, bytes([7]) * 16]
    changes: dict[str, Any] = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "version": st.sampled_from([0, 1, 2]),
                "op": st.integers(0, 5),
                "seq": st.sampled_from([max(0, entry.seq - 1), entry.seq + 1]),
                "time": st.integers(0, 2**64 - 1),
                "memory_id": st.sampled_from(ids),
                "revision": st.integers(0, 4),
                "sha256": st.sampled_from([log.NO_HASH, bytes([1]) * 32, *(k.key_set.sha256 for k in account.keys)]),
                "prev_mac": st.sampled_from([bytes(32), account.head.mac]),
            },
        )
    )
    changed = [*items[:index], (reforge(draw(st.sampled_from(deks)), account.id, raw, **changes), content)]
    return changed + _chain(draw, account, deks, changed, items[index + 1 :])


def _continue(draw: st.DrawFn, account: Account, deks: Sequence[Dek], items: Items) -> Items:
    """Leave the honest log somewhere and go on plausibly, with the key in force there if it leaked."""
    index = draw(st.integers(0, min(len(items), len(account.entries))))
    changed = account.items(upto=index)
    rotations = sum(raw[1] == ROTATE for raw, _ in changed)
    in_force = account.deks[min(rotations, len(account.deks) - 1)]
    dek = in_force if in_force in deks else draw(st.sampled_from(deks))
    for _ in range(draw(st.integers(1, 4))):
        op = draw(st.sampled_from([PUT, PUT, TOMBSTONE, log.REWRAP, ROTATE]))
        changed.append(_plausible(draw, account, dek, changed, op))
    if draw(st.booleans()):
        changed.append((draw(st.sampled_from([bytes((1, 1)), bytes((1, 4)), b"\2"])).ljust(138, b"\0"), None))
    return changed


def _insert(draw: st.DrawFn, account: Account, deks: Sequence[Dek], items: Items) -> Items:
    """Put a well-formed entry somewhere: any op, sensible revision, signed with one of the keys."""
    index = draw(st.integers(0, len(items)))
    op = draw(st.sampled_from([PUT, TOMBSTONE, log.REWRAP, ROTATE]))
    forged = _plausible(draw, account, draw(st.sampled_from(deks)), items[:index], op)
    changed = [*items[:index], forged]
    return changed + _chain(draw, account, deks, changed, items[index:])


def _plausible(draw: st.DrawFn, account: Account, dek: Dek, items: Items, op: int) -> LogItem:
    """An entry that continues `items` in form: next seq, link, revision, a hash that could be right."""
    before = [log.parse(raw) for raw, _ in items if len(raw) == log.ENTRY_BYTES]
    previous = before[-1].head if before else EMPTY
    memory_id, content, digest = log.NO_MEMORY, None, log.NO_HASH
    if op in log.KEY_OPS:
        revision = 1 + sum(each.op in log.KEY_OPS for each in before)
        digest = draw(st.sampled_from([each.key_set.sha256 for each in account.keys]))
    else:
        memory_id = draw(st.sampled_from([bytes([9]) * 16, *account.revisions]))
        revision = 1 + sum(each.memory_id == memory_id for each in before)
        if op == PUT:
            content = b"forged"
            digest = hash_bytes(content)
    raw = forge(dek, account.id, previous, op, revision=revision, memory_id=memory_id, sha256=digest)
    return raw, content


def _chain(draw: st.DrawFn, account: Account, deks: Sequence[Dek], before: Items, rest: Items) -> Items:
    if not draw(st.booleans()):
        return rest
    previous = log.parse(before[-1][0]).head
    key_of = dict(zip((log.parse(raw).mac for raw in account.entries), _writers(account), strict=True))
    changed: Items = []
    for raw, content in rest:
        if len(raw) == log.ENTRY_BYTES:
            dek = key_of.get(log.parse(raw).mac, deks[0])
            dek = dek if dek in deks else deks[-1]
            raw = reforge(dek, account.id, raw, seq=previous.seq + 1, prev_mac=previous.mac)
            previous = log.parse(raw).head
        changed.append((raw, content))
    return changed


def _writers(account: Account) -> list[Dek]:
    found, rotations = [], 0
    for raw in account.entries:
        found.append(account.deks[rotations])
        rotations += log.parse(raw).op == ROTATE
    return found


def flipped(data: bytes, bit: int) -> bytes:
    return data[: bit // 8] + bytes((data[bit // 8] ^ 0x80 >> bit % 8,)) + data[bit // 8 + 1 :]


CHANGES_WITHOUT_KEYS: list[Change] = [
    _drop,
    _repeat,
    _swap,
    _end_early,
    _shorten,
    _flip,
    _change_object,
    _splice_foreign,
]
CHANGES: list[Change] = [*CHANGES_WITHOUT_KEYS, _rewrite, _rewrite, _insert, _insert, *[_continue] * 4]
