"""A writer killed at any moment: what it was told is stored is there, and the file opens."""

from __future__ import annotations

import random
from pathlib import Path

from squirrel_server.store import SqlStore
from tests.squirrel_server.store.builder import TOMBSTONE, Client
from tests.squirrel_server.store.contract import opened, state_of
from tests.squirrel_server.store.test_contract_races import appenders, chain, said, the_rest


def test_a_killed_writer_loses_nothing_that_was_acknowledged(
    vault: Path, child_environment: dict[str, str], full: bool
) -> None:
    url = f"sqlite:///{vault}"
    store = SqlStore(url)
    client = opened(store)
    store.close()
    draw = random.Random(7)
    acknowledged: set[bytes] = set()
    for kills in range(1, 301 if full else 11):
        with appenders(1, child_environment, url, client, "many", "1000000") as (child,):
            lines = [said(child) for _ in range(draw.randint(0, 25))]
            child.kill()
            lines += the_rest(child)  # what was still in the pipe had been acknowledged as well
        acknowledged.update(bytes.fromhex(line.split()[2]) for line in lines)
        store = SqlStore(url)
        stored = set(chain(store, client)[1:])
        assert acknowledged <= stored
        # A kill may come between a commit and its acknowledgement, once.
        assert len(stored) - len(acknowledged) <= kills
        _check_objects(store, client)
        store.close()


def _check_objects(store: SqlStore, client: Client) -> None:
    """Every put has its object, unless its memory was forgotten."""
    log = state_of(store, client).log[1:]
    forgotten = {entry[18:34] for entry, _ in log if entry[1] == TOMBSTONE}
    assert all((body is None) == (entry[18:34] in forgotten) for entry, body in log)
