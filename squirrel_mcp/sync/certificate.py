"""A server's own certificate, believed because a person compared its fingerprint."""

from __future__ import annotations

import re
import socket
import ssl
from hashlib import sha256
from urllib.parse import urlsplit

from squirrel_mcp.errors import ConfigurationError, NotTrusted, StoreUnavailable
from squirrel_mcp.sync.transport import CONNECT_SECONDS, check_origin

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


def fetch(origin: str, expected: str) -> str:
    """The server's certificate as PEM. NotTrusted unless its fingerprint is `expected`; nothing else is sent to it."""
    parts = urlsplit(check_origin(origin))
    # Unverified on purpose: this connection is only asked for the certificate, which is then compared.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((parts.hostname or "", parts.port or 443), CONNECT_SECONDS) as plain,
            context.wrap_socket(plain, server_hostname=parts.hostname) as tls,
        ):
            der = tls.getpeercert(binary_form=True) or b""
    except OSError:
        der = None
    if der is None:
        raise StoreUnavailable("The server cannot be reached.")
    if sha256(der).hexdigest() != expected:
        raise NotTrusted("The server's certificate is not the one that the fingerprint names.")
    return ssl.DER_cert_to_PEM_cert(der)


def _first(pem: str) -> str:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    start = pem.find(begin)
    stop = pem.find(end, start)
    if start < 0 or stop < 0:
        raise ValueError
    return pem[start : stop + len(end)] + "\n"
