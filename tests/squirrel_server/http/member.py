"""Somebody with an account on a server: their log as `Client` knows it, and their API key."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import httpx

from tests.squirrel_server.http.running import Running
from tests.squirrel_server.store.builder import Client, KeySetRequest, Pair


def base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def opening_of(client: Client, request: KeySetRequest, invite: str) -> dict[str, Any]:
    """The body of POST /v1/accounts."""
    verifier = request.append_verifier
    return {
        "accountId": client.account_id.hex(),
        "wraps": [base64(wrap) for wrap in request.wraps],
        "previousKeys": None if request.previous_keys is None else base64(request.previous_keys),
        "entry": base64(request.entry),
        "appendVerifier": None if verifier is None else verifier.hex(),
        "invite": invite,
    }


def key_set_of(request: KeySetRequest) -> dict[str, Any]:
    """The body of PUT /v1/account/key-set."""
    return {
        "wraps": [base64(wrap) for wrap in request.wraps],
        "previousKeys": None if request.previous_keys is None else base64(request.previous_keys),
        "entry": base64(request.entry),
        "appendVerifier": None if request.append_verifier is None else request.append_verifier.hex(),
    }


def batch_of(pairs: Sequence[Pair]) -> dict[str, Any]:
    """The body of POST /v1/log."""
    return {
        "entries": [{"entry": base64(entry), "object": None if body is None else base64(body)} for entry, body in pairs]
    }


class Member:
    """Calls routes as their client would; `web` keeps the connection."""

    def __init__(self, web: httpx.Client, client: Client, key: str) -> None:
        self.web, self.client, self.key = web, client, key

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}", "Squirrel-Append": base64(self.client.append_key)}

    def call(self, method: str, path: str, body: Any = None, **changes: str | None) -> httpx.Response:
        """A request with the key and the append key; `changes` replace headers, None leaves one out."""
        named = {name.replace("_", "-"): value for name, value in changes.items()}
        merged = {**{name.lower(): value for name, value in self.headers.items()}, **named}
        headers = {name: value for name, value in merged.items() if value is not None}
        return self.web.request(method, path, headers=headers, **({} if body is None else {"json": body}))

    def append(self, *pairs: Pair) -> httpx.Response:
        return self.call("POST", "/v1/log", batch_of(pairs))

    def with_key(self, scope: str, **more: Any) -> Member:
        """The same member with another key that this one made."""
        made = self.call("POST", "/v1/keys", {"scope": scope, **more})
        assert made.status_code == 201, made.text
        return Member(self.web, self.client, made.json()["apiKey"])


def joined(server: Running, web: httpx.Client) -> Member:
    """A new account on the server, by its admin key."""
    client = Client()
    request = client.first()
    answer = web.post("/v1/accounts", json=opening_of(client, request, server.invite()))
    assert answer.status_code == 201, answer.text
    client.took(request)
    return Member(web, client, answer.json()["apiKey"])


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The document of a reply that must be this problem."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    found: dict[str, Any] = answer.json()
    assert (answer.status_code, found["status"], found["code"]) == (status, status, code), answer.text
    assert found["type"] == "about:blank" and found["title"] and found["detail"]
    return found
