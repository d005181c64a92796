"""The collected cases of log.json, and the few ways to bend a log that they share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from squirrel_mcp.crypto import log
from squirrel_mcp.crypto.key_set import KeyRing, KeySet, RetiredKey
from squirrel_mcp.crypto.log import EMPTY, PUT, Head
from squirrel_mcp.crypto.verifier import LogItem
from tests.squirrel_mcp.crypto.log_simulator import Account, Keys, Page, cut, forge
from tests.vectors.making.files import Case, case
from tests.vectors.making.seeded import Seeded

Items = list[LogItem]


@dataclass
class Book:
    """The cases so far; entries, objects and key sets are written once and named."""

    names: dict[tuple[str, bytes], str] = field(default_factory=dict)
    entries: dict[str, str] = field(default_factory=dict)
    objects: dict[str, str] = field(default_factory=dict)
    key_sets: dict[str, Any] = field(default_factory=dict)
    cases: list[Case] = field(default_factory=list)

    def add(
        self,
        name: str,
        expect: str,
        comment: str,
        account: Account,
        feed: Items | list[Page],
        *,
        head: Head | None = None,
        account_head: Head | None = None,
        pinned: Head | None = None,
        keys: Keys | None = None,
        seq: int | None = None,
        confirmed: int = 0,
    ) -> None:
        """`feed` is pages, or items for one page that ends at `head`, by default at its last entry."""
        pages = feed if not feed or isinstance(feed[0], Page) else cut(feed, head or last_head(feed))
        written = [
            {
                "items": [[self._name("e", raw), self._name("o", content)] for raw, content in page.items],
                "head": as_json(page.head),
                "more": page.more,
            }
            for page in pages
            if isinstance(page, Page)
        ]
        self.cases.append(
            case(
                name,
                expect,
                comment,
                keys=self._keys(account, keys or account.keys[-1]),
                pinned=as_json(pinned) if pinned else None,
                accountHead=as_json(account_head) if account_head else written[-1]["head"],
                pages=written,
                **({} if seq is None else {"seq": seq}),
                confirmed=confirmed,
            )
        )

    def _name(self, kind: str, data: bytes | None) -> str | None:
        if data is None:
            return None
        if (kind, data) not in self.names:
            pool = self.entries if kind == "e" else self.objects
            self.names[kind, data] = f"{kind}{len(pool) + 1}"
            pool[self.names[kind, data]] = data.hex()
        return self.names[kind, data]

    def _keys(self, account: Account, keys: Keys) -> str:
        written = {
            "accountId": account.id.hex(),
            "wraps": [each.raw.hex() for each in keys.key_set.wraps],
            "previousKeys": keys.key_set.previous_keys.hex() if keys.key_set.previous_keys else None,
            "dek": keys.ring.current.secret().hex(),
        }
        for name, known in self.key_sets.items():
            if known == written:
                return name
        name = f"{account.name} {keys.key_set.generation}"
        while name in self.key_sets:
            name += "*"
        self.key_sets[name] = written
        return name


def branch(account: Account, keep: int) -> Items:
    """Another history under the right key: the honest start and puts up to the honest head's seq."""
    items = account.items(upto=keep)
    for number in range(len(account.entries) - keep):
        items.append((signed_put(account, last_head(items), bytes([7 + 9 * number]) * 16), b"forged"))
    return items


def signed_put(account: Account, previous: Head, memory_id: bytes) -> bytes:
    return forge(account.dek, account.id, previous, PUT, memory_id=memory_id, content=b"forged")


def with_set(keys: Keys, wraps: list[bytes], previous_keys: bytes | None) -> Keys:
    return keys._replace(key_set=KeySet.parse(wraps, previous_keys))


def resealed(account: Account, retired: tuple[RetiredKey, ...]) -> Keys:
    """The account's key set with other previous keys, sealed as only a holder of the current key can."""
    keys = account.keys[-1]
    ring = KeyRing(retired, keys.ring.current)
    sealed = ring.seal_previous(account.id, keys.key_set.generation, Seeded("resealed"))
    wraps = [each.raw for each in keys.key_set.wraps]
    return Keys(keys.seq, KeySet.parse(wraps, sealed), ring)


def last_head(items: Items | list[Page]) -> Head:
    raw = items[-1][0]
    return log.parse(raw).head if isinstance(raw, bytes) and len(raw) == log.ENTRY_BYTES else EMPTY


def flip(data: bytes, offset: int) -> bytes:
    return data[:offset] + bytes((data[offset] ^ 1,)) + data[offset + 1 :]


def as_json(head: Head) -> dict[str, Any]:
    return {"seq": head.seq, "mac": head.mac.hex()}
