"""Certificates for servers on loopback: good ones, and each kind that must not be believed."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = timedelta(days=1)


class Issued(NamedTuple):
    """A certificate and its key, also as files."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey
    file: Path
    key_file: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.file, self.key_file)
        return context


def issue(
    folder: Path,
    name: str,
    *,
    issuer: Issued | None = None,
    host: str = "127.0.0.1",
    authority: bool = False,
    days: tuple[int, int] = (-1, 30),
) -> Issued:
    """A certificate for `host`, valid between these days from now; without an issuer it signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + days[0] * _DAY)
        .not_valid_after(now + days[1] * _DAY)
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if not authority:
        builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(host)]), critical=False)
    signer = issuer.key if issuer else key
    certificate = builder.sign(signer, hashes.SHA256())
    file, key_file = folder / f"{name}.pem", folder / f"{name}-key.pem"
    file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return Issued(certificate, key, file, key_file)


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
