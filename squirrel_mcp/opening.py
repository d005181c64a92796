"""From settings to an unlocked vault, on this machine or on a server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from squirrel_mcp import local_vault, passphrase
from squirrel_mcp.crypto import kdf
from squirrel_mcp.crypto.key_set import KeyRing, KeySet
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.pin import Pin
from squirrel_mcp.crypto.wrap import Secret
from squirrel_mcp.errors import PinDamaged, WrongPassphrase
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.pins import PinFolder
from squirrel_mcp.sync.store import Store
from squirrel_mcp.vault import Clock, Vault, utc_now


class Unlocker:
    """Opens key sets with the secret that its source gives at that moment.

    A secret that a key set refused is not stretched again for it: asking often does not cost a KDF each time.
    """

    def __init__(self, source: Callable[[], Secret]) -> None:
        self.secret = source
        self._refused: tuple[bytes, Secret] | None = None
        self._at_hand: Secret | None = None

    def ask(self) -> Secret:
        """The secret, kept for the key set that is opened next: nobody touches a security key twice for one opening."""
        self._at_hand = self.secret()
        return self._at_hand

    def __call__(self, key_set: KeySet) -> KeyRing:
        secret, self._at_hand = self._at_hand or self.secret(), None
        if self._refused == (key_set.sha256, secret):
            raise WrongPassphrase
        try:
            return key_set.open(secret)
        except WrongPassphrase:
            self._refused = (key_set.sha256, secret)
            raise


def from_settings(settings: Settings) -> Unlocker:
    """Unlocks with the passphrase that the settings point at."""
    return Unlocker(lambda: passphrase.read(settings))


def place(settings: Settings) -> str:
    """Where the memories are, for people."""
    return f"server {settings.api_base_url}" if settings.api_base_url else f"local vault {settings.vault_path}"


def open_vault(
    settings: Settings,
    unlock: Unlocker,
    *,
    clock: Clock = utc_now,
    parameters: kdf.Parameters = kdf.DEFAULT,
) -> Vault:
    """The configured vault. One on this machine is made at the first start with a passphrase; a server's never is.

    Whatever goes wrong, nothing is written.
    """
    secret = unlock.ask()  # before any file is made

    def unlocked(store: Store) -> Vault:
        return Vault(store, PinFolder(settings.data_dir), unlock, clock=clock, parameters=parameters)

    if settings.api_base_url is not None:
        from squirrel_mcp import remote_vault

        return remote_vault.open_with_cache(settings, unlocked)
    store = local_vault.existing(settings) or local_vault.create(settings, secret, clock, parameters)
    try:
        return unlocked(store)
    except BaseException:
        store.close()
        raise


def has_vault(settings: Settings) -> bool:
    """Whether an account was made in the vault file; VaultMissing if this device has used one that is gone."""
    store = local_vault.existing(settings)
    if store is None:
        return False
    store.close()
    return True


class Heads(NamedTuple):
    """What this device has seen last, and what the store holds now."""

    pinned: Head
    served: Head


def rolled_back(settings: Settings) -> Heads | None:
    """The head this device has seen last and the one of the store; None where nothing is pinned."""
    store = _store(settings)
    try:
        pins = PinFolder(settings.data_dir).by_route(store.route)
        return Heads(pins[0].pin.head, store.account().head) if pins else None
    finally:
        store.close()


def accept_rollback(settings: Settings, unlock: Unlocker, *, clock: Clock = utc_now) -> Vault:
    """Believe the store as it is now, and pin that. Only a person may decide this; the passphrase must open it."""
    store = _store(settings)
    try:
        with TemporaryDirectory() as nothing_pinned:
            # All of it must verify by itself before what this device knows is given up.
            if verdict := Vault(store, PinFolder(Path(nothing_pinned)), unlock, clock=clock).verdict:
                raise verdict
        pins = PinFolder(settings.data_dir)
        try:
            known = pins.by_route(store.route)
        except PinDamaged:
            known = []
        pins.drop(store.route)
        if settings.api_base_url is not None:
            from squirrel_mcp import remote_vault

            remote_vault.drop_cache(settings, store.route)
        vault = Vault(store, pins, unlock, clock=clock)
        for sealed in known:
            # Other ways to the same account stay known, such as the vault file that was moved to this server.
            if sealed.pin.account_id == vault.account_id:
                pins.write(Pin(vault.key_set, vault.head, sealed.pin.routes), vault.ring)
        return vault
    except BaseException:
        store.close()
        raise


def _store(settings: Settings) -> Store:
    """The configured store itself, without a cache."""
    if settings.api_base_url is not None:
        from squirrel_mcp import remote_vault

        return remote_vault.remote_store(settings)
    store = local_vault.existing(settings)
    if store is None:
        raise local_vault.gone(settings)
    return store
