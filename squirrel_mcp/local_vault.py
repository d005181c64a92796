"""The embedded vault's file: is it there, and making it once."""

from __future__ import annotations

from squirrel_mcp import private_files
from squirrel_mcp.crypto import kdf
from squirrel_mcp.crypto.pin import Pin
from squirrel_mcp.crypto.wrap import Secret
from squirrel_mcp.errors import PinDamaged, StoreError, VaultMissing, VaultMoved
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.local import LocalStore, route_of
from squirrel_mcp.sync.pins import PinFolder
from squirrel_mcp.vault import Clock, create_account


def existing(settings: Settings) -> LocalStore | None:
    """The store, if its file is there and holds an account; None where this device never had one.

    VaultMissing or VaultMoved where it had; VaultMoved too where the file is only left from a move to a server.
    """
    store = _open(settings)
    if store is None:
        if PinFolder(settings.data_dir).by_route(route_of(settings.vault_path)):
            raise gone(settings)
        return None
    try:
        _refuse_left_behind(settings, store)
    except BaseException:
        store.close()
        raise
    return store


def create(settings: Settings, secret: Secret, clock: Clock, parameters: kdf.Parameters) -> LocalStore:
    """Make the vault. PassphraseRefused for a short passphrase, before anything is written."""
    if isinstance(secret, bytes):
        raise VaultMissing(f"There is no vault at {settings.vault_path} to recover.")
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


def gone(settings: Settings) -> StoreError:
    """Why there is no vault file although this device has used it."""
    path = settings.vault_path
    for sealed in PinFolder(settings.data_dir).by_route(route_of(path)):
        origin = _server_of(sealed.pin)
        if origin is not None:
            return VaultMoved(
                f"The memories of {path} were moved to {origin}: set SQUIRREL_API_BASE_URL and SQUIRREL_API_KEY."
            )
    return VaultMissing(
        f"The vault file {path} is gone or empty, but this device has used it. Put it back from a backup; to begin "
        "anew, move the state-*.bin files of that folder away first."
    )


def _refuse_left_behind(settings: Settings, store: LocalStore) -> None:
    """VaultMoved for a file that is older than what this device has seen of the same account on a server.

    To go on from such a file would make two accounts of one.
    """
    try:
        pins = PinFolder(settings.data_dir).by_route(store.route)
    except PinDamaged:
        return  # told where the vault is opened
    for sealed in pins:
        origin = _server_of(sealed.pin)
        if origin is not None and sealed.pin.head.seq > store.account().head.seq:
            raise VaultMoved(
                f"The move of {settings.vault_path} to {origin} is not finished: the memories have gone on there, and "
                f"the file was not set aside. Run `squirrel-mcp move --to {origin}` again, with SQUIRREL_API_BASE_URL "
                "and SQUIRREL_API_KEY set."
            )


def _server_of(pin: Pin) -> str | None:
    """The server where the account is kept too, if this device knows one."""
    return next((origin for origin, key_id in pin.routes if key_id), None)


def _open(settings: Settings) -> LocalStore | None:
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
