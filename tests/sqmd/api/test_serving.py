"""A server as a process: it begins, says where it is, and ends promptly."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sqmd.api.serving import address
from sqmd.errors import ConfigError, PortBusy
from sqmd.listening import listen
from tests.house.sources import ROOT

PROGRAM = """
import sys
from pathlib import Path
from sqmd.api.serving import serve
from sqmd.listening import listen
from sqmd.service import Service
from tests.sqmd.api.running import config_for
from tests.sqmd.fakes import FakeEmbedder

service = Service(config_for(Path(sys.argv[1])), embedder=FakeEmbedder())
with listen(sys.argv[2], 0) as listening:
    serve(service, sys.argv[2], listening, announce=lambda line: print(line, flush=True))
service.close()
print("closed", flush=True)
"""


def process(folder: Path, host: str = "127.0.0.1") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(folder), host],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT,
    )  # fmt: skip


@pytest.fixture
def started(notes: Path) -> Iterator[subprocess.Popen[str]]:
    with process(notes) as found:
        yield found
        found.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_at_a_signal_though_a_browser_keeps_its_connection(
    started: subprocess.Popen[str], number: signal.Signals
) -> None:
    assert started.stdout is not None
    where = started.stdout.readline().strip()
    with httpx.Client(base_url=where, trust_env=False, timeout=60) as web:
        assert web.get("/api/v1/health").status_code == 200
        started.send_signal(number)
        out, err = started.communicate(timeout=60)
    assert (started.returncode, out, err) == (0, "closed\n", "")


def test_queries_are_in_no_log(started: subprocess.Popen[str]) -> None:
    assert started.stdout is not None
    where = started.stdout.readline().strip()
    with httpx.Client(base_url=where, trust_env=False, timeout=60) as web:
        for query in ("canary", "x" * 20_000):
            web.get(f"/api/v1/search?q={query}")
    started.terminate()
    assert started.communicate(timeout=60) == ("closed\n", "")


def test_without_a_key_it_says_that_the_network_can_read(notes: Path) -> None:
    with process(notes, "0.0.0.0") as started:
        assert started.stdout is not None
        assert started.stdout.readline().startswith("http://127.0.0.1:")
        assert "api.api_key" in started.stdout.readline()
        started.terminate()  # at once, which is before it answers
        assert started.wait(60) == 0


def test_a_port_that_is_taken_is_one_sentence() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortBusy, match=rf"^Port {port} of 127\.0\.0\.1 is taken .*--port\.$"):
            listen("127.0.0.1", port)


@pytest.mark.parametrize(
    "host", ["192.0.2.1", "no.such.name.invalid", "999.1.1.1", "a..b", "x" * 64, ".", "\udcff", "a\0b", "é..ü"]
)
def test_an_address_of_another_machine_or_of_none_is_one_sentence(host: str) -> None:
    with pytest.raises(ConfigError, match=r"^Port 0 of [^\n]+ cannot be listened at: [^\n]+\.$"):
        listen(host, 0)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6")
def test_ipv6_is_written_as_browsers_want_it() -> None:
    try:
        listening = listen("[::1]", 0)
    except ConfigError:
        pytest.skip("no IPv6 loopback address here")
    with listening:
        assert address("::", listening) == f"http://[::1]:{listening.getsockname()[1]}/"
