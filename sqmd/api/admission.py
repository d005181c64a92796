"""Around every request: who gets in, the headers of every reply, the counting, and an answer if all else failed.

In this order: Host (400), another site's page (403), the key (401), how many are under way (503). Only then is the path
looked at.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Iterable
from time import perf_counter

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sqmd.api.hosts import Hosts
from sqmd.api.metrics import Metrics
from sqmd.api.problems import Problem, internal, unauthenticated
from sqmd.stderr import kind_and_place

_log = logging.getLogger("sqmd.api")

# Replies that are no page are never one: a text that was indexed is not to run as a script of this server's.
_DATA_POLICY = b"default-src 'none'; frame-ancestors 'none'; sandbox"
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_HEADERS = {
    b"cache-control": b"no-store",
    b"content-security-policy": _DATA_POLICY,
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"referrer-policy": b"no-referrer",
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
}
_OWN_SITE = (b"same-origin", b"none")  # none: typed, or from a bookmark
MOST_REQUESTS = 200  # under way at once


class Admission:
    """An ASGI middleware, outside of all others. api_key: empty, or what everything below /api/ asks for."""

    def __init__(self, app: ASGIApp, *, hosts: Hosts, api_key: str, metrics: Metrics) -> None:
        self._app, self._hosts, self._metrics = app, hosts, metrics
        self._key = api_key.encode("utf-8", "surrogateescape")
        self._under_way = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = perf_counter()
        status = 0
        self._under_way += 1

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                own = list(message.get("headers", ()))
                named = {name.lower() for name, _ in own}
                message = {**message, "headers": own + [each for each in _HEADERS.items() if each[0] not in named]}
            await send(message)

        try:
            self._admit(scope)
            await self._app(scope, receive, sending)
        except Problem as problem:
            await problem.response()(scope, receive, sending)
        except ClientDisconnect:
            pass  # nobody is there to be answered; status 0 says so
        except Exception as error:  # noqa: BLE001 - the outermost border: told by its place, its text may hold a document's
            _log.error("a bug: %s", kind_and_place(error))
            if not status:
                await internal().response()(scope, receive, sending)
        finally:
            self._under_way -= 1
        route = getattr(scope.get("route"), "path", "none")
        self._metrics.count(scope["method"], route, status, perf_counter() - begun)

    def _admit(self, scope: Scope) -> None:
        self._let_in(scope)
        if self._under_way > MOST_REQUESTS:
            raise Problem(503, "overloaded", "Too many requests are under way; try again in a moment.")

    def _let_in(self, scope: Scope) -> None:
        headers = scope["headers"]
        hosts = _values(headers, b"host")
        if len(hosts) != 1 or not self._hosts.allows(hosts[0].decode("latin-1")):
            raise Problem(400, "wrong_host", "This server does not answer to that Host.")
        if scope["path"] != "/api" and not scope["path"].startswith("/api/"):
            return
        own = (b"http://" + hosts[0].lower(), b"https://" + hosts[0].lower())
        sites, origins = _values(headers, b"sec-fetch-site"), _values(headers, b"origin")
        # Browsers tell the site at https and on this machine, and no script can: then it decides, as behind a proxy the
        # origin has another name than the host. Elsewhere they tell the origin of what is sent.
        foreign = [site for site in sites if site not in _OWN_SITE] or (
            not sites and [origin for origin in origins if origin.lower() not in own]
        )
        if foreign:
            raise Problem(403, "cross_site", "Other sites' pages are not answered.")
        if self._key and not self._is_key(_values(headers, b"authorization")):
            raise unauthenticated()

    def _is_key(self, values: list[bytes]) -> bool:
        scheme, _, presented = (values[0] if len(values) == 1 else b"").partition(b" ")
        # compare_digest takes the same time wherever they differ; the length of the key is no secret.
        return hmac.compare_digest(presented.strip(b" "), self._key) and scheme.lower() == b"bearer"


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[bytes]:
    return [value for each, value in headers if each.lower() == name]
