"""A self-signed certificate is kept because its fingerprint was compared, and for no other reason."""

from __future__ import annotations

import socket
import sys
import threading
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.errors import ConfigurationError, NotTrusted, StoreRefused, StoreUnavailable
from squirrel_mcp.sync import certificate
from squirrel_mcp.sync.api_key import ApiKey
from squirrel_mcp.sync.remote import RemoteStore
from squirrel_mcp.sync.transport import Transport
from tests.certificates import Issued, issue
from tests.hostile_server import HostileServer, Wire, make_key

from . import wires


def digest(issued: Issued) -> str:
    return sha256(issued.certificate.public_bytes(Encoding.DER)).hexdigest()


def test_the_certificate_that_was_named_is_fetched_kept_and_then_trusted(tmp_path: Path) -> None:
    own = issue(tmp_path, "own")
    with HostileServer(tmp_path, own.server_context()).running() as server:
        pem = certificate.fetch(server.origin, digest(own))
        assert certificate.fingerprint(pem) == digest(own) == certificate.fingerprint(own.file.read_text())
        kept = tmp_path / "kept.pem"
        kept.write_text(pem)
        store = RemoteStore(Transport(server.origin, ca_file=kept), ApiKey(make_key()))
        with pytest.raises(StoreRefused):  # it answers
            store.account()
        store.close()


def test_another_certificate_is_refused_and_nothing_is_sent(tmp_path: Path) -> None:
    own, other = issue(tmp_path, "own"), issue(tmp_path, "other")
    with HostileServer(tmp_path, own.server_context()).running() as server:
        for expected in (digest(other), "00" * 32, "", digest(own)[:-1], digest(own).upper()):
            with pytest.raises(NotTrusted):
                certificate.fetch(server.origin, expected)
        assert not server.asked


def test_the_kept_certificate_is_no_trust_in_its_successor(tmp_path: Path) -> None:
    own, other = issue(tmp_path, "own"), issue(tmp_path, "other")
    with HostileServer(tmp_path, other.server_context()).running() as server:
        store = RemoteStore(Transport(server.origin, ca_file=own.file), ApiKey(make_key()))
        with pytest.raises(NotTrusted):
            store.account()
        store.close()
        assert not server.asked


def test_a_server_without_tls_or_without_a_voice_has_no_certificate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HostileServer(tmp_path).running() as server, pytest.raises(StoreUnavailable):
        certificate.fetch(f"https://127.0.0.1:{server.port}", "00" * 32)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        monkeypatch.setattr(certificate, "CONNECT_SECONDS", 0.2)
        with pytest.raises(StoreUnavailable):
            certificate.fetch(f"https://127.0.0.1:{port}", "00" * 32)
    with pytest.raises(StoreUnavailable):
        certificate.fetch(f"https://127.0.0.1:{port}", "00" * 32)
    assert threading.active_count() < 20


def test_it_is_fetched_through_the_proxy_that_was_named_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = issue(tmp_path, "own")
    (tmp_path / "proxy").mkdir()
    with (
        HostileServer(tmp_path, own.server_context()).running() as server,
        HostileServer(tmp_path / "proxy").running() as proxy,
    ):
        proxy.wire = wires.tunnel(server.port)
        monkeypatch.setenv("HTTPS_PROXY", proxy.origin)
        certificate.fetch(server.origin, digest(own))
        assert not proxy.asked
        named = proxy.origin.replace("//", "//user:pass%20word@")
        pem = certificate.fetch(server.origin, digest(own), proxy=named)
        assert certificate.fingerprint(pem) == digest(own)
        (asked,) = proxy.asked
        assert asked.method == "CONNECT" and asked.headers["Proxy-Authorization"] == "Basic dXNlcjpwYXNzIHdvcmQ="
        assert not server.asked
        with pytest.raises(NotTrusted):
            certificate.fetch(server.origin, "00" * 32, proxy=named)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no variable adds to what the system trusts")
def test_a_proxy_over_tls_is_verified_although_the_server_behind_it_is_not_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, proxys = issue(tmp_path, "own"), issue(tmp_path, "proxys")
    (tmp_path / "proxy").mkdir()
    with (
        HostileServer(tmp_path, own.server_context()).running() as server,
        HostileServer(tmp_path / "proxy", proxys.server_context()).running() as proxy,
    ):
        proxy.wire = wires.tunnel(server.port)
        with pytest.raises(StoreUnavailable):
            certificate.fetch(server.origin, digest(own), proxy=proxy.origin)
        assert not proxy.asked
        monkeypatch.setenv("SSL_CERT_FILE", str(proxys.file))
        assert certificate.fingerprint(certificate.fetch(server.origin, digest(own), proxy=proxy.origin)) == digest(own)


@pytest.mark.parametrize(
    "reply", [wires.body(b"no", status=b"407 Login"), wires.body(b"", status=b"502 Bad"), wires.raw()]
)
def test_a_proxy_that_refuses_is_a_server_that_cannot_be_reached(tmp_path: Path, reply: Wire) -> None:
    with HostileServer(tmp_path).running() as proxy:
        proxy.wire = reply
        with pytest.raises(StoreUnavailable):
            certificate.fetch("https://127.0.0.1:9", "00" * 32, proxy=proxy.origin)


@given(st.binary(min_size=32, max_size=32), st.sampled_from(["", ":", " ", ": "]), st.booleans())
def test_a_fingerprint_is_read_as_people_write_it(raw: bytes, between: str, upper: bool) -> None:
    text = raw.hex(":").replace(":", between)
    assert certificate.normal_fingerprint(text.upper() if upper else text) == raw.hex()


@given(st.text() | st.binary(max_size=40).map(bytes.hex))
def test_any_text_is_a_fingerprint_or_a_configuration_error(text: str) -> None:
    with suppress(ConfigurationError):
        assert len(certificate.normal_fingerprint(text)) == 64


@pytest.mark.parametrize(
    "pem", ["", "x", "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE----- -----BEGIN CERTIFICATE-----"]
)
def test_a_file_without_a_certificate_has_no_fingerprint(pem: str) -> None:
    with pytest.raises(ConfigurationError):
        certificate.fingerprint(pem)
