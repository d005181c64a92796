"""A server's own certificate, believed because a person compared its fingerprint."""

from __future__ import annotations

import re
import ssl
from hashlib import sha256
from typing import Any

import httpcore

from squirrel_mcp.errors import ConfigurationError, NotTrusted, StoreUnavailable
from squirrel_mcp.sync.transport import CONNECT_SECONDS, DeadlineBackend, check_origin, proxy_options

_MOST_NAMES = 20
_NAME = re.compile(r"[0-9A-Za-z.:*_-]{1,253}", re.ASCII)  # whatever else a server puts there is not shown
_FINGERPRINT = re.compile(r"[0-9a-f]{64}", re.ASCII)


def fingerprint(pem: str) -> str:
    """SHA-256 of the first certificate in a PEM text, 64 lower-case hex digits; ConfigurationError if there is none."""
    try:
        return sha256(ssl.PEM_cert_to_DER_cert(_first(pem))).hexdigest()
    except ValueError:
        pass
    raise ConfigurationError("The certificate file holds no certificate.")


def normal_fingerprint(text: str) -> str:
    """The same, as people type it: colons, spaces and upper case do not matter."""
    plain = re.sub(r"[\s:]", "", text).lower()
    if not _FINGERPRINT.fullmatch(plain):
        raise ConfigurationError("A certificate's fingerprint has 64 hex digits (SHA-256).")
    return plain


def fetch(origin: str, expected: str, *, proxy: str | None = None) -> str:
    """The server's certificate as PEM. NotTrusted unless its fingerprint is `expected`; nothing else is sent to it."""
    checked = check_origin(origin)
    der = _der(checked, proxy if checked.startswith("https://") else None)
    if der is None:
        raise StoreUnavailable("The server cannot be reached.")
    if sha256(der).hexdigest() != expected:
        raise NotTrusted("The server's certificate is not the one that the fingerprint names.")
    return ssl.DER_cert_to_PEM_cert(der)


def names(origin: str, *, proxy: str | None = None) -> list[str]:
    """The names and addresses in the certificate that is shown at `origin`: to be told, not to be believed."""
    from cryptography import x509

    try:
        shown = x509.load_der_x509_certificate(_der(origin, proxy) or b"")
        held = shown.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return []
    found = [*held.get_values_for_type(x509.DNSName), *map(str, held.get_values_for_type(x509.IPAddress))]
    return [name for name in found if _NAME.fullmatch(name)][:_MOST_NAMES]


def _der(origin: str, proxy: str | None) -> bytes | None:
    """The certificate that is shown at `origin`; None if there is no way to one."""
    # Unverified on purpose: this connection is only asked for the certificate, which is then compared.
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    backend = _Looking(unverified)
    options: dict[str, Any] = {"ssl_context": unverified, "network_backend": backend}
    timeout = dict.fromkeys(("connect", "read", "write", "pool"), CONNECT_SECONDS)
    backend.start(4 * CONNECT_SECONDS)  # to the proxy, its answer, to the server, its handshake
    with httpcore.HTTPProxy(**proxy_options(proxy), **options) if proxy else httpcore.ConnectionPool(**options) as pool:
        try:
            pool.request("GET", origin, extensions={"timeout": timeout})
        except _Seen as seen:
            return seen.der
        except (*_UNREACHABLE, OSError):
            pass
    return None


_UNREACHABLE = (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError, httpcore.ProxyError)


class _Seen(Exception):
    """Ends a request before a byte of it is sent; `der` is the certificate, empty if none was shown."""

    def __init__(self, der: bytes) -> None:
        super().__init__()
        self.der = der


class _Looking(DeadlineBackend):
    """Connections that come to an end once the handshake in `context` is done; a proxy's own handshake is another."""

    def __init__(self, context: ssl.SSLContext) -> None:
        super().__init__()
        self._context = context

    def connect_tcp(self, *arguments: Any, **options: Any) -> httpcore.NetworkStream:
        return _LookingStream(super().connect_tcp(*arguments, **options), self._context)


class _LookingStream(httpcore.NetworkStream):
    def __init__(self, inner: httpcore.NetworkStream, context: ssl.SSLContext) -> None:
        self._inner, self._context = inner, context

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, timeout)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, timeout)

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        secured = self._inner.start_tls(ssl_context, server_hostname, timeout)
        if ssl_context is not self._context:
            return _LookingStream(secured, self._context)
        der = secured.get_extra_info("ssl_object").getpeercert(True)
        secured.close()
        raise _Seen(der or b"")

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


def _first(pem: str) -> str:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    start = pem.find(begin)
    stop = pem.find(end, start)
    if start < 0 or stop < 0:
        raise ValueError
    return pem[start : stop + len(end)] + "\n"
