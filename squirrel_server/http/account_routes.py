"""Accounts: opening one, its key set, its end."""

from __future__ import annotations

import os

from fastapi import APIRouter, Request
from starlette.responses import Response

from squirrel_server.api_keys import Scope, make_key, read_invite
from squirrel_server.http.encoding import to_base64
from squirrel_server.http.gate import Call, Gate, Visit
from squirrel_server.http.openapi import APPEND_KEY, WITH_BODY, WITH_KEY, described
from squirrel_server.http.options import MAX_BODY_BYTES
from squirrel_server.http.replies import head_of, reply
from squirrel_server.http.shapes import Account, AccountKey, HeadReply, KeySet, NewAccount
from squirrel_server.store import MAX_ENTRIES, MAX_OBJECT_BYTES
from squirrel_server.store.server_store import Opening

_LIMITS = {"maxBodyBytes": MAX_BODY_BYTES, "maxEntries": MAX_ENTRIES, "maxObjectBytes": MAX_OBJECT_BYTES}


def router(gate: Gate) -> APIRouter:
    """The routes, for one process's gate."""
    routes = APIRouter()

    @routes.post(
        "/v1/accounts",
        **described(
            "Open an account with an invite; the admin key is shown here and never again",
            AccountKey, (403, 409, 503, 507, *WITH_BODY), status=201, body=NewAccount, key=False,
        ),
    )  # fmt: skip
    async def open_account(request: Request) -> Response:
        return await gate.visit(request, _open, NewAccount)

    @routes.get("/v1/account", **described("The key set and the head it belongs to", Account, WITH_KEY))
    async def account(request: Request) -> Response:
        return await gate.call(request, Scope.READ, _account)

    @routes.put(
        "/v1/account/key-set",
        **described(
            "Replace the key set by one rewrap or rotate",
            HeadReply, (412, 507, *WITH_KEY, *WITH_BODY), body=KeySet, parameters=[APPEND_KEY],
        ),
    )  # fmt: skip
    async def replace_key_set(request: Request) -> Response:
        return await gate.call(request, Scope.ADMIN, _replace_key_set, KeySet)

    @routes.delete(
        "/v1/account",
        **described("Erase the account", None, (507, *WITH_KEY), status=204, parameters=[APPEND_KEY]),
    )
    async def delete_account(request: Request) -> Response:
        return await gate.call(request, Scope.ADMIN, _delete, while_uploading=True)

    return routes


def _open(visit: Visit) -> Response:
    asked: NewAccount = visit.body
    key = make_key(os.urandom)
    upload = (asked.upload.seq, asked.upload.mac) if asked.upload else None
    opening = Opening(asked.accountId, asked.wraps, asked.previousKeys, asked.entry, asked.appendVerifier, upload)
    visit.store.open_account(opening, read_invite(asked.invite), key.key_id, key.digest, visit.now)
    return reply({"apiKey": key.text}, 201)


def _account(call: Call) -> Response:
    record = call.store.account(call.account_id)
    return reply(
        {
            "accountId": record.account_id.hex(),
            "wraps": [to_base64(wrap) for wrap in record.wraps],
            "previousKeys": None if record.previous_keys is None else to_base64(record.previous_keys),
            "head": head_of(record.head),
            "limits": _LIMITS,
        }
    )


def _replace_key_set(call: Call) -> Response:
    asked: KeySet = call.body
    head = call.store.replace_key_set(
        call.account_id, call.append_key, asked.wraps, asked.previousKeys, asked.entry, asked.appendVerifier
    )
    return reply({"head": head_of(head)})


def _delete(call: Call) -> Response:
    call.store.delete_account(call.account_id, call.append_key)
    return Response(status_code=204)
