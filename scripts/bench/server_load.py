#!/usr/bin/env python3
"""Writes to servers of its own on this machine, as many clients at once, and counts what came back.

    scripts/bench/server_load.py              SQLite with one process, PostgreSQL with four, both loads
    scripts/bench/server_load.py --only sqlite --appends 50

Load one: 20 clients append to one account, each under the head it knows; who loses a race waits a moment, reads what
is new and tries again, as a real client does. Load two: 50 accounts at once, one client each. Afterwards every log is
read and compared with what was acknowledged. p99 is of single requests that stored something.
"""

from __future__ import annotations

import argparse
import hashlib
import http.client
import json
import os
import re
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2])]

from squirrel_mcp.sync.races import pause  # noqa: E402 - found by the line above
from squirrel_server.api_keys import make_invite  # noqa: E402 - found by the line above
from squirrel_server.store.server_store import ServerStore  # noqa: E402 - found by the line above

POSTGRESQL = "postgresql+psycopg://postgres@127.0.0.1:5432/test"
ROOT = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "squirrel_server"]
MOST = 200_000  # requests of one load: it ends by itself, whatever happens
OBJECT_BYTES = 600  # a memory of some sentences, sealed and padded


@dataclass
class Account:
    """One account, its keys, and what its servers said they have."""

    account_id: bytes = field(default_factory=lambda: os.urandom(16))
    append_key: bytes = field(default_factory=lambda: os.urandom(32))
    api_key: str = ""
    first_mac: bytes = b""
    stored: list[bytes] = field(default_factory=list)

    def opening(self, invite: str) -> dict[str, object]:
        """The body that opens it."""
        wrap = struct.pack(">4sBBBBIIII", b"SQKW", 1, 1, 2, 0, 3, 65_536, 4, 1) + self.account_id + os.urandom(124)
        entry = make_entry(3, 1, bytes(16), hashlib.sha256(wrap).digest(), bytes(32))
        self.first_mac = entry[106:]
        return {
            "accountId": self.account_id.hex(),
            "wraps": [text(wrap)],
            "previousKeys": None,
            "entry": text(entry),
            "appendVerifier": hashlib.sha256(self.append_key).hexdigest(),
            "invite": invite,
        }


@dataclass
class Outcome:
    """What one load came to."""

    seconds: float
    latencies: list[float]
    requests: int
    lost: int
    memory: list[tuple[int, int]]  # MiB of each server process: before, at most


def text(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def make_entry(op: int, seq: int, memory_id: bytes, digest: bytes, prev_mac: bytes) -> bytes:
    """A log entry with a mac that nobody could check: servers have no keys."""
    return struct.pack(">BBQQ16sQ32s32s32s", 1, op, seq, 0, memory_id, 1, digest, prev_mac, os.urandom(32))


class Caller:
    """One client on one connection, with the cheapest HTTP there is."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def call(self, method: str, path: str, account: Account | None, body: object = None) -> tuple[int, bytes]:
        """Status and body of one request."""
        headers = {"Content-Type": "application/json"}
        if account is not None:
            headers |= {"Authorization": f"Bearer {account.api_key}", "Squirrel-Append": text(account.append_key)}
        sent = None if body is None else json.dumps(body).encode("ascii")
        self._connection.request(method, path, sent, headers)
        answer = self._connection.getresponse()
        return answer.status, answer.read()

    def close(self) -> None:
        self._connection.close()


@contextmanager
def server(url: str, workers: int, folder: str) -> Iterator[tuple[int, list[int], Callable[[], str]]]:
    """A server without limits: its port, the ids of the processes that answer, and a maker of invites."""
    options = ["--database", url, "--data-dir", folder]
    command = [*COMMAND, "serve", "--port", "0", "--workers", str(workers), *options]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with (
        open(os.devnull, "w") as nowhere,
        subprocess.Popen(
            [*command, "--key-rate", "0", "--address-rate", "0"],
            stdout=subprocess.PIPE, stderr=nowhere, text=True, env=environment,
        ) as process,
    ):  # fmt: skip
        try:
            assert process.stdout is not None
            found = re.match(r"Squirrel server at http://127\.0\.0\.1:(\d+)", process.stdout.readline())
            if found is None:
                raise SystemExit("the server did not start")
            caller = Caller(int(found[1]))
            caller.call("GET", "/v1/health", None)  # answered once a worker is there
            caller.close()

            store = ServerStore(url)

            def invite() -> str:
                token, digest = make_invite(os.urandom)
                store.add_invite(digest, 0, 2**40)
                return token

            yield int(found[1]), answering(process.pid, workers), invite
            store.close()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def answering(pid: int, workers: int) -> list[int]:
    """The processes that answer: the one that was started, or its workers; waits until they all have begun."""
    if workers == 1:
        return [pid]
    while True:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()
        # One more child is multiprocessing's own tracker, which stays small.
        large = [int(child) for child in children if memory_of(int(child), "VmRSS") > 35]
        if len(large) >= workers:
            return large
        time.sleep(0.2)


def memory_of(pid: int, name: str) -> int:
    """MiB: VmRSS now, VmHWM at most since it began."""
    status = Path(f"/proc/{pid}/status").read_text("ascii")
    found = re.search(rf"{name}:\s+(\d+) kB", status)
    return int(found[1]) // 1_024 if found else 0


def open_accounts(port: int, invite: Callable[[], str], count: int) -> list[Account]:
    """So many new accounts."""
    caller = Caller(port)
    accounts = [Account() for _ in range(count)]
    for account in accounts:
        status, body = caller.call("POST", "/v1/accounts", None, account.opening(invite()))
        assert status == 201, body
        account.api_key = json.loads(body)["apiKey"]
    caller.close()
    return accounts


def load(port: int, processes: list[int], accounts: list[Account], clients: int, appends: int) -> Outcome:
    """`clients` for each account, `appends` stored by each of them."""
    latencies: list[float] = []
    asked = [0]
    lock = threading.Lock()
    together = threading.Barrier(clients * len(accounts) + 1)

    def run(account: Account) -> None:
        caller = Caller(port)
        caller.call("GET", "/v1/account", account)
        seq, mac = 1, account.first_mac
        own: list[bytes] = []
        times: list[float] = []
        requests = lost = 0
        together.wait()
        while len(own) < appends and asked[0] < MOST:
            body = struct.pack(">BBH16s", 1, 1, 0, bytes(16)) + os.urandom(OBJECT_BYTES - 20)
            entry = make_entry(1, seq + 1, os.urandom(16), hashlib.sha256(body).digest(), mac)
            begun = time.perf_counter()
            batch = {"entries": [{"entry": text(entry), "object": text(body)}]}
            status, answer = caller.call("POST", "/v1/log", account, batch)
            requests += 1
            if status == 200:
                times.append(time.perf_counter() - begun)
                own.append(entry)
                seq, mac, lost = seq + 1, entry[106:], 0
            elif status == 412:
                lost += 1
                time.sleep(pause(lost, time.perf_counter() - begun))
                _, answer = caller.call("GET", f"/v1/log?after={seq}", account)
                requests += 1
                head = json.loads(answer)["head"]
                seq, mac = head["seq"], bytes.fromhex(head["mac"])
            else:
                raise SystemExit(f"{status}: {answer!r}")
        caller.close()
        with lock:
            latencies.extend(times)
            account.stored.extend(own)
            asked[0] += requests

    before = [memory_of(pid, "VmRSS") for pid in processes]
    threads = [threading.Thread(target=run, args=(account,)) for account in accounts for _ in range(clients)]
    for thread in threads:
        thread.start()
    together.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - begun
    lost = sum(len(set(account.stored) - read_log(port, account)) for account in accounts)
    lost += clients * len(accounts) * appends - len(latencies)
    memory = list(zip(before, [memory_of(pid, "VmHWM") for pid in processes], strict=True))
    return Outcome(seconds, latencies, asked[0], lost, memory)


def read_log(port: int, account: Account) -> set[bytes]:
    """Every entry, which must follow each other to the head."""
    caller = Caller(port)
    entries: list[bytes] = []
    more = True
    while more:
        _, body = caller.call("GET", f"/v1/log?after={len(entries)}", account)
        page = json.loads(body)
        entries += [b64decode(item["entry"]) for item in page["entries"]]
        more = page["more"]
    caller.close()
    for before, after in pairwise(entries):
        assert after[74:106] == before[106:], "the log is torn"
    return set(entries)


@contextmanager
def databases(only: str) -> Iterator[list[tuple[str, str, int]]]:
    """Name, address and number of server processes of each database that is asked for."""
    with tempfile.TemporaryDirectory(prefix="squirrel-bench-") as folder:
        found = []
        if only != "postgresql":
            found.append(("SQLite", f"sqlite:///{folder}/server.db", 1))
        if only == "sqlite":
            yield found
            return
        from sqlalchemy import create_engine
        from sqlalchemy import text as sql

        schema = f"bench_{uuid.uuid4().hex}"
        engine = create_engine(POSTGRESQL)
        with engine.begin() as connection:
            connection.execute(sql(f"CREATE SCHEMA {schema}"))
        try:
            found.append(("PostgreSQL", f"{POSTGRESQL}?options=-csearch_path%3D{schema}", 4))
            yield found
        finally:
            with engine.begin() as connection:
                connection.execute(sql(f"DROP SCHEMA {schema} CASCADE"))
            engine.dispose()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=["sqlite", "postgresql", "both"], default="both")
    parser.add_argument("--clients", type=int, default=20, help="on the one account")
    parser.add_argument("--appends", type=int, default=100, help="of each client")
    parser.add_argument("--accounts", type=int, default=50, help="at once")
    parser.add_argument("--each", type=int, default=100, help="appends to each of them")
    arguments = parser.parse_args()
    print("| database | processes | load | appends/s | p50 ms | p99 ms | requests | lost | MiB each, before -> most |")
    print("|---|---|---|---|---|---|---|---|---|")
    failed = False
    with databases(arguments.only) as wanted, tempfile.TemporaryDirectory() as folder:
        for name, url, workers in wanted:
            with server(url, workers, folder) as (port, processes, invite):
                loads = [
                    (f"{arguments.clients} clients, 1 account", 1, arguments.clients, arguments.appends),
                    (f"{arguments.accounts} accounts", arguments.accounts, 1, arguments.each),
                ]
                for what, accounts, clients, appends in loads:
                    opened = open_accounts(port, invite, accounts)
                    outcome = load(port, processes, opened, clients, appends)
                    failed |= outcome.lost > 0
                    print(row(name, workers, what, outcome), flush=True)
    return int(failed)


def row(name: str, workers: int, what: str, outcome: Outcome) -> str:
    """One line of the table."""
    quantiles = statistics.quantiles(outcome.latencies, n=100)
    memory = ", ".join(f"{before} -> {most}" for before, most in outcome.memory)
    rate = len(outcome.latencies) / outcome.seconds
    return (
        f"| {name} | {workers} | {what} | {rate:,.0f} | {quantiles[49] * 1000:.1f} | {quantiles[98] * 1000:.1f} "
        f"| {outcome.requests:,} | {outcome.lost} | {memory} |"
    )


if __name__ == "__main__":
    sys.exit(main())
