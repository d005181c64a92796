"""The `Store` interface over HTTP, so that the stores' contract suite can be run against a server.

It translates and checks nothing. An account is known to it by the key that its registration brought.
"""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Sequence
from typing import Any, NoReturn

import httpx

from squirrel_server.store import MAX_ENTRIES, AccountRecord, Head, LogPage, Objects, StoreError, errors
from tests.squirrel_server.http.member import base64, batch_of
from tests.squirrel_server.http.running import Running

_CLASSES = {
    value.code: value for value in vars(errors).values() if isinstance(value, type) and issubclass(value, StoreError)
}


class HttpStore:
    """One client of one server."""

    def __init__(self, server: Running) -> None:
        self._server, self._web = server, server.client()
        self._keys: dict[bytes, str] = {}

    def register(
        self,
        account_id: bytes,
        wraps: Sequence[bytes],
        previous_keys: bytes | None,
        entry: bytes,
        append_verifier: bytes,
    ) -> Head:
        body = {
            "accountId": account_id.hex(),
            **_key_set(wraps, previous_keys, entry, append_verifier),
            "invite": self._server.invite(),
        }
        answer = self._web.post("/v1/accounts", json=body)
        self._keys[account_id] = _checked(answer, 201)["apiKey"]
        return Head(1, entry[106:])

    def account(self, account_id: bytes) -> AccountRecord:
        found = _checked(self._call(account_id, "GET", "/v1/account"))
        wraps = tuple(b64decode(wrap) for wrap in found["wraps"])
        return AccountRecord(bytes.fromhex(found["accountId"]), wraps, _bytes(found["previousKeys"]), _head(found))

    def read_log(self, account_id: bytes, after: int, limit: int = MAX_ENTRIES, objects: Objects = "latest") -> LogPage:
        path = f"/v1/log?after={after}&limit={limit}&objects={objects}"
        found = _checked(self._call(account_id, "GET", path))
        entries = tuple((b64decode(item["entry"]), _bytes(item["object"])) for item in found["entries"])
        return LogPage(entries, _head(found), found["more"])

    def append(self, account_id: bytes, append_key: bytes, entries: Sequence[tuple[bytes, bytes | None]]) -> Head:
        return _head(_checked(self._call(account_id, "POST", "/v1/log", append_key, batch_of(entries))))

    def replace_key_set(
        self,
        account_id: bytes,
        append_key: bytes,
        wraps: Sequence[bytes],
        previous_keys: bytes | None,
        entry: bytes,
        append_verifier: bytes | None,
    ) -> Head:
        body = _key_set(wraps, previous_keys, entry, append_verifier)
        return _head(_checked(self._call(account_id, "PUT", "/v1/account/key-set", append_key, body)))

    def object(self, account_id: bytes, sha256: bytes) -> bytes:
        found = _checked(self._call(account_id, "GET", f"/v1/objects/{sha256.hex()}"))
        return b64decode(found["object"])

    def delete_account(self, account_id: bytes, append_key: bytes) -> None:
        answer = self._call(account_id, "DELETE", "/v1/account", append_key)
        if answer.status_code != 204:
            _refuse(answer)
        assert answer.content == b""

    def close(self) -> None:
        self._web.close()

    def _call(
        self, account_id: bytes, method: str, path: str, append_key: bytes | None = None, body: Any = None
    ) -> httpx.Response:
        if account_id not in self._keys:
            # No request can name an account: there is nothing that could be sent.
            raise errors.UnknownAccount if len(account_id) == 16 else errors.Malformed("an id of another length")
        headers = {"Authorization": f"Bearer {self._keys[account_id]}"}
        if append_key is not None:
            headers["Squirrel-Append"] = base64(append_key)
        return self._web.request(method, path, headers=headers, **({} if body is None else {"json": body}))


def _key_set(
    wraps: Sequence[bytes], previous_keys: bytes | None, entry: bytes, append_verifier: bytes | None
) -> dict[str, Any]:
    return {
        "wraps": [base64(wrap) for wrap in wraps],
        "previousKeys": None if previous_keys is None else base64(previous_keys),
        "entry": base64(entry),
        "appendVerifier": None if append_verifier is None else append_verifier.hex(),
    }


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _head(found: dict[str, Any]) -> Head:
    return Head(found["head"]["seq"], bytes.fromhex(found["head"]["mac"]))


def _checked(answer: httpx.Response, status: int = 200) -> dict[str, Any]:
    if answer.status_code != status:
        _refuse(answer)
    assert answer.headers["content-type"] == "application/json"
    found: dict[str, Any] = answer.json()
    return found


def _refuse(answer: httpx.Response) -> NoReturn:
    found = answer.json()
    code = {"unauthenticated": "unknown_account"}.get(found["code"], found["code"])
    if code == "head_moved":
        raise errors.HeadMoved(_head(found))
    kind = _CLASSES[code]
    raise kind(found["detail"]) if kind.__init__ is StoreError.__init__ else kind()
