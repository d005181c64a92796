"""Strict HTTPS: one origin, no redirects, nothing of the environment, bounded bytes and a bounded time.

A server may be slow, endless, compressed or simply another one. httpx's timeouts bound single reads, so that one
byte every half second never ends; here each read gets what is left of the request's own deadline.
"""

from __future__ import annotations

import random
import re
import ssl
from collections.abc import Iterable, Iterator, Mapping
from email.utils import parsedate_to_datetime
from ipaddress import ip_address
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import httpcore
import httpx
import truststore

from squirrel_mcp.errors import BadReply, ConfigurationError, NotTrusted, StoreUnavailable, TooManyRequests

CONNECT_SECONDS = 3.0
DEADLINE_SECONDS = 30.0  # for one request, from connecting to the last byte
MAX_REPLY_BYTES = 4 * 1024 * 1024  # a page of 2 MiB in base64, with room
MAX_WAIT_SECONDS = 20.0  # the longest Retry-After that is waited for
_ATTEMPTS = 3
_BACK_OFF = (1.0, 60.0)  # seconds without another try after a failed connection: first, at most
_RETRIED = frozenset((429, 502, 503, 504))
_WRITE_BYTES = 16 * 1024  # a server that reads slowly gets them one by one, each until the deadline and not longer
_HOST = re.compile(r"[^\s%\\]+")


class Reply(NamedTuple):
    """A complete answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def check_origin(url: str) -> str:
    """`https://host[:port]`, or http to loopback; ConfigurationError, which does not quote it, otherwise."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
        httpx.URL(scheme="https", host=host or "")  # a name that IDNA refuses
    except (ValueError, httpx.InvalidURL):
        host = None
    if (
        host is None
        or not _HOST.fullmatch(host)
        or parts.username
        or parts.password
        or parts.query
        or parts.fragment
        or parts.path.strip("/")
    ):
        raise ConfigurationError("The server address must look like https://memory.example.org, without a path.")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise ConfigurationError("The server address must begin with https:// (http:// only for this machine).")
    name = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{name}" + (f":{port}" if port else "")


def is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Transport:
    """Requests to one origin. One at a time: its owner holds a lock."""

    def __init__(self, origin: str, *, ca_file: Path | None = None, proxy: str | None = None) -> None:
        self._origin = check_origin(origin)
        # The key would pass a proxy in the clear on its way to http on this machine.
        self._proxy = proxy if self._origin.startswith("https://") else None
        self._clock = DeadlineBackend()
        self._client = httpx.Client(
            base_url=self._origin,
            transport=_PoolTransport(_tls(ca_file), self._clock, self._proxy),
            follow_redirects=False,
            trust_env=False,
            headers={"Accept-Encoding": "identity", "User-Agent": "squirrel-mcp"},
            timeout=httpx.Timeout(DEADLINE_SECONDS, connect=CONNECT_SECONDS),
        )
        self._not_before = 0.0
        self._trouble: StoreUnavailable | None = None
        self._pause = _BACK_OFF[0]

    @property
    def origin(self) -> str:
        return self._origin

    def request(
        self,
        method: str,
        path: str,
        *,
        headers: Mapping[str, str],
        body: bytes | None = None,
        params: Mapping[str, str] | None = None,
    ) -> Reply:
        """The answer, whatever its status. StoreUnavailable, NotTrusted, BadReply or TooManyRequests.

        Tried again after a failure: the protocol makes every request safe to repeat.
        """
        if self._trouble is not None and monotonic() < self._not_before:
            raise type(self._trouble)(str(self._trouble))
        for attempt in range(1, _ATTEMPTS + 1):
            last = attempt == _ATTEMPTS
            # Raised out here: httpx's exceptions hold the request with its headers, and would travel on as a context.
            found = self._try(method, path, headers, body, params)
            if isinstance(found, StoreUnavailable):
                raise found
            if isinstance(found, Reply):
                self._pause, self._trouble = _BACK_OFF[0], None
                if found.status not in _RETRIED:
                    return found
                wait = _retry_after(found.headers.get("retry-after")) or _jitter(0.5 * attempt)
                if wait > MAX_WAIT_SECONDS or last:
                    raise _busy(found.status, wait)
            else:
                if last:
                    raise StoreUnavailable(_BROKEN)
                wait = _jitter(0.2 * attempt)
            sleep(wait)
        raise AssertionError("the last attempt returns or raises")

    def close(self) -> None:
        self._client.close()

    def _try(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
        params: Mapping[str, str] | None,
    ) -> Reply | StoreUnavailable | None:
        """The answer, an error that is not tried again, or None for a connection that broke."""
        try:
            return self._once(method, path, headers, body, params)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.ProxyError) as error:
            return self._unreachable(error)
        except httpx.TimeoutException:
            return StoreUnavailable(_BROKEN)
        except httpx.TransportError:
            return None

    def _once(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
        params: Mapping[str, str] | None,
    ) -> Reply:
        self._clock.start(DEADLINE_SECONDS)
        all_headers = dict(headers) if body is None else {**headers, "Content-Type": "application/json"}
        with self._client.stream(method, path, headers=all_headers, content=body, params=params) as response:
            if 300 <= response.status_code < 400:
                raise BadReply("The server answered with a redirect, which is not followed: check its address.")
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise BadReply("The server compressed its answer, which this client does not accept.")
            chunks, size = [], 0
            for chunk in response.iter_raw():
                size += len(chunk)
                if size > MAX_REPLY_BYTES:
                    raise BadReply("The server's answer is longer than any the protocol has.")
                chunks.append(chunk)
            return Reply(response.status_code, response.headers, b"".join(chunks))

    def _unreachable(self, error: Exception) -> StoreUnavailable:
        self._not_before = monotonic() + _jitter(self._pause)
        self._pause = min(2 * self._pause, _BACK_OFF[1])
        refused = _refused_certificate(error)
        if refused is not None:
            self._trouble = NotTrusted(f"The server's certificate is not trusted: {self._why(refused.verify_code)}")
        else:
            self._trouble = StoreUnavailable("The server cannot be reached.")
        return type(self._trouble)(str(self._trouble))

    def _why(self, code: int) -> str:
        from squirrel_mcp.sync import certificate

        # Behind a proxy over TLS it is not known which of the two certificates was refused.
        reason = None if (self._proxy or "").startswith("https://") else _REASONS.get(code)
        if reason == _OTHER_NAMES:
            names = certificate.names(self._origin, proxy=self._proxy)
            return f"{reason}: {', '.join(names) or 'none'}."
        return reason or "it is expired, self-signed or for another name."


class DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections whose every read and write ends at the deadline of the running request."""

    def __init__(self) -> None:
        self._inner = httpcore.SyncBackend()
        self._end = 0.0

    def start(self, seconds: float) -> None:
        self._end = monotonic() + seconds

    def left(self, timeout: float | None) -> float:
        left = self._end - monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout("the deadline has passed")
        return left if timeout is None else min(left, timeout)

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        stream = self._inner.connect_tcp(host, port, self.left(timeout), local_address, socket_options)
        return _DeadlineStream(stream, self)


class _DeadlineStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, clock: DeadlineBackend) -> None:
        self._inner, self._clock = inner, clock

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, self._clock.left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        for start in range(0, len(buffer), _WRITE_BYTES):
            self._inner.write(buffer[start : start + _WRITE_BYTES], self._clock.left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        stream = self._inner.start_tls(ssl_context, server_hostname, self._clock.left(timeout))
        return _DeadlineStream(stream, self._clock)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _PoolTransport(httpx.BaseTransport):
    """httpx's own transport takes no network backend, so this one stands in its place."""

    def __init__(self, tls: ssl.SSLContext, backend: DeadlineBackend, proxy: str | None) -> None:
        options: dict[str, Any] = {"ssl_context": tls, "network_backend": backend, "max_connections": 1}
        self._pool = (
            httpcore.HTTPProxy(**proxy_options(proxy), **options) if proxy else httpcore.ConnectionPool(**options)
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        with _AsHttpx():
            response = self._pool.handle_request(
                httpcore.Request(
                    method=request.method,
                    url=httpcore.URL(
                        scheme=request.url.raw_scheme,
                        host=request.url.raw_host,
                        port=request.url.port,
                        target=request.url.raw_path,
                    ),
                    headers=request.headers.raw,
                    content=request.stream,
                    extensions=request.extensions,
                )
            )
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response))

    def close(self) -> None:
        self._pool.close()


class _Body(httpx.SyncByteStream):
    def __init__(self, response: httpcore.Response) -> None:
        self._response = response

    def __iter__(self) -> Iterator[bytes]:
        with _AsHttpx():
            yield from self._response.iter_stream()

    def close(self) -> None:
        self._response.close()


class _AsHttpx:
    """Raises httpcore's exceptions under httpx's names, which are the same."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if kind is not None and kind.__module__.startswith("httpcore"):
            name = kind.__name__
            raise getattr(httpx, name, httpx.TransportError)(str(error)) from error


def proxy_options(url: str) -> dict[str, Any]:
    """What `httpcore.HTTPProxy` takes; ConfigurationError, which does not quote it, for what is no proxy's address."""
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError:
        host = None
    if host is None or not _HOST.fullmatch(host) or parts.scheme not in ("http", "https"):
        raise ConfigurationError("SQUIRREL_HTTPS_PROXY must look like http://proxy.example.org:8080.")
    name = f"[{host}]" if ":" in host else host
    login = (unquote(parts.username or ""), unquote(parts.password or ""))
    return {
        "proxy_url": f"{parts.scheme}://{name}" + (f":{port}" if port else ""),
        "proxy_auth": tuple(each.encode() for each in login) if any(login) else None,
        # Left out, httpcore would judge the proxy by a list of authorities of its own.
        "proxy_ssl_context": _tls(None) if parts.scheme == "https" else None,
    }


def _tls(ca_file: Path | None) -> ssl.SSLContext:
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=str(ca_file))
        except ssl.SSLError:
            raise ConfigurationError(f"The file {ca_file} holds no certificate that can be read.") from None
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            what = "is not there" if missing else f"cannot be read: {error.strerror}"
            raise ConfigurationError(f"The file {ca_file}, which SQUIRREL_CA_FILE names, {what}.") from None
    return context


def _refused_certificate(error: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """What the system's check said, if that is why there is no connection."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error
        error = error.__cause__ or error.__context__
    return None


_OTHER_NAMES = "it is for other names"
_UNKNOWN = (
    "it is self-signed, or from an authority that this machine does not know; --certificate of `init` and `move`, or "
    "SQUIRREL_CA_FILE, names one to believe."
)
_NOT_NOW = "it has expired or is not valid yet, or this machine's clock is wrong."
# OpenSSL's X509_V_ERR_*: https://docs.openssl.org/3.0/man3/X509_STORE_CTX_get_error/
_REASONS = {
    9: _NOT_NOW, 10: _NOT_NOW, 18: _UNKNOWN, 19: _UNKNOWN, 20: _UNKNOWN, 21: _UNKNOWN, 62: _OTHER_NAMES,
    64: _OTHER_NAMES,
}  # fmt: skip


def _retry_after(value: str | None) -> float | None:
    """Seconds, from a number of them or a date; None where the header says nothing that can be read."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return float(value)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time())
    except ValueError:
        return None


_BROKEN = "The server did not answer in time, or the connection broke."


def _busy(status: int, wait: float) -> StoreUnavailable:
    if status == 429:
        return TooManyRequests(f"The server asks for a pause of {wait:.0f} seconds; try again then.")
    return StoreUnavailable("The server is busy or its database is away; try again in a moment.")


def _jitter(seconds: float) -> float:
    return seconds * random.uniform(0.5, 1.5)
