"""Several vaults side by side, and a clock that goes on by itself, so that every revision has a time of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from squirrel_mcp.crypto.key_set import KeySet
from squirrel_mcp.opening import Unlocker, open_vault
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.local import LocalStore
from squirrel_mcp.vault import Vault

from ..conftest import CHEAP, PASSPHRASE, Clock

OpenNamed = Callable[..., Vault]
StoreOf = Callable[[str], LocalStore]
KeySetOf = Callable[[str], KeySet]


class Ticking(Clock):
    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture
def settings_of(tmp_path: Path) -> Callable[[str], Settings]:
    return lambda name: Settings(data_dir=tmp_path / name)


@pytest.fixture
def open_named(settings_of: Callable[[str], Settings]) -> Iterator[OpenNamed]:
    """Opens (or makes) the vault of that name; each call is like another process."""
    opened: list[Vault] = []
    clock = Ticking()

    def open_it(name: str, passphrase: str = PASSPHRASE) -> Vault:
        vault = open_vault(settings_of(name), Unlocker(lambda: passphrase), clock=clock, parameters=CHEAP)
        opened.append(vault)
        return vault

    yield open_it
    for vault in opened:
        vault.close()


@pytest.fixture
def store_of(settings_of: Callable[[str], Settings]) -> Iterator[StoreOf]:
    opened: list[LocalStore] = []

    def open_it(name: str) -> LocalStore:
        store = LocalStore(settings_of(name).vault_path)
        opened.append(store)
        return store

    yield open_it
    for store in opened:
        store.close()
