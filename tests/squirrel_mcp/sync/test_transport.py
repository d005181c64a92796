"""The connection: one origin, nothing of the environment, bounded bytes and time, no key where none belongs."""

from __future__ import annotations

import re
import socket
import ssl
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest

from squirrel_mcp.errors import (
    BadReply,
    ConfigurationError,
    NotFound,
    NotTrusted,
    SquirrelError,
    StoreFull,
    StoreRefused,
    StoreUnavailable,
    TooManyRequests,
)
from squirrel_mcp.sync import transport as transport_module
from squirrel_mcp.sync.api_key import ApiKey
from squirrel_mcp.sync.remote import RemoteStore
from squirrel_mcp.sync.transport import Transport, check_origin
from tests.certificates import Issued, issue
from tests.hostile_server import Answer, Asked, HostileServer, Wire, make_key

from . import wires
from .network_attacks import BODIES, NETWORK_ATTACKS, NetworkAttack

Reach = Callable[..., RemoteStore]


@pytest.fixture(scope="module")
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileServer]:
    with HostileServer(tmp_path_factory.mktemp("server")).running() as server:
        yield server


@pytest.fixture
def server(_server: HostileServer) -> HostileServer:
    _server.honest()
    return _server


@pytest.fixture
def key() -> ApiKey:
    return ApiKey(make_key())


@pytest.fixture
def reach(key: ApiKey) -> Iterator[Reach]:
    """A client of an origin; each has a connection of its own."""
    with ExitStack() as stack:

        def make(origin: str, **options: object) -> RemoteStore:
            store = RemoteStore(Transport(origin, **options), key)  # type: ignore[arg-type]
            stack.callback(store.close)
            return store

        yield make


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waiting is noted instead of done."""
    taken: list[float] = []
    monkeypatch.setattr(transport_module, "sleep", taken.append)
    return taken


@pytest.fixture
def short_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "DEADLINE_SECONDS", 0.3)


# Where the key goes.


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_redirect_is_refused_and_the_other_place_never_hears_of_it(
    server: HostileServer, reach: Reach, tmp_path: Path, status: int, host: str
) -> None:
    with HostileServer(tmp_path).running() as other:
        server.wire = wires.redirect(f"http://{host}:{other.port}/v1/account", status)
        with pytest.raises(BadReply, match="redirect"):
            reach(server.origin).account()
        assert other.connections == 0 and len(server.asked) == 1


def test_nothing_of_the_environment_is_used(
    server: HostileServer, reach: Reach, key: ApiKey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HostileServer(tmp_path).running() as other:
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
            monkeypatch.setenv(name, other.origin)
        netrc = tmp_path / "netrc"
        netrc.write_text("default login somebody password elses\n")
        monkeypatch.setenv("NETRC", str(netrc))
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keylog"))
        (tmp_path / ".netrc").write_text(netrc.read_text())
        with pytest.raises(StoreRefused):
            reach(server.origin).account()
        assert other.connections == 0
        assert server.asked[0].headers["Authorization"] == f"Bearer {key.secret()}"
        assert not (tmp_path / "keylog").exists()


def test_a_certificate_file_that_other_programs_are_told_of_is_no_trust(
    reach: Reach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # SSL_CERT_FILE is not among them: where OpenSSL is the system's, that is how its trust store is named.
    own = issue(tmp_path, "own")
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO"):
        monkeypatch.setenv(name, str(own.file))
    with HostileServer(tmp_path, own.server_context()).running() as server:
        with pytest.raises(NotTrusted):
            reach(server.origin).account()
        assert not server.asked


def test_the_proxy_that_was_named_is_used_by_connect_and_sees_no_key(reach: Reach, key: ApiKey, tmp_path: Path) -> None:
    own = issue(tmp_path, "own")
    (tmp_path / "proxy").mkdir()
    with (
        HostileServer(tmp_path, own.server_context()).running() as server,
        HostileServer(tmp_path / "proxy").running() as proxy,
    ):
        proxy.wire = wires.tunnel(server.port)
        address = proxy.origin.replace("//", "//user:pass%20word@")
        with pytest.raises(StoreRefused):
            reach(server.origin, ca_file=own.file, proxy=address).account()
        (asked,) = proxy.asked
        assert asked.method == "CONNECT" and "Authorization" not in asked.headers
        assert asked.headers["Proxy-Authorization"] == "Basic dXNlcjpwYXNzIHdvcmQ="
        assert server.asked[0].headers["Authorization"] == f"Bearer {key.secret()}"


def test_a_proxy_is_not_asked_for_this_machine_over_http(server: HostileServer, reach: Reach, tmp_path: Path) -> None:
    with HostileServer(tmp_path).running() as proxy:
        with pytest.raises(StoreRefused):
            reach(server.origin, proxy=proxy.origin).account()
        assert proxy.connections == 0


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no variable adds to what the system trusts")
def test_a_proxy_over_tls_is_judged_as_the_server_is(
    reach: Reach, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, proxys = issue(tmp_path, "own"), issue(tmp_path, "proxys")
    (tmp_path / "proxy").mkdir()
    with (
        HostileServer(tmp_path, own.server_context()).running() as server,
        HostileServer(tmp_path / "proxy", proxys.server_context()).running() as proxy,
    ):
        proxy.wire = wires.tunnel(server.port)
        with pytest.raises(NotTrusted):
            reach(server.origin, ca_file=own.file, proxy=proxy.origin).account()
        assert not proxy.asked and not server.asked
        monkeypatch.setenv("SSL_CERT_FILE", str(proxys.file))
        with pytest.raises(StoreRefused):
            reach(server.origin, ca_file=own.file, proxy=proxy.origin).account()


@pytest.mark.parametrize(
    "reply", [wires.body(b"no", status=b"407 Login"), wires.body(b"", status=b"502 Bad"), wires.raw()]
)
def test_a_proxy_that_refuses_is_a_server_that_cannot_be_reached(reach: Reach, tmp_path: Path, reply: Wire) -> None:
    with HostileServer(tmp_path).running() as proxy:
        proxy.wire = reply
        with pytest.raises(StoreUnavailable):
            reach("https://127.0.0.1:9", proxy=proxy.origin).account()


@pytest.mark.parametrize(
    "proxy", ["proxy:8080", "ftp://proxy", "socks5://proxy", "http:///x", "words", "http://[::1", "http://u:p@:1"]
)
def test_a_proxy_address_that_is_none_is_refused_without_being_quoted(proxy: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Transport("https://127.0.0.1:9", proxy=proxy)
    assert proxy not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "", "memory.example.org", "http://memory.example.org", "http://10.0.0.1", "ftp://127.0.0.1", "https://",
        "https://user:secret@host", "https://host/path", "https://host?a=secret", "https://host#secret",
        "https://[::1", "https://host:port", "https://host:99999", "https://a b", "https://a\\b", "https://host%00",
        "https://\u2028x", "file:///etc/passwd", "http://127.0.0.1.evil.example", "http://localhost.evil.example",
    ],
)  # fmt: skip
def test_an_address_that_is_not_https_or_this_machine_is_refused_without_being_quoted(address: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_origin(address)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("https://Memory.Example.org/", "https://memory.example.org"),
        (" https://host:8443 ", "https://host:8443"),
        ("http://[::1]:80", "http://[::1]:80"),
        ("http://localhost:1", "http://localhost:1"),
        ("http://127.1.2.3", "http://127.1.2.3"),
    ],
)
def test_one_origin_has_one_spelling(address: str, origin: str) -> None:
    assert check_origin(address) == origin


# Certificates.


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Issued:
    return issue(tmp_path_factory.mktemp("authority"), "authority", authority=True)


@pytest.mark.parametrize(
    ("kind", "options", "said", "looks"),
    [
        ("expired", {"days": (-30, -1)}, "it has expired", 1),
        ("not_yet_valid", {"days": (1, 30)}, "not valid yet", 1),
        # Looked at once more, for the names to tell; nothing is sent.
        ("wrong_name", {"host": "memory.example.org"}, "it is for other names: memory.example.org.", 2),
        ("wrong_address", {"host": "127.0.0.2"}, "it is for other names: 127.0.0.2.", 2),
        ("no_text", {"host": "a\x1b[2J.example"}, "it is for other names: none.", 2),
    ],
)
def test_a_bad_certificate_is_refused_and_nothing_is_sent(
    reach: Reach, tmp_path: Path, authority: Issued, kind: str, options: dict[str, object], said: str, looks: int
) -> None:
    leaf = issue(tmp_path, kind, issuer=authority, **options)  # type: ignore[arg-type]
    with HostileServer(tmp_path, leaf.server_context()).running() as server:
        store = reach(server.origin, ca_file=authority.file)
        for _ in range(2):  # the back-off still says why
            with pytest.raises(NotTrusted, match=re.escape(said)):
                store.account()
        assert not server.asked and server.connections == looks


def test_an_unknown_authority_and_a_self_signed_certificate_are_refused(
    reach: Reach, tmp_path: Path, authority: Issued
) -> None:
    for leaf in (issue(tmp_path, "leaf", issuer=authority), issue(tmp_path, "own")):
        folder = tmp_path / leaf.file.stem
        folder.mkdir()
        with HostileServer(folder, leaf.server_context()).running() as server:
            with pytest.raises(NotTrusted, match="self-signed, or from an authority"):
                reach(server.origin).account()
            assert not server.asked


def test_an_extra_file_is_trusted_besides_the_systems(reach: Reach, tmp_path: Path, authority: Issued) -> None:
    for leaf, file in (
        (issue(tmp_path, "leaf", issuer=authority), authority.file),
        (own := issue(tmp_path, "own"), own.file),
    ):
        folder = tmp_path / leaf.file.stem
        folder.mkdir()
        with HostileServer(folder, leaf.server_context()).running() as server:
            with pytest.raises(StoreRefused):
                reach(server.origin, ca_file=file).account()
            assert len(server.asked) == 1


@pytest.mark.parametrize(
    "content", [b"", b"no certificate", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_an_extra_file_without_a_certificate_is_a_configuration_error(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "ca.pem"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError):
        Transport("https://127.0.0.1:9", ca_file=path)


def test_an_extra_file_that_is_missing_or_a_folder_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"missing\.pem, which SQUIRREL_CA_FILE names, is not there"):
        Transport("https://127.0.0.1:9", ca_file=tmp_path / "missing.pem")
    with pytest.raises(ConfigurationError, match="which SQUIRREL_CA_FILE names, cannot be read: Is a directory"):
        Transport("https://127.0.0.1:9", ca_file=tmp_path)


def test_old_versions_of_tls_are_refused(reach: Reach, tmp_path: Path) -> None:
    own = issue(tmp_path, "own")
    context = own.server_context()
    with pytest.warns(DeprecationWarning):
        context.minimum_version = ssl.TLSVersion.TLSv1
    with pytest.warns(DeprecationWarning):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with HostileServer(tmp_path, context).running() as server:
        with pytest.raises(StoreUnavailable):
            reach(server.origin, ca_file=own.file).account()
        assert not server.asked


# Bytes.


@pytest.mark.parametrize("encoding", [b"gzip", b"br", b"deflate", b"zstd", b"identity, gzip", b"GZIP", b"x"])
def test_a_compressed_reply_is_refused_before_it_is_unpacked(
    server: HostileServer, reach: Reach, encoding: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zlib, "decompressobj", None)
    server.wire = wires.bomb(encoding)
    with pytest.raises(BadReply, match="compressed"):
        reach(server.origin).account()
    assert server.asked[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize("chunked", [False, True])
def test_an_endless_reply_ends_at_the_cap(server: HostileServer, reach: Reach, chunked: bool) -> None:
    server.wire = wires.endless(chunked=chunked)
    with pytest.raises(BadReply, match="longer"):
        reach(server.origin).account()
    assert len(server.asked) == 1


def test_endless_headers_end(server: HostileServer, reach: Reach, naps: list[float]) -> None:
    server.wire = wires.raw(b"HTTP/1.1 200 OK\r\n", *[b"X-Padding: " + b"x" * 8000 + b"\r\n"] * 1000)
    with pytest.raises(StoreUnavailable):
        reach(server.origin).account()


@pytest.mark.parametrize("length", [1, 10_000])
def test_a_length_that_is_a_lie_gives_no_answer(
    server: HostileServer, reach: Reach, naps: list[float], length: int
) -> None:
    server.wire = wires.raw(wires.OK + b"Content-Length: %d\r\n\r\n" % length + wires.page())
    with pytest.raises(StoreUnavailable):
        reach(server.origin).read_log(0)


@pytest.mark.parametrize("garbage", [b"\x00" * 100, b"SSH-2.0-OpenSSH\r\n", b"HTTP/1.1 OK\r\n\r\n", b""])
def test_what_is_not_http_is_an_unreachable_server(
    server: HostileServer, reach: Reach, naps: list[float], garbage: bytes
) -> None:
    server.wire = wires.raw(garbage)
    with pytest.raises(StoreUnavailable):
        reach(server.origin).account()
    assert len(server.asked) == 3  # tried again, and then told


@pytest.mark.parametrize("name", BODIES)
def test_a_reply_that_is_not_strict_json_is_a_bad_reply(server: HostileServer, reach: Reach, name: str) -> None:
    server.wire = wires.body(BODIES[name])
    with pytest.raises(BadReply) as caught:
        reach(server.origin).read_log(0)
    assert "hotel" not in str(caught.value)


def test_a_reply_cut_anywhere_is_a_bad_reply(server: HostileServer, reach: Reach) -> None:
    whole = wires.page()
    store = reach(server.origin)
    lengths = iter(range(len(whole)))
    server.answer = lambda asked, answer: Answer(200, whole[: next(lengths)])
    for _ in range(len(whole)):
        with pytest.raises(BadReply):
            store.read_log(0)
    server.answer = lambda asked, answer: Answer(200, whole)
    assert store.read_log(0).head.seq == 1


@pytest.mark.usefixtures("short_deadline", "naps")
@pytest.mark.parametrize("attack", NETWORK_ATTACKS, ids=lambda attack: attack.name)
def test_each_attack_on_the_connection_ends_with_its_named_error(
    server: HostileServer, reach: Reach, attack: NetworkAttack
) -> None:
    server.wire = attack.wire
    with pytest.raises(StoreUnavailable) as caught:
        reach(server.origin).read_log(0)
    assert caught.type is attack.expected


# Time.


@pytest.mark.usefixtures("short_deadline")
@pytest.mark.parametrize(
    "first",
    [
        b"HTTP/1.1 200 O",
        b"HTTP/1.1 200 OK\r\nX-Drip: ",
        wires.OK + b"Content-Length: 1000000\r\n\r\n",
        wires.OK + b"Transfer-Encoding: chunked\r\n\r\n1000\r\n",
    ],
)
def test_a_drip_ends_at_the_total_deadline(server: HostileServer, reach: Reach, first: bytes) -> None:
    gone = threading.Event()
    server.wire = wires.drip(first, gone)
    with pytest.raises(StoreUnavailable, match="in time"):
        reach(server.origin).account()
    gone.set()
    assert len(server.asked) == 1  # a deadline is not followed by another one


@pytest.mark.usefixtures("short_deadline")
def test_preliminary_answers_without_end_end_at_the_deadline(server: HostileServer, reach: Reach) -> None:
    gone = threading.Event()
    server.wire = wires.drip(b"", gone, piece=b"HTTP/1.1 102 Processing\r\n\r\n")
    with pytest.raises(StoreUnavailable):
        reach(server.origin).account()
    gone.set()


@pytest.mark.usefixtures("short_deadline")
def test_a_server_that_reads_slowly_does_not_hold_a_write_for_ever(reach: Reach) -> None:
    done = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)

        def read_slowly() -> None:
            connection, _ = listener.accept()
            with connection:
                while not done.wait(0.05) and connection.recv(2048):
                    pass

        thread = threading.Thread(target=read_slowly)
        thread.start()
        store = reach(f"http://127.0.0.1:{listener.getsockname()[1]}")
        try:
            with pytest.raises(StoreUnavailable):
                store.append(bytes(32), [(bytes(138), bytes(65_536))] * 60)
        finally:
            done.set()
            thread.join()


@pytest.mark.usefixtures("short_deadline")
def test_a_handshake_that_never_ends_ends(reach: Reach) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(StoreUnavailable):
        reach(f"https://127.0.0.1:{listener.getsockname()[1]}").account()


def test_a_refused_connection_costs_the_next_call_no_socket(
    reach: Reach, monkeypatch: pytest.MonkeyPatch, naps: list[float]
) -> None:
    now = [1000.0]
    monkeypatch.setattr(transport_module, "monotonic", lambda: now[0])
    tried: list[int] = []
    real = socket.create_connection

    def counting(*arguments: object, **options: object) -> socket.socket:
        tried.append(1)
        return real(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "create_connection", counting)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    store = reach(f"http://127.0.0.1:{port}")
    for _ in range(5):
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            store.account()
    assert len(tried) == 1 and not naps
    waits = []
    for _ in range(12):
        began = now[0]
        while len(tried) == 1:
            now[0] += 0.25
            with pytest.raises(StoreUnavailable):
                store.account()
        waits.append(now[0] - began)
        tried.pop()
    assert waits[0] <= 1.75 and max(waits) <= 90.25  # from a second to a minute, half of it more or less
    assert waits[-1] > waits[0]


def test_after_the_back_off_a_server_that_is_back_is_used(
    server: HostileServer, reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [1000.0]
    monkeypatch.setattr(transport_module, "monotonic", lambda: now[0])
    store = reach(server.origin)
    real = socket.create_connection

    def refused(*arguments: object, **options: object) -> socket.socket:
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", refused)
    with pytest.raises(StoreUnavailable):
        store.account()
    monkeypatch.setattr(socket, "create_connection", real)
    with pytest.raises(StoreUnavailable):
        store.account()
    now[0] += 10
    with pytest.raises(StoreRefused):  # it answers
        store.account()


# Refusals.


def _busy_once(status: int, *headers: tuple[str, str]) -> Callable[[Asked, Answer], Answer]:
    left = [Answer(status, {"code": "busy"}, headers)]
    return lambda asked, answer: left.pop() if left else Answer(200, wires.page())


def test_a_pause_in_seconds_is_kept(server: HostileServer, reach: Reach, naps: list[float]) -> None:
    server.answer = _busy_once(429, ("Retry-After", "7"))
    assert reach(server.origin).read_log(0).head.seq == 1
    assert naps == [7.0]


def test_a_pause_until_a_date_is_kept(server: HostileServer, reach: Reach, naps: list[float]) -> None:
    until = format_datetime(datetime.now(UTC) + timedelta(seconds=15), usegmt=True)
    server.answer = _busy_once(429, ("Retry-After", until))
    assert reach(server.origin).read_log(0).head.seq == 1
    assert len(naps) == 1 and 0 < naps[0] <= 15


@pytest.mark.parametrize(
    "value", ["21", "100000", "9" * 5000, format_datetime(datetime(2999, 1, 1, tzinfo=UTC), usegmt=True)]
)
def test_too_long_a_pause_is_told_and_not_slept(
    server: HostileServer, reach: Reach, naps: list[float], value: str
) -> None:
    server.answer = lambda asked, answer: Answer(429, {"code": "rate_limited"}, (("Retry-After", value),))
    with pytest.raises(TooManyRequests, match="pause"):
        reach(server.origin).read_log(0)
    assert not naps and len(server.asked) == 1


@pytest.mark.parametrize("value", ["", "soon", "-5", "1.5", "0", "Mon, 99 Foo 2026 25:61:61 GMT", "\u0663"])
def test_a_pause_that_cannot_be_read_is_a_short_one(
    server: HostileServer, reach: Reach, naps: list[float], value: str
) -> None:
    server.answer = _busy_once(429, ("Retry-After", value.encode().decode("latin-1")))
    assert reach(server.origin).read_log(0).head.seq == 1
    assert len(naps) == 1 and 0 < naps[0] < 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_server_that_stays_busy_is_told_after_three_tries(
    server: HostileServer, reach: Reach, naps: list[float], status: int
) -> None:
    server.answer = lambda asked, answer: Answer(status, b"<html>busy</html>")
    with pytest.raises(TooManyRequests if status == 429 else StoreUnavailable):
        reach(server.origin).read_log(0)
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        (200, b"<html>", BadReply),
        (202, b"{}", BadReply),
        (400, b"<html>", BadReply),
        (401, b'{"code":"unauthenticated"}', StoreRefused),
        (403, b'{"code":"scope_denied"}', StoreRefused),
        (404, b'{"code":"not_found"}', NotFound),
        (404, b"not found", BadReply),
        (412, b'{"code":"head_moved"}', BadReply),
        (413, b'{"code":"too_large"}', StoreRefused),
        (418, b'{"code":"\\u001b[31mteapot"}', StoreRefused),
        (422, b'{"code":7}', BadReply),
        (500, b'{"code":"internal"}', StoreUnavailable),
        (500, b"Traceback", BadReply),
        (507, b'{"code":"full"}', StoreFull),
    ],
)
def test_each_refusal_is_an_error_in_our_own_words(
    server: HostileServer, reach: Reach, status: int, content: bytes, error: type[SquirrelError]
) -> None:
    server.answer = lambda asked, answer: Answer(status, content)
    with pytest.raises(error) as caught:
        reach(server.origin).read_log(0)
    assert caught.type is error
    assert "teapot" not in str(caught.value) and "teapot" not in caught.value.code
    assert "Traceback" not in str(caught.value)


def test_a_connection_that_breaks_is_tried_again(server: HostileServer, reach: Reach, naps: list[float]) -> None:
    left = [wires.raw(), wires.raw(b"HTTP/1.1 200 OK\r\nContent-Le")]
    server.wire = lambda connection, asked: left.pop()(connection, asked) if left else False
    server.answer = lambda asked, answer: Answer(200, wires.page())
    assert reach(server.origin).read_log(0).head.seq == 1
    assert len(server.asked) == 3 and len(naps) == 2
