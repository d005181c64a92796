"""Servers as processes: TLS with a certificate of their own, several workers, and an end that loses nothing."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import socket
import ssl
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.squirrel_server.http.child_server import ChildServer, child_server, invite
from tests.squirrel_server.http.member import Member, batch_of, opening_of
from tests.squirrel_server.store.builder import Client

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="about POSIX signals")


def joined_by(web: httpx.Client, token: str) -> Member:
    client = Client()
    request = client.first()
    answer = web.post("/v1/accounts", json=opening_of(client, request, token))
    assert answer.status_code == 201, answer.text
    client.took(request)
    return Member(web, client, answer.json()["apiKey"])


@contextmanager
def trusting(server: ChildServer, certificate: Path) -> Iterator[httpx.Client]:
    """A client that believes this one certificate and checks the name, as strictly as any Python does."""
    context = ssl.create_default_context(cafile=certificate)
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    with httpx.Client(base_url=server.address, verify=context, trust_env=False, timeout=30) as web:
        yield web


def certificate_of(server: ChildServer) -> bytes:
    """What anybody is shown who connects, as DER."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        socket.create_connection(server.host) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        found = connection.getpeercert(binary_form=True)
        assert found is not None
        return found


def test_a_self_signed_server_is_known_by_its_fingerprint_and_serves_over_tls(
    tmp_path: Path, child_environment: dict[str, str]
) -> None:
    with child_server(child_environment, tmp_path, "--tls-self-signed") as server:
        shown = certificate_of(server)
        assert hashlib.sha256(shown).hexdigest() == server.fingerprint
        pinned = tmp_path / "pinned.pem"
        pinned.write_text(ssl.DER_cert_to_PEM_cert(shown), "ascii")
        with trusting(server, pinned) as web:
            member = joined_by(web, invite(child_environment, tmp_path))
            assert member.append(member.client.put()).is_success
            assert len(member.call("GET", "/v1/log").json()["entries"]) == 2
        with pytest.raises(httpx.ConnectError), httpx.Client(trust_env=False) as stranger:
            stranger.get(f"{server.address}/v1/health")
        assert server.stop() == 0
    with child_server(child_environment, tmp_path, "--tls-self-signed") as again, trusting(again, pinned) as web:
        assert again.fingerprint == server.fingerprint
        member.web = web
        assert member.call("GET", "/v1/account").json()["head"]["seq"] == 2


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_end_right_after_the_address_was_told_is_not_lost(
    tmp_path: Path, child_environment: dict[str, str], number: signal.Signals
) -> None:
    for _ in range(4):
        with child_server(child_environment, tmp_path) as server:
            # Interrupted before it answers anything, it may end as any program does.
            assert server.stop(number) in (0, -number, 1, 130)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_request_under_way_is_answered_before_the_server_ends(
    tmp_path: Path, child_environment: dict[str, str], number: int, workers: str
) -> None:
    with child_server(child_environment, tmp_path, "--workers", workers) as server:
        with httpx.Client(base_url=server.address, trust_env=False, timeout=30) as web:
            member = joined_by(web, invite(child_environment, tmp_path))
        body = json.dumps(batch_of([member.client.put()])).encode()
        lines = [
            "POST /v1/log HTTP/1.1",
            "Host: x",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Expect: 100-continue",
            *(f"{name}: {value}" for name, value in member.headers.items()),
        ]
        with socket.create_connection(server.host, timeout=60) as connection:
            connection.sendall("\r\n".join([*lines, "", ""]).encode())
            assert connection.recv(1_000).startswith(b"HTTP/1.1 100 ")  # it is being read
            connection.sendall(body[:100])
            server.process.send_signal(number)
            server.wait_for("Shutting down")
            connection.sendall(body[100:])
            said = b""
            while data := connection.recv(65_536):
                said += data
        assert said.startswith(b"HTTP/1.1 200 ")
        assert server.process.wait(60) == 0
    with child_server(child_environment, tmp_path) as again:
        with httpx.Client(base_url=again.address, trust_env=False, timeout=30) as web:
            member.web = web
            assert member.call("GET", "/v1/account").json()["head"]["seq"] == 2
        assert again.stop() == 0


def test_two_workers_on_one_address_lose_nothing_and_count_together(
    url: str, tmp_path: Path, child_environment: dict[str, str]
) -> None:
    if url.startswith("sqlite"):
        url = f"sqlite:///{tmp_path / 'two.db'}"
    with child_server(child_environment, tmp_path, "--workers", "2", "--database", url) as server:
        # Connections wait in the queue until a worker is there to take them.
        with httpx.Client(base_url=server.address, trust_env=False, timeout=60) as web:
            member = joined_by(web, invite(child_environment, tmp_path, "--database", url))

        def append(count: int) -> tuple[list[bytes], int]:
            mine = member.client.copy()
            stored, asked = [], 0
            for _ in range(count):
                while True:
                    entry, body = mine.put()
                    asked += 1
                    # A connection of its own each time: the kernel gives it to either worker.
                    with httpx.Client(base_url=server.address, trust_env=False, timeout=60) as web:
                        answer = Member(web, mine, member.key).append((entry, body))
                    if answer.status_code == 200:
                        stored.append(entry)
                        break
                    assert answer.status_code == 412, answer.text
                    head = answer.json()["head"]
                    mine.seq, mine.mac = head["seq"], bytes.fromhex(head["mac"])
            return stored, asked

        with ThreadPoolExecutor(4) as pool:
            outcomes = list(pool.map(append, [8] * 4))
        with httpx.Client(base_url=server.address, trust_env=False, timeout=60) as web:
            member.web = web
            entries = member.call("GET", "/v1/log").json()["entries"]
            counted = re.findall(
                r'squirrel_requests_total{method="POST",route="/v1/log",[^}]*} (\S+)', web.get("/metrics").text
            )
        assert len(entries) == 33
        assert len({entry for stored, _ in outcomes for entry in stored}) == 32
        assert sum(map(float, counted)) == sum(asked for _, asked in outcomes)
        assert server.stop() == 0


def test_twenty_clients_at_one_head_have_one_winner_in_each_round(
    tmp_path: Path, child_environment: dict[str, str]
) -> None:
    with (
        child_server(child_environment, tmp_path, "--workers", "2") as server,
        httpx.Client(base_url=server.address, trust_env=False, timeout=60) as web,
    ):
        member = joined_by(web, invite(child_environment, tmp_path))

        def attempt(_: int) -> httpx.Response:
            return Member(web, member.client, member.key).append(member.client.copy().put())

        with ThreadPoolExecutor(20) as pool:
            for _ in range(3):
                answers = list(pool.map(attempt, range(20)))
                assert sorted(answer.status_code for answer in answers) == [200] + [412] * 19
                (head,) = {json.dumps(answer.json()["head"]) for answer in answers}
                member.client.seq, member.client.mac = json.loads(head)["seq"], bytes.fromhex(json.loads(head)["mac"])
        assert len(member.call("GET", "/v1/log").json()["entries"]) == 4


def test_a_worker_that_is_killed_is_replaced(tmp_path: Path, child_environment: dict[str, str]) -> None:
    with child_server(child_environment, tmp_path, "--workers", "2") as server:
        assert server.process.stderr is not None
        workers = []
        while len(workers) < 2:
            line = server.process.stderr.readline()
            if found := re.search(r"Started server process \[(\d+)\]", line):
                workers.append(int(found[1]))
        for worker in workers:
            os.kill(worker, signal.SIGKILL)
            server.wait_for("Started server process")
        with httpx.Client(base_url=server.address, trust_env=False, timeout=60) as web:
            assert web.get("/v1/health").is_success
        assert server.stop() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="a process there knows no other parent afterwards")
def test_workers_of_a_parent_that_is_killed_end_and_leave_the_port(
    tmp_path: Path, child_environment: dict[str, str]
) -> None:
    with child_server(child_environment, tmp_path, "--workers", "2") as server:
        for _ in range(2):
            server.wait_for("Application startup complete")
        server.process.kill()
        while True:  # the run's own time limit ends what never ends
            try:
                socket.create_connection(server.host, timeout=1).close()
            except ConnectionRefusedError:
                return
            time.sleep(0.1)
