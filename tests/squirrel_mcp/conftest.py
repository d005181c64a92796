"""Vaults for tests: real files, the cheapest key derivation that the bounds allow, a clock that tests move."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from squirrel_mcp import opening
from squirrel_mcp.crypto import kdf
from squirrel_mcp.settings import Settings
from squirrel_mcp.vault import Vault

PASSPHRASE = "correct horse battery staple"
CHEAP = kdf.Argon2id(time=2, memory_kib=19_456, lanes=1)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def move(self, **by: float) -> None:
        self.now += timedelta(**by)


OpenVault = Callable[..., Vault]


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path / "data", cache_dir=tmp_path / "cache", passphrase=PASSPHRASE)


@pytest.fixture
def open_vault(settings: Settings, clock: Clock) -> Iterator[OpenVault]:
    """Open the vault of `settings` once more, perhaps with another passphrase; each is like another process."""
    opened: list[Vault] = []

    def open_one(passphrase: str = PASSPHRASE) -> Vault:
        mine = replace(settings, passphrase=passphrase)
        vault = opening.open_vault(mine, opening.from_settings(mine), clock=clock, parameters=CHEAP)
        opened.append(vault)
        return vault

    yield open_one
    for vault in opened:
        vault.close()
