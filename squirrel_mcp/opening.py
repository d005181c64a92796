"""From settings to an unlocked vault on this machine: the file, its pin, the passphrase."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from squirrel_mcp import passphrase, private_files
from squirrel_mcp.crypto import kdf
from squirrel_mcp.crypto.key_set import KeyRing, KeySet
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.wrap import Secret
from squirrel_mcp.errors import VaultMissing, WrongPassphrase
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.local import LocalStore, route_of
from squirrel_mcp.sync.pins import PinFolder
from squirrel_mcp.vault import Clock, Vault, create_account, utc_now


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


def open_vault(
    settings: Settings,
    unlock: Unlocker,
    *,
    clock: Clock = utc_now,
    parameters: kdf.Parameters = kdf.DEFAULT,
) -> Vault:
    """The vault of this machine, made at the first start with a passphrase. Whatever goes wrong, nothing is written."""
    secret = unlock.ask()  # before any file is made
    store = _existing(settings) or _create(settings, secret, clock, parameters)
    try:
        return Vault(store, PinFolder(settings.data_dir), unlock, clock=clock, parameters=parameters)
    except BaseException:
        store.close()
        raise


def has_vault(settings: Settings) -> bool:
    """Whether an account was made in the vault file; VaultMissing if this device has used one that is gone."""
    store = _existing(settings)
    if store is not None:
        store.close()
        return True
    if PinFolder(settings.data_dir).by_route(route_of(settings.vault_path)):
        raise _missing(settings)
    return False


class Heads(NamedTuple):
    """What this device has seen last, and what the vault file holds now."""

    pinned: Head
    served: Head


def rolled_back(settings: Settings) -> Heads | None:
    """The head this device has seen last and the one of the vault file; None where nothing is pinned."""
    pins = PinFolder(settings.data_dir).by_route(route_of(settings.vault_path))
    store = _existing(settings)
    if store is None:
        return None
    try:
        return Heads(pins[0].pin.head, store.account().head) if pins else None
    finally:
        store.close()


def accept_rollback(settings: Settings, unlock: Unlocker, *, clock: Clock = utc_now) -> Vault:
    """Believe the vault file as it is now, and pin that. Only a person may decide this; the passphrase must open it."""
    store = _existing(settings)
    if store is None:
        raise _missing(settings)
    try:
        with TemporaryDirectory() as nothing_pinned:
            # All of it must verify by itself before what this device knows is given up.
            if verdict := Vault(store, PinFolder(Path(nothing_pinned)), unlock, clock=clock).verdict:
                raise verdict
        pins = PinFolder(settings.data_dir)
        pins.drop(store.route)
        return Vault(store, pins, unlock, clock=clock)
    except BaseException:
        store.close()
        raise


def _existing(settings: Settings) -> LocalStore | None:
    """The store, if its file is there and holds an account."""
    if not settings.data_dir.exists():
        return None
    private_files.ensure_folder(settings.data_dir)
    path = settings.vault_path
    if not private_files.check(path) or path.stat().st_size == 0:
        return None
    store = LocalStore(path)
    try:
        if not store.is_empty():
            return store
    except BaseException:
        store.close()
        raise
    store.close()
    return None


def _create(settings: Settings, secret: Secret, clock: Clock, parameters: kdf.Parameters) -> LocalStore:
    if PinFolder(settings.data_dir).by_route(route_of(settings.vault_path)) or isinstance(secret, bytes):
        raise _missing(settings)
    kdf.check_new(secret)
    private_files.ensure_folder(settings.data_dir)
    with private_files.lock(settings.data_dir / "vault.lock"):
        store = LocalStore(settings.vault_path)
        try:
            if store.is_empty():  # another process may have been first
                create_account(store, secret, clock=clock, parameters=parameters)
        except BaseException:
            store.close()
            raise
    return store


def _missing(settings: Settings) -> VaultMissing:
    return VaultMissing(
        f"The vault file {settings.vault_path} is gone or empty, but this device has used it. Put it back from a "
        "backup; to begin anew, move the state-*.bin files of that folder away first."
    )
