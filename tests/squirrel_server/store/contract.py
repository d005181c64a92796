"""The vocabulary of the contract suite. It knows stores by their interface only, whatever lies behind.

The suite is every `test_contract_*.py` in this folder; a backend joins it in `conftest.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from squirrel_server.store import AccountRecord, Store, StoreError
from tests.squirrel_server.store.builder import Client


class State(NamedTuple):
    """All that can be seen of an account."""

    account: AccountRecord
    log: tuple[tuple[bytes, bytes | None], ...]


def opened(store: Store, *, recovery: bool = False) -> Client:
    """A new account in the store, and its owner."""
    client = Client()
    request = client.first(recovery=recovery)
    store.register(client.account_id, *request)  # type: ignore[arg-type]
    client.took(request)
    return client


def state_of(store: Store, client: Client) -> State:
    """The account, and its whole log with every object that is left."""
    entries: list[tuple[bytes, bytes | None]] = []
    while True:
        page = store.read_log(client.account_id, len(entries), objects="all")
        entries.extend(page.entries)
        if not page.more:
            return State(store.account(client.account_id), tuple(entries))


def refused(store: Store, client: Client, code: str, call: Callable[..., object], *arguments: Any) -> StoreError:
    """The error of a call that is refused with this code and changes nothing."""
    before = state_of(store, client)
    with pytest.raises(StoreError) as caught:
        call(*arguments)
    assert caught.value.code == code, f"{caught.value.code}: {caught.value}"
    assert state_of(store, client) == before, "a refused call changed the account"
    return caught.value


def refused_append(store: Store, client: Client, code: str, *pairs: tuple[bytes, bytes | None]) -> StoreError:
    """`refused` for an append with the right key."""
    return refused(store, client, code, store.append, client.account_id, client.append_key, pairs)
