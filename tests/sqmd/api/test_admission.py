"""Who is let in, and what every reply says about itself."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from sqmd.api import admission
from sqmd.api.bodies import MAX_BODY_BYTES
from sqmd.api.hosts import Hosts
from tests.sqmd.api.running import Running, config_for, running

KEY = "kéy with a blank"
PATHS = [
    "search?q=x", "documents", "documents/x", "documents/x/raw", "index/status", "index/jobs", "index/jobs/x", "health",
    "metrics", "openapi.json", "nothing", "",
]  # fmt: skip


def bearer(key: str) -> dict[str, bytes]:
    return {"Authorization": f"Bearer {key}".encode()}


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that asks for a key, over nothing."""
    folder: Path = tmp_path_factory.mktemp("locked") / "notes"
    folder.mkdir()
    with running(config_for(folder, api_key=KEY)) as found:
        yield found


def sent(server: Running, request: bytes) -> bytes:
    """What comes back for exactly these bytes."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        connection.sendall(request)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def of_host(server: Running, host: str) -> int:
    return int(sent(server, f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()).split(b" ")[1])


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:{}", "localhost:{}", "LOCALHOST", "[::1]:80", "127.0.0.1:1"])
def test_this_machines_names_are_answered(server: Running, host: str) -> None:
    assert of_host(server, host.format(server.port)) == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{}", "localhost.evil.example", "127.0.0.1.evil.example", "evil.example:80:{}",
     "localhost@evil.example", "evil.example@localhost", "10.0.0.1", "0.0.0.0", "[::]", "localhost:x", "localhost, x",
     "", "127.0.0.1/", "[::1", "localhost.", "127.1", "2130706433"],
)  # fmt: skip
def test_no_other_name_is_answered(server: Running, host: str) -> None:
    assert of_host(server, host.format(server.port)) == 400


def test_two_hosts_are_none(server: Running) -> None:
    for hosts in (b"", b"Host: localhost\r\nHost: evil.example\r\n"):
        assert sent(server, b"GET / HTTP/1.1\r\n" + hosts + b"\r\n").split(b" ")[1] == b"400"
    assert sent(server, b"GET / HTTP/1.0\r\n\r\n").split(b" ")[1] == b"400"


def test_listening_to_the_network_any_address_and_the_machines_name_are_answered() -> None:
    hosts = Hosts("0.0.0.0")
    for name in ("192.168.1.7:7832", "[fe80::1]", "localhost", socket.gethostname()):
        assert hosts.allows(name)
    assert not hosts.allows("evil.example")
    assert Hosts("notes.example").allows("notes.example:7832")
    assert not hosts.local and Hosts("::1").local and Hosts("localhost").local


@pytest.mark.parametrize("path", PATHS)
def test_with_a_key_nothing_below_api_is_answered_without_it(locked: Running, path: str) -> None:
    wrong: list[dict[str, bytes]] = [
        {}, {"Authorization": b"Bearer"}, bearer(KEY[:-1]), bearer(KEY + "x"), bearer(KEY.upper()),
        {"Authorization": KEY.encode()}, {"Authorization": b"Basic " + KEY.encode()},
        {"Authorization": b"\xff"}, {"X-Api-Key": KEY.encode()},
    ]  # fmt: skip
    with locked.client() as web:
        for method in ("GET", "POST", "OPTIONS"):
            for headers in wrong:
                answer = web.request(method, f"/api/v1/{path}", headers=headers)  # type: ignore[arg-type]
                assert (answer.status_code, answer.json()["error"]) == (401, "unauthenticated")
                assert answer.headers["www-authenticate"] == "Bearer"
                assert KEY not in answer.text


def test_with_the_key_it_is(locked: Running) -> None:
    with locked.client() as web:
        assert web.get("/api/v1/health", headers=bearer(KEY)).status_code == 200  # type: ignore[arg-type]
        assert web.get("/api/v1/nothing", headers=bearer(KEY)).status_code == 404  # type: ignore[arg-type]
        lower = {"authorization": b"bearer " + KEY.encode()}
        assert web.get("/api/v1/health", headers=lower).status_code == 200  # type: ignore[arg-type]
        assert web.get("/").status_code == 200  # the page asks for the key itself


@pytest.mark.parametrize("site", ["cross-site", "same-site", "x"])
def test_other_sites_pages_are_not_answered(web: httpx.Client, site: str) -> None:
    answer = web.get("/api/v1/documents", headers={"Sec-Fetch-Site": site})
    assert (answer.status_code, answer.json()["error"]) == (403, "cross_site")
    for own in ("same-origin", "none"):
        assert web.get("/api/v1/documents", headers={"Sec-Fetch-Site": own}).status_code == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost", ""])
def test_pages_of_other_origins_are_not_answered_where_a_browser_does_not_tell_the_site(
    web: httpx.Client, origin: str
) -> None:
    for method, path in (("GET", "search?q=x"), ("POST", "index/trigger")):
        answer = web.request(method, f"/api/v1/{path}", headers={"Origin": origin})
        assert (answer.status_code, answer.json()["error"]) == (403, "cross_site")
    own = {"Origin": str(web.base_url).rstrip("/")}
    behind_a_proxy = {"Origin": "https://notes.example.com", "Sec-Fetch-Site": "same-origin"}
    for headers in (own, behind_a_proxy):
        assert web.get("/api/v1/documents", headers=headers).status_code == 200


def test_no_other_origin_is_given_leave(web: httpx.Client) -> None:
    asks = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for method in ("OPTIONS", "GET", "POST"):
        answer = web.request(method, "/api/v1/search?q=x", headers=asks)
        assert not [name for name in answer.headers if name.startswith("access-control")]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"])
def test_what_other_sites_may_send_unasked_is_not_taken(web: httpx.Client, kind: str) -> None:
    answer = web.post("/api/v1/index/trigger", content=b"{}", headers={"Content-Type": kind})
    assert (answer.status_code, answer.json()["error"]) == (415, "unsupported_type")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b"null", b'"x"', b"\xff", b'{"q":"a","q":"b"}', b'{"q":NaN}', b"[" * 100_000, b'{"q":"x"} 1',
     '{"q":"x"}'.encode("utf-16"), b'\xef\xbb\xbf{"q":"x"}', b'{"top_k":' + b"9" * 5_000 + b"}", b'{"q":"\\ud800"}'],
)  # fmt: skip
def test_a_body_is_json_and_an_object(web: httpx.Client, body: bytes) -> None:
    answer = web.post("/api/v1/search", content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json().keys()) == (422, {"error", "message"})


def test_a_body_has_a_limit_whatever_it_says(server: Running, web: httpx.Client) -> None:
    big = json.dumps({"q": "x" * MAX_BODY_BYTES}).encode()
    headers = {"Content-Type": "application/json"}
    assert web.post("/api/v1/search", content=big, headers=headers).status_code == 413
    assert web.post("/api/v1/search", content=iter([big]), headers=headers).status_code == 413
    head = b"POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    assert sent(server, head + b"Content-Length: %d\r\n\r\n" % 10**15).split(b" ")[1] == b"413"


def test_beyond_so_many_requests_under_way_the_answer_is_503_in_the_one_shape(
    own: Running, own_web: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "MOST_REQUESTS", 3)
    head = b"POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9\r\n"
    with ExitStack() as opened:
        waiting = [opened.enter_context(socket.create_connection(("127.0.0.1", own.port))) for _ in range(3)]
        for each in waiting:
            each.sendall(head + b"Expect: 100-continue\r\n\r\n")
            assert each.recv(100).startswith(b"HTTP/1.1 100 ")  # its body is waited for
        refused = own_web.get("/api/v1/health")
        assert (refused.status_code, refused.json()["error"]) == (503, "overloaded")
        assert own_web.get("/api/v1/health", headers={"Host": "evil.example"}).status_code == 400
        waiting[0].sendall(b'{"q":"x"}')
        assert waiting[0].recv(1_000).startswith(b"HTTP/1.1 200 ")
        assert own_web.get("/api/v1/health").status_code == 200


def test_a_query_of_10000_characters_fits_however_it_is_escaped(web: httpx.Client) -> None:
    body = json.dumps({"query": "🦔" * 10_000})
    assert web.post("/api/v1/search", content=body, headers={"Content-Type": "application/json"}).status_code == 200


@pytest.mark.parametrize(
    "path", ["/nothing", "/api", "/api/v1", "/api/v2/search", "/api/v1/search/", "/page/index.html",
             "/docs", "/redoc", "/openapi.json", "/..%2fsetup"]
)  # fmt: skip
def test_what_is_not_there_is_told_in_the_one_shape(web: httpx.Client, path: str) -> None:
    answer = web.get(path)
    assert (answer.status_code, answer.json()) == (404, {"error": "not_found", "message": "There is nothing here."})


def test_a_wrong_method_is_told_which_are_right(web: httpx.Client) -> None:
    answer = web.delete("/api/v1/search")
    assert (answer.status_code, answer.json()["error"]) == (405, "method_not_allowed")
    assert {each.strip() for each in answer.headers["allow"].split(",")} == {"GET", "POST"}
    assert web.post("/api/v1/documents", json={}).headers["allow"] == "GET"
    assert web.post("/", json={}).headers["allow"] == "GET"


def test_a_mistake_in_here_is_told_without_its_text(
    own: Running, own_web: httpx.Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("canary")

    monkeypatch.setattr(own.service, "search", broken)
    answer = own_web.get("/api/v1/search?q=x")
    assert (answer.status_code, answer.json()["error"]) == (500, "internal")
    assert "ZeroDivisionError" in caplog.text and "canary" not in caplog.text + answer.text


@pytest.mark.parametrize("path", ["/", "/script.js", "/style.css", "/icon.svg", "/api/v1/search?q=x", "/nothing"])
def test_every_reply_is_closed_to_other_sites(web: httpx.Client, path: str) -> None:
    headers = web.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    policy = dict(
        each.strip().split(" ", 1) for each in headers["content-security-policy"].split(";") if " " in each.strip()
    )
    assert policy["default-src"] == "'none'" and policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["cache-control"] == ("no-store" if path.startswith(("/api", "/nothing")) else "no-cache")
