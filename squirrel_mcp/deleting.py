"""The end of an account: erased where it is kept, then forgotten by this device; other accounts' files stay."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

from squirrel_mcp import private_files
from squirrel_mcp.crypto import pin as pin_format
from squirrel_mcp.crypto.pin import Route
from squirrel_mcp.moving import moved_path
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.local import LocalStore, route_of
from squirrel_mcp.sync.pins import PinFolder
from squirrel_mcp.vault import Vault

_SUFFIXES = ("", "-journal", "-wal", "-shm")  # SQLite's files beside a database


def delete(settings: Settings, vault: Vault) -> None:
    """Erase the account of the unlocked `vault`, which is closed, and what this device keeps of it.

    A StoreError leaves everything as it was: what is here goes only after the account itself.
    """
    account_id, append_key = vault.account_id, vault.ring.current.append
    if settings.api_base_url is not None:
        from squirrel_mcp import remote_vault

        with closing(remote_vault.remote_store(settings)) as remote:
            remote.delete_account(append_key)
        vault.close()
    else:
        # Nobody may make a new vault in the file between its account's end and its own.
        with private_files.lock(settings.data_dir / "vault.lock"):
            with closing(LocalStore(settings.vault_path)) as local:
                local.delete_account(append_key)
            vault.close()
            _remove(settings.vault_path)
    _forget(settings, account_id)


def _forget(settings: Settings, account_id: bytes) -> None:
    """Pin, state caches and the file that a move left behind. The companion, once it is there, adds its vector file."""
    known = PinFolder(settings.data_dir).of_account(account_id)
    routes: tuple[Route, ...] = known.pin.routes if known is not None else ()
    for route in routes:
        if route[1]:
            from squirrel_mcp import remote_vault

            _remove(remote_vault.cache_path(settings, route))
    if settings.api_base_url is not None and route_of(settings.vault_path) in routes:
        _remove(moved_path(settings))  # a move names the file's old place in the pin
    path = settings.data_dir / pin_format.file_name(account_id)
    with private_files.lock(path.with_suffix(".lock")):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # somebody may be holding it
        path.with_suffix(".lock").unlink()
    if not any(settings.data_dir.glob("state-*.bin")):
        (settings.data_dir / "last-export").unlink(missing_ok=True)


def _remove(path: Path) -> None:
    for suffix in _SUFFIXES:
        Path(f"{path}{suffix}").unlink(missing_ok=True)
