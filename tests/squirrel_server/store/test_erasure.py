"""Erased means erased: after a tombstone an object's bytes are in no file of the vault."""

from __future__ import annotations

import os
import random
import sqlite3
from pathlib import Path

import pytest

from squirrel_server.store import SqlStore
from tests.squirrel_server.store.builder import make_object
from tests.squirrel_server.store.conftest import OpenStore
from tests.squirrel_server.store.contract import opened


def found(vault: Path, body: bytes) -> bool:
    """Whether any 16 bytes in a row of the object's secret part are in a file beside the vault, or in it.

    Pieces are looked for, as SQLite cuts a long object into pages. To be called when no writes follow: reading
    the file here releases the locks this process has on it.
    """
    content = b"".join(path.read_bytes() for path in sorted(vault.parent.iterdir()))
    return any(body[start : start + 16] in content for start in range(76, len(body) - 16, 256))


def test_the_bytes_of_a_forgotten_memory_are_gone_while_the_store_is_open(vault: Path, open_store: OpenStore) -> None:
    store = open_store(f"sqlite:///{vault}")
    clients = [opened(store) for _ in range(2)]
    draw = random.Random(3)
    alive: list[tuple[int, bytes, list[bytes]]] = []
    gone: list[bytes] = []
    for _ in range(150):
        choice = draw.random()
        if choice < 0.7 or not alive:
            number, memory_id, bodies = draw.randrange(2), os.urandom(16), list[bytes]()
            alive.append((number, memory_id, bodies))
        else:
            number, memory_id, bodies = draw.choice(alive)
        client = clients[number]
        if choice < 0.85 or not bodies:
            body = make_object(draw.choice([348, 604, 1_116, 4_188, 9_308, 40_000]))
            pair = client.put(memory_id, len(bodies) + 1, body)
            bodies.append(body)
        else:
            pair = client.forget(memory_id, len(bodies) + 1)
            alive.remove((number, memory_id, bodies))
            gone += bodies
        store.append(client.account_id, client.append_key, [pair])
    memory_id, body = os.urandom(16), make_object(9_308)
    store.append(clients[0].account_id, clients[0].append_key, [clients[0].put(memory_id, body=body)])
    assert found(vault, body)
    store.append(clients[0].account_id, clients[0].append_key, [clients[0].forget(memory_id, 2)])
    assert len(gone) > 15
    assert not any(found(vault, body) for body in [*gone, body])
    assert all(found(vault, body) for _, _, bodies in alive for body in bodies)


def test_the_bytes_of_a_deleted_account_are_gone(vault: Path, open_store: OpenStore) -> None:
    store = open_store(f"sqlite:///{vault}")
    client = opened(store)
    bodies = [make_object(2_000) for _ in range(5)]
    store.append(client.account_id, client.append_key, [client.put(body=body) for body in bodies])
    store.delete_account(client.account_id, client.append_key)
    assert not any(found(vault, body) for body in [*bodies, *client.wraps])


@pytest.mark.parametrize("then", ["the next write", "closing"])
def test_what_a_reader_elsewhere_keeps_from_going_goes_later(vault: Path, then: str) -> None:
    store = SqlStore(f"sqlite:///{vault}")
    client = opened(store)
    memory_id, body = os.urandom(16), make_object(9_308)
    store.append(client.account_id, client.append_key, [client.put(memory_id, body=body)])
    reader = sqlite3.connect(vault, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM log").fetchone()
    store.append(client.account_id, client.append_key, [client.forget(memory_id, 2)])  # does not fail
    reader.close()
    if then == "the next write":
        store.append(client.account_id, client.append_key, [client.put()])
        assert not found(vault, body)
    store.close()
    assert not found(vault, body)
