"""A certificate of the server's own, for those who have no name that a public authority would certify.

`cryptography` is used for this and nothing else here, and loaded only when it is asked for.
"""

from __future__ import annotations

import hashlib
import ipaddress
import os
import secrets
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.x509 import GeneralName

EVERYWHERE = ("", "0.0.0.0", "::")
FILE = "tls.pem"  # key and certificate in one file, so that they are made in one step
_YEARS = timedelta(days=3_650)  # it is known by its fingerprint: a new one means that every device joins again


def fingerprint(path: Path) -> str:
    """SHA-256 of the certificate in a PEM file, as 64 hex digits. ValueError if there is none."""
    text = path.read_text("ascii")
    begin = text.find("-----BEGIN CERTIFICATE-----")
    end = text.find("-----END CERTIFICATE-----", begin)
    if begin < 0 or end < 0:
        raise ValueError(f"There is no certificate in {path}.")
    return hashlib.sha256(ssl.PEM_cert_to_DER_cert(text[begin:end] + "-----END CERTIFICATE-----\n")).hexdigest()


def own_names(host: str) -> list[str]:
    """The names and addresses a certificate should hold for a server that listens at `host`."""
    names = ["localhost", "127.0.0.1", "::1", socket.gethostname(), socket.getfqdn()]
    names += own_addresses() if host in EVERYWHERE else [host]
    return [name for name in dict.fromkeys(names) if is_name(name)]


def own_addresses() -> list[str]:
    """The addresses at which others may reach this machine, as far as the standard library tells."""
    found = []
    for family, outside in ((socket.AF_INET, "192.0.2.1"), (socket.AF_INET6, "2001:db8::1")):
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as asking:
            # Sends nothing: connecting a datagram socket only chooses the address to send from.
            asking.connect((outside, 9))
            found.append(asking.getsockname()[0])
    with suppress(OSError):
        found += [str(each[4][0]) for each in socket.getaddrinfo(socket.gethostname(), None)]
    return [address for address in dict.fromkeys(found) if _is_for_others(address)]


def _is_for_others(address: str) -> bool:
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return not (parsed.is_loopback or parsed.is_link_local or parsed.is_unspecified)


def reachable(path: Path) -> list[str]:
    """The names and addresses in a certificate, without those that only this machine itself can use."""
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    try:
        held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    names = [name for name in held.get_values_for_type(x509.DNSName) if name != "localhost" and "*" not in name]
    return [*filter(_is_for_others, map(str, held.get_values_for_type(x509.IPAddress))), *names]


def check_files(certificate: Path, key: Path | None = None) -> None:
    """ValueError, a sentence, unless the two (or the one that holds both) are what a server can be run with."""
    place = str(certificate) if key is None else f"{certificate} and {key}"
    for path in filter(None, (certificate, key)):
        try:
            path.read_bytes()
        except OSError as error:
            raise ValueError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        # An encrypted key would be asked for at the terminal otherwise, once in each process.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: "")
        fingerprint(certificate)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise ValueError(f"The key does not belong to the certificate: {place}.") from None
        raise ValueError(f"{place}: no certificate and unencrypted key in PEM are there.") from None
    except ValueError:
        raise ValueError(f"{place}: no certificate and unencrypted key in PEM are there.") from None


def is_name(name: str) -> bool:
    """Whether it can stand in a certificate: an address, or a host's name in ASCII (xn--... for other letters)."""
    return bool(name) and name.isascii() and name.isprintable() and " " not in name


def self_signed(path: Path, names: Iterable[str]) -> None:
    """Make a key and a certificate for these names at `path`, for its owner alone (0600), unless it is there."""
    if path.exists():
        return
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Squirrel server")])
    now = datetime.now(UTC)
    identifier = x509.SubjectKeyIdentifier.from_public_key(public)
    usage = {field: field == "digital_signature" for field in _USAGES}
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))  # the clocks of clients
        .not_valid_after(now + _YEARS)
        .add_extension(x509.SubjectAlternativeName([_alternative(each) for each in names]), critical=False)
        # It signs nothing but itself: whoever gets the key cannot make certificates that its clients believe.
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.KeyUsage(**usage), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ) + certificate.public_bytes(serialization.Encoding.PEM)
    _write(path, pem)


def names_missing(path: Path, names: Iterable[str]) -> list[str]:
    """Those of the names that the certificate at `path` was not made for."""
    from cryptography import x509

    certificate = x509.load_pem_x509_certificate(path.read_bytes())
    held = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [name for name in names if _alternative(name) not in held]


_USAGES = (
    "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
    "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
)  # fmt: skip


def _alternative(name: str) -> GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _write(path: Path, content: bytes) -> None:
    """The whole file or none, and never one that others could read."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if os.name == "posix":
                os.fchmod(descriptor, 0o600)  # whatever the umask took away
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        with suppress(FileExistsError):
            os.link(draft, path)  # unlike a rename, it does not replace what another process made meanwhile
    finally:
        draft.unlink()
