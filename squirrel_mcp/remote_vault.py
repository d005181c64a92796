"""From settings to an unlocked account on a server."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from squirrel_mcp import private_files
from squirrel_mcp.crypto import kdf, log, pin
from squirrel_mcp.crypto.key_set import KeySet
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.pin import Route
from squirrel_mcp.errors import ConfigurationError, Verdict
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync import wire
from squirrel_mcp.sync.api_key import ApiKey
from squirrel_mcp.sync.cached import CachedStore
from squirrel_mcp.sync.remote import RemoteStore, read_reply
from squirrel_mcp.sync.state_cache import StateCache
from squirrel_mcp.sync.store import Store
from squirrel_mcp.sync.transport import Transport
from squirrel_mcp.vault import Clock, Vault, create_account, utc_now


def transport(settings: Settings, origin: str | None = None) -> Transport:
    """To the configured server, or to `origin` before it is configured."""
    address = origin or settings.api_base_url
    if address is None:
        raise ConfigurationError("No server is configured: set SQUIRREL_API_BASE_URL.")
    return Transport(address, ca_file=settings.ca_file, proxy=settings.https_proxy)


def remote_store(settings: Settings) -> RemoteStore:
    """The account that the settings name. ConfigurationError without a usable address and API key."""
    if settings.api_key is None:
        raise ConfigurationError("SQUIRREL_API_BASE_URL is set but SQUIRREL_API_KEY is not; a server needs both.")
    return RemoteStore(transport(settings), ApiKey(settings.api_key))


def open_with_cache(settings: Settings, make_vault: Callable[[Store], Vault]) -> Vault:
    """Unlock and sync through the state cache; a cache that does not fit the account is dropped once."""
    private_files.ensure_folder(settings.data_dir)
    remote = remote_store(settings)
    cache = StateCache(cache_path(settings, remote.route))
    store = CachedStore(remote, cache)
    try:
        if not store.has_cache:
            return make_vault(store)
        try:
            vault = make_vault(store)
            if vault.verdict is None:
                return vault
        except Verdict:
            pass
        # Was it the cache, or the server? Without the cache it is the server's word alone.
        store.drop_cache()
        return make_vault(store)
    except BaseException:
        store.close()
        raise


def create(
    to: Transport,
    invite: str,
    passphrase: str,
    recovery: bytes | None = None,
    *,
    clock: Clock = utc_now,
    parameters: kdf.Parameters = kdf.DEFAULT,
) -> ApiKey:
    """Make a new account with this passphrase and, if given, this recovery code (20 bytes); its first API key."""
    registrar = _Registrar(to, invite)
    create_account(registrar, passphrase, recovery=recovery, clock=clock, parameters=parameters)
    assert registrar.api_key is not None  # register raises otherwise
    return registrar.api_key


class _Registrar:
    """Makes accounts for `create_account` and keeps the key that came back."""

    def __init__(self, to: Transport, invite: str) -> None:
        self._to, self._invite = to, invite
        self.api_key: ApiKey | None = None

    def register(self, key_set: KeySet, entry: bytes, append_verifier: bytes) -> Head:
        self.api_key = register(self._to, self._invite, key_set, entry, append_verifier)
        return log.parse(entry).head


def register(
    to: Transport,
    invite: str,
    key_set: KeySet,
    entry: bytes,
    append_verifier: bytes,
    upload: Head | None = None,
) -> ApiKey:
    """Make the account on the server; the API key that comes back is shown once and has all rights.

    With `upload` (the head to reach) the account answers only to the entries that follow, until it is reached.
    """
    body: dict[str, Any] = {
        "accountId": key_set.account_id.hex(),
        **wire.key_set_fields(key_set),
        "entry": wire.encode(entry),
        "appendVerifier": append_verifier.hex(),
        "invite": invite,
    }
    if upload is not None:
        body["upload"] = {"seq": upload.seq, "mac": upload.mac.hex()}
    raw = json.dumps(body, separators=(",", ":")).encode()
    return ApiKey(wire.read_string(read_reply(to.request("POST", "/v1/accounts", headers={}, body=raw)), "apiKey"))


def drop_cache(settings: Settings, route: Route) -> None:
    """Forget what this device has kept of the account that is reached by `route`."""
    cache = StateCache(cache_path(settings, route))
    cache.drop()
    cache.close()


def cache_path(settings: Settings, route: Route) -> Path:
    """Where the state cache of an account is that is reached by `route`."""
    # By route and not by account, which is not known before the first answer.
    name = pin.file_name("\n".join(route).encode("utf-8", "surrogateescape"))
    return settings.data_dir / name.replace("state-", "cache-").replace(".bin", ".db")
