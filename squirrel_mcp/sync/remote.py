"""The store on a server: each call one request, each answer parsed strictly."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from squirrel_mcp.crypto.key_set import KeySet
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.pin import Route
from squirrel_mcp.crypto.verifier import LogItem
from squirrel_mcp.errors import AppendDenied, BadReply, HeadMoved, NotFound, StoreFull, StoreRefused, StoreUnavailable
from squirrel_mcp.sync import strict_json, wire
from squirrel_mcp.sync.api_key import ApiKey
from squirrel_mcp.sync.store import AccountRecord, LogPage
from squirrel_mcp.sync.transport import Reply, Transport

PAGE_ENTRIES = 10_000
Scope = Literal["read", "write", "admin"]

# The server's own words are not shown: they are whatever a hostile one likes.
_REFUSALS = {
    "unauthenticated": "The server does not accept this API key: it may have been revoked or have expired.",
    "scope_denied": "This API key may not do that: it takes a key with more rights.",
    "account_exists": "The server has this account already.",
    "too_many_keys": "The account has as many API keys as the server allows: revoke one first.",
    "uploading": "The account is still being moved to the server; finish `squirrel-mcp move` first.",
    "forgotten": "The memory was forgotten; nothing brings it back.",
    "unknown_memory": "The server does not know this memory.",
    "too_large": "That is more than the server takes at once.",
    "malformed": "The server refused the request as malformed.",
    "invite_refused": "The server does not know this invite: it was used, has expired, or is for another server.",
}


class RemoteStore:
    """One account on a server, reached with one API key."""

    def __init__(self, transport: Transport, api_key: ApiKey) -> None:
        self._transport, self._key = transport, api_key

    @property
    def route(self) -> Route:
        return (self._transport.origin, self._key.id)

    def account(self) -> AccountRecord:
        return wire.read_account(self._ask("GET", "/v1/account"))

    def read_log(
        self, after: int, *, limit: int = PAGE_ENTRIES, objects: Literal["latest", "all"] = "latest"
    ) -> LogPage:
        params = {"after": str(after), "limit": str(limit), "objects": objects}
        return wire.read_page(self._ask("GET", "/v1/log", params=params))

    def append(self, append_key: bytes, items: Sequence[LogItem]) -> Head:
        body = {"entries": wire.items_field(items)}
        return wire.read_head(self._ask("POST", "/v1/log", append_key, body).get("head"))

    def replace_key_set(self, append_key: bytes, key_set: KeySet, entry: bytes, append_verifier: bytes | None) -> Head:
        body = {
            **wire.key_set_fields(key_set),
            "entry": wire.encode(entry),
            "appendVerifier": None if append_verifier is None else append_verifier.hex(),
        }
        return wire.read_head(self._ask("PUT", "/v1/account/key-set", append_key, body).get("head"))

    def object(self, sha256: bytes) -> bytes:
        return wire.read_object(self._ask("GET", f"/v1/objects/{sha256.hex()}"))

    def settled(self, head: Head) -> None:
        """Nothing is kept here."""

    def keys(self) -> list[dict[str, Any]]:
        """Every API key of the account as the server lists it, secrets aside."""
        listed = self._ask("GET", "/v1/keys").get("keys")
        if type(listed) is not list or not all(type(key) is dict for key in listed):
            raise BadReply("The server's list of keys is not in the protocol's form.")
        return listed

    def create_key(self, append_key: bytes, scope: Scope, expires_at: int | None = None) -> ApiKey:
        """A new key; `expires_at` is in seconds since 1970."""
        body = {"scope": scope, "expiresAt": expires_at}
        return ApiKey(wire.read_string(self._ask("POST", "/v1/keys", append_key, body), "apiKey"))

    def revoke_key(self, append_key: bytes, key_id: str) -> None:
        self._ask("DELETE", f"/v1/keys/{key_id}", append_key)

    def delete_account(self, append_key: bytes) -> None:
        self._ask("DELETE", "/v1/account", append_key)

    def close(self) -> None:
        self._transport.close()

    def _ask(
        self,
        method: str,
        path: str,
        append_key: bytes | None = None,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        return read_reply(self._send(method, path, append_key, body, params))

    def _send(
        self,
        method: str,
        path: str,
        append_key: bytes | None = None,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Reply:
        headers = self._key.header()
        if append_key is not None:
            headers["Squirrel-Append"] = wire.encode(append_key)
        raw = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        return self._transport.request(method, path, headers=headers, body=raw, params=params)


def read_reply(reply: Reply) -> dict[str, Any]:
    """The object in a successful answer (empty for 204), else the error that the answer stands for."""
    if reply.status == 204:
        return {}
    if reply.status not in (200, 201):
        raise _refusal(reply)
    try:
        return strict_json.parse(reply.body)
    except strict_json.NotStrict:
        pass
    raise BadReply("The server's answer is not the protocol's JSON: another program may stand in its place.")


def _refusal(reply: Reply) -> Exception:
    try:
        problem = strict_json.parse(reply.body)
        code = problem.get("code")
        head = wire.read_head(problem.get("head")) if reply.status == 412 else None
    except (strict_json.NotStrict, BadReply):
        code, head = None, None
    if type(code) is not str:
        return BadReply(f"The server answered with status {reply.status} and nothing of the protocol.")
    if head is not None:
        return HeadMoved(head)
    if code == "append_denied":
        return AppendDenied()
    if reply.status == 404:
        return NotFound("The server does not have this.")
    if reply.status == 507:
        return StoreFull("The server has no space left; nothing was stored.")
    if reply.status >= 500:
        return StoreUnavailable("The server failed; try again in a moment.")
    known = code if code in _REFUSALS else "malformed"
    return StoreRefused(known, _REFUSALS[known])
