"""The end of an account: erased where it is kept, then forgotten by this device; other accounts' files stay."""

from __future__ import annotations

import re
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from squirrel_mcp import moving, passphrase, private_files, vector_files
from squirrel_mcp.crypto import pin as pin_format
from squirrel_mcp.crypto.pin import Pin, Route
from squirrel_mcp.errors import AppendDenied, PinDamaged, StoreRefused
from squirrel_mcp.portability import sealed_file
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.local import LocalStore, route_of
from squirrel_mcp.sync.pins import PinFolder
from squirrel_mcp.vault import Vault

_SUFFIXES = ("", "-journal", "-wal", "-shm")  # SQLite's files beside a database
_CERTIFICATE = re.compile(r"certificate-[0-9a-f]{16}\.pem")
_UNKNOWN_KEY = "unauthenticated"


class Erased(NamedTuple):
    """How an account ended.

    `confirmed`: the store said that it is erased; else it no longer knows the API key that had asked for it.
    `from_keyring`: the passphrase was taken out of the machine's keyring.
    """

    confirmed: bool
    from_keyring: bool


def delete(settings: Settings, vault: Vault) -> Erased:
    """Erase the account of the unlocked `vault`, which is closed, and what this device keeps of it.

    A StoreError leaves everything as it was: what is here goes only after the account itself. Where a reply may have
    been lost, `finish` ends it later.
    """
    account_id, ring = vault.account_id, vault.ring
    append_key = ring.current.append
    confirmed, note = True, None
    if settings.api_base_url is not None:
        confirmed, note = _erase_on_server(settings, append_key)
        vault.close()
    else:
        # Nobody may make a new vault in the file between its account's end and its own.
        with private_files.lock(settings.data_dir / "vault.lock"):
            with closing(LocalStore(settings.vault_path)) as local:
                local.delete_account(append_key)
            vault.close()
            _remove(settings.vault_path)
    vector_files.drop(settings.cache_dir, ring)
    from_keyring = _forget(settings, account_id)
    if note is not None:
        note.unlink(missing_ok=True)
    return Erased(confirmed, from_keyring)


def finish(settings: Settings) -> Erased | None:
    """End an erasing that was begun earlier with this API key, if the server no longer knows the key.

    None where none was begun, or where the account is still there: then nothing was changed.
    """
    if settings.api_base_url is None:
        return None
    from squirrel_mcp import remote_vault

    with closing(remote_vault.remote_store(settings)) as remote:
        note = _note_path(settings, remote.route)
        if not note.exists():
            return None
        try:
            remote.account()
        except StoreRefused as error:
            if error.code != _UNKNOWN_KEY:
                raise
        else:
            return None
        known = PinFolder(settings.data_dir).by_route(remote.route)
    from_keyring = [_forget(settings, sealed.pin.account_id) for sealed in known]
    note.unlink(missing_ok=True)
    return Erased(False, any(from_keyring))


def _erase_on_server(settings: Settings, append_key: bytes) -> tuple[bool, Path]:
    """Whether the server says so; False if it does not know the key any more, which it did when the vault was opened.

    A note stays until this device has forgotten the account too, or the server has refused: only with it is an
    unknown key later taken for the end of the account. Its path comes back.
    """
    from squirrel_mcp import remote_vault

    with closing(remote_vault.remote_store(settings)) as remote:
        note = _note_path(settings, remote.route)
        private_files.replace(note, b"")
        try:
            remote.delete_account(append_key)
        except (AppendDenied, StoreRefused) as error:
            if error.code != _UNKNOWN_KEY:
                note.unlink(missing_ok=True)
                raise
            return False, note
        return True, note


def _note_path(settings: Settings, route: Route) -> Path:
    from squirrel_mcp import remote_vault

    return settings.data_dir / remote_vault.cache_path(settings, route).stem.replace("cache-", "erasing-")


def _forget(settings: Settings, account_id: bytes) -> bool:
    """Remove what is only this account's: pin, state caches, exports before a rollback, the file that a move left.

    The server's certificate and the passphrase in the keyring go with the last account that may need them; whether
    the latter went is returned. Vector files go by the pinned key: only who holds the ring knows earlier ones.
    """
    known = PinFolder(settings.data_dir).of_account(account_id)
    if known is not None:
        vector_files.drop_of(settings.cache_dir, {known.pin.key_set.kid})
    routes: tuple[Route, ...] = known.pin.routes if known is not None else ()
    for route in routes:
        if route[1]:
            from squirrel_mcp import remote_vault

            _remove(remote_vault.cache_path(settings, route))
    if settings.api_base_url is not None and route_of(settings.vault_path) in routes:
        _remove(moving.moved_path(settings))  # a move names the file's old place in the pin
    path = settings.data_dir / pin_format.file_name(account_id)
    with private_files.lock(path.with_suffix(".lock")):
        path.unlink(missing_ok=True)
    with suppress(OSError):  # somebody may be holding it
        path.with_suffix(".lock").unlink()
    for export in settings.data_dir.glob("before-rollback-*.squirrel"):
        if sealed_file.account_of(export) == account_id:
            export.unlink(missing_ok=True)
    others = _other_pins(settings)
    if others is None:
        return False  # an account that cannot be read may need all of it
    _forget_certificate(settings, others)
    if others or settings.vault_path.exists():
        return False
    (settings.data_dir / "last-export").unlink(missing_ok=True)
    return passphrase.drop_from_keyring(settings)


def _other_pins(settings: Settings) -> list[Pin] | None:
    """Of the accounts that are left in the folder; None if one is damaged."""
    try:
        return [sealed.pin for sealed in PinFolder(settings.data_dir).all()]
    except PinDamaged:
        return None


def _forget_certificate(settings: Settings, others: list[Pin]) -> None:
    """The one that `init`, `join` or `move` kept, and nobody's own file, unless others reach the same server."""
    kept = settings.ca_file
    if settings.api_base_url is None or kept is None:
        return
    if kept.parent != settings.data_dir or not _CERTIFICATE.fullmatch(kept.name):
        return
    from squirrel_mcp.sync.transport import check_origin

    own = check_origin(settings.api_base_url)
    if not any(origin == own for pin in others for origin, _ in pin.routes):
        kept.unlink(missing_ok=True)


def _remove(path: Path) -> None:
    for suffix in _SUFFIXES:
        Path(f"{path}{suffix}").unlink(missing_ok=True)
