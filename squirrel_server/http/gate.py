"""Who gets in, and how much at once: every route's request goes through here, in one order.

Address limit (429); form of the key (401); headers and size of the body (415, 413); then, in a worker thread: the
key (401), its limit (429), its scope (403), an account under way (409), the shape of the body (422), the store.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from anyio import CapacityLimiter, to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response

from squirrel_server.api_keys import Presented, Scope, fits, read_key
from squirrel_server.http import shapes, strict_json
from squirrel_server.http.bodies import BodyBudget, check_headers, read_body
from squirrel_server.http.encoding import from_base64
from squirrel_server.http.limits import Buckets, bucket_of
from squirrel_server.http.options import ServerOptions
from squirrel_server.http.problems import Problem, limited, of_store, unauthenticated
from squirrel_server.store import Failed, StoreError
from squirrel_server.store.server_store import SECONDS_OF_DAY, Bearer, ServerStore

_COST_OF_A_WRONG_KEY = 10  # tokens of the address, on top of the request's own


@dataclass(frozen=True, slots=True)
class Visit:
    """A request of nobody in particular: the store, the time (seconds since 1970), the body in its shape."""

    store: ServerStore
    request: Request
    now: int
    body: Any = None


@dataclass(frozen=True, slots=True)
class Call(Visit):
    """A request that was let in, for one account."""

    account_id: bytes = b""
    append_key: bytes = b""


class Gate:
    """The one of a process. `clock` tells seconds since 1970."""

    def __init__(self, options: ServerOptions, store: ServerStore, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self._clock = clock
        self._behind_proxy = options.behind_proxy
        self._addresses = Buckets(options.address_rate, time.monotonic)
        self._keys = Buckets(options.key_rate, time.monotonic)
        self._budget = BodyBudget()
        self._threads = CapacityLimiter(options.threads)

    async def visit(
        self, request: Request, work: Callable[[Visit], Response], shape: type[shapes.Shape] | None = None
    ) -> Response:
        """Answer without an API key."""
        address = self._admit(request)

        def run(body: bytes | None) -> Response:
            value = shapes.read(shape, strict_json.parse(body)) if shape and body is not None else None
            return work(Visit(self.store, request, int(self._clock()), value))

        return await self._answer(request, address, run, shape)

    async def call(
        self,
        request: Request,
        needs: Scope,
        work: Callable[[Call], Response],
        shape: type[shapes.Shape] | None = None,
        *,
        while_uploading: bool = False,
    ) -> Response:
        """Answer whoever has a key of that scope.

        shape: what the body is read as, for routes that take one. while_uploading: whether the route is open
        before a moved account is complete.
        """
        address = self._admit(request)
        presented = _presented(request.headers)
        if presented is None:
            self._addresses.take(address, _COST_OF_A_WRONG_KEY)
            raise unauthenticated()

        def run(body: bytes | None) -> Response:
            now = int(self._clock())
            bearer = self._authenticate(presented, now)
            if wait := self._keys.take(bearer.key.key_id):
                raise limited(wait)
            if not Scope(bearer.key.scope).includes(needs):
                raise Problem(403, "scope_denied", f"This API key's scope is not {needs.value}.")
            if bearer.uploading and not while_uploading:
                raise Problem(409, "uploading", "The account is still being moved here; finish or delete it.")
            value = shapes.read(shape, strict_json.parse(body)) if shape and body is not None else None
            return work(Call(self.store, request, now, value, bearer.account_id, _append_key(request.headers)))

        return await self._answer(request, address, run, shape)

    async def _answer(
        self,
        request: Request,
        address: str,
        run: Callable[[bytes | None], Response],
        shape: type[shapes.Shape] | None,
    ) -> Response:
        held: list[int] = []
        try:
            body = None
            if shape is not None:
                check_headers(request)
                body = await read_body(request, self._budget, held)
            # Not in the event loop: the store waits for the disk, and large bodies take a while to parse.
            return await to_thread.run_sync(partial(_translated, run, body), limiter=self._threads)
        except Problem as problem:
            if problem.code in ("unauthenticated", "invite_refused"):
                self._addresses.take(address, _COST_OF_A_WRONG_KEY)
            raise
        finally:
            self._budget.give_back(sum(held))

    def _admit(self, request: Request) -> str:
        address = bucket_of(self._address(request))
        if wait := self._addresses.take(address):
            raise limited(wait)
        return address

    def _address(self, request: Request) -> str:
        if self._behind_proxy and (forwarded := request.headers.getlist("x-forwarded-for")):
            # The last one is what the nearest proxy saw; those before it are what it was told.
            return forwarded[-1].rpartition(",")[2].strip()
        return request.client.host if request.client else ""

    def _authenticate(self, presented: Presented, now: int) -> Bearer:
        bearer = self.store.find_key(presented.key_id)
        known = fits(presented, bearer.digest if bearer else None)
        if bearer is None or not known or (bearer.key.expires is not None and bearer.key.expires <= now):
            raise unauthenticated()
        today = now // SECONDS_OF_DAY
        if bearer.key.last_used_day is None or bearer.key.last_used_day < today:
            with suppress(Failed):  # a read should not fail because a note about it cannot be made: on a full disk, say
                self.store.use_key(presented.key_id, today)
        return bearer


def _translated(run: Callable[[bytes | None], Response], body: bytes | None) -> Response:
    try:
        return run(body)
    except StoreError as error:
        raise of_store(error) from error


def _presented(headers: Headers) -> Presented | None:
    values = headers.getlist("authorization")
    if len(values) != 1:
        return None
    scheme, _, key = values[0].partition(" ")
    return read_key(key.strip(" ")) if scheme.lower() == "bearer" else None


def _append_key(headers: Headers) -> bytes:
    """Nothing for one that is absent or cannot be read: the store denies it in its turn, after the shape."""
    values = headers.getlist("squirrel-append")
    try:
        return from_base64(values[0]) if len(values) == 1 else b""
    except ValueError:
        return b""
