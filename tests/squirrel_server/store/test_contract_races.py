"""Contract: of writers at one head exactly one wins, from threads and from processes, and nothing is lost."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from squirrel_server.store import Head, HeadMoved, Store
from tests.squirrel_server.store.builder import Client, sha256
from tests.squirrel_server.store.contract import opened, state_of

APPENDER = Path(__file__).with_name("appender.py")


@contextmanager
def appenders(
    count: int, environment: dict[str, str], url: str, client: Client, *mode: str
) -> Iterator[list[subprocess.Popen[str]]]:
    """Child processes that have opened the store and wait for what comes next."""
    secrets = (client.account_id.hex(), client.append_key.hex(), client.kid.hex())
    command = [sys.executable, str(APPENDER), url, *secrets, *mode]
    children = [
        subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for _ in range(count)
    ]
    try:
        for child in children:
            assert said(child) == "ready"
        yield children
    finally:
        for child in children:
            child.kill()
            with child:  # closes its pipes and waits for it
                pass


def said(child: subprocess.Popen[str]) -> str:
    assert child.stdout is not None
    return child.stdout.readline().strip()


def the_rest(child: subprocess.Popen[str]) -> list[str]:
    """What the child says until it ends, without a last line that was cut off."""
    assert child.stdout is not None
    return child.stdout.read().split("\n")[:-1]


def chain(store: Store, client: Client) -> list[bytes]:
    """The entries of the log, which follow each other up to the head."""
    state = state_of(store, client)
    entries = [entry for entry, _ in state.log]
    mac = bytes(32)
    for number, entry in enumerate(entries, 1):
        assert int.from_bytes(entry[2:10]) == number and entry[74:106] == mac
        mac = entry[106:]
    assert state.account.head == (len(entries), mac)
    return entries


def test_twenty_threads_at_one_head_have_one_winner_in_each_round(store: Store) -> None:
    client = opened(store)
    together = threading.Barrier(20)

    def attempt(_: int) -> Head:
        mine = client.copy()
        pair = mine.put()
        together.wait()
        try:
            return store.append(mine.account_id, mine.append_key, [pair])
        except HeadMoved as moved:
            return Head(-1, moved.head.mac)

    with ThreadPoolExecutor(20) as pool:
        for _ in range(3):
            outcomes = list(pool.map(attempt, range(20)))
            winners = [head for head in outcomes if head.seq > 0]
            assert len(winners) == 1
            assert {head.mac for head in outcomes} == {winners[0].mac}  # the losers were told of it
            client.seq, client.mac = winners[0]
    assert len(chain(store, client)) == 4


def test_twenty_races_of_four_processes_have_one_winner_each(
    store: Store, url: str, child_environment: dict[str, str]
) -> None:
    client = opened(store)
    with appenders(4, child_environment, url, client, "race") as children:
        for _ in range(20):
            for child in children:
                assert child.stdin is not None
                child.stdin.write(f"{client.seq} {client.mac.hex()}\n")
                child.stdin.flush()
            answers = [said(child).split() for child in children]
            ((_, seq, mac),) = [answer for answer in answers if answer[0] == "won"]
            assert answers.count(["moved"]) == 3
            client.seq, client.mac = int(seq), bytes.fromhex(mac)
    assert len(chain(store, client)) == 21


def test_two_processes_that_append_fifty_times_each_lose_nothing(
    store: Store, url: str, child_environment: dict[str, str]
) -> None:
    client = opened(store)
    with appenders(2, child_environment, url, client, "many", "50") as children:
        with ThreadPoolExecutor(2) as pool:
            lines = [line for output in pool.map(the_rest, children) for line in output]
        assert [child.wait() for child in children] == [0, 0]
    acknowledged = [bytes.fromhex(line.split()[2]) for line in lines]
    assert len(acknowledged) == 100
    assert set(chain(store, client)[1:]) == set(acknowledged)


def test_a_reader_never_sees_a_key_set_with_another_head(store: Store) -> None:
    client = opened(store)
    done = threading.Event()

    def read() -> int:
        seen = set()
        while not done.is_set():
            record = store.account(client.account_id)
            entry, _ = store.read_log(client.account_id, record.head.seq - 1, 1).entries[0]
            # All entries of this log are key sets: the one at the head has the hash of the one in force.
            assert entry[42:74] == sha256(b"".join(record.wraps))
            page = store.read_log(client.account_id, 0)
            assert len(page.entries) == page.head.seq and page.entries[-1][0][106:] == page.head.mac
            seen.add(record.head.seq)
        return len(seen)

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        try:
            for _ in range(40):
                request = client.rewrap()
                store.replace_key_set(client.account_id, client.append_key, *request)
                client.took(request)
        finally:
            done.set()
        assert all(reader.result() for reader in readers)
