"""A process that writes into an account of somebody else's store, for the tests that need several of them.

    appender.py URL ACCOUNT KEY KID race        a line "SEQ MAC" in: one append at that head, "won SEQ MAC" or "moved"
    appender.py URL ACCOUNT KEY KID many COUNT  COUNT appends one after the other, each acknowledged by a line

Ids, keys and macs are hex. With `many` a lost race is taken up again under the new head, as a client does, and
every fifth append forgets the memory before it.
"""

from __future__ import annotations

import sys

from squirrel_server.store import HeadMoved, SqlStore
from tests.squirrel_server.store.builder import ZERO_HASH, Client


def main(url: str, account: str, key: str, kid: str, mode: str, count: str = "0") -> None:
    client = Client(account_id=bytes.fromhex(account), append_key=bytes.fromhex(key), kid=bytes.fromhex(kid))
    store = SqlStore(url)
    _say("ready")
    if mode == "race":
        _race(store, client)
    else:
        _many(store, client, int(count))
    store.close()


def _race(store: SqlStore, client: Client) -> None:
    for line in sys.stdin:
        seq, mac = line.split()
        client.seq, client.mac = int(seq), bytes.fromhex(mac)
        try:
            head = store.append(client.account_id, client.append_key, [client.put()])
        except HeadMoved:
            _say("moved")
        else:
            _say(f"won {head.seq} {head.mac.hex()}")


def _many(store: SqlStore, client: Client, count: int) -> None:
    last = ZERO_HASH
    client.seq, client.mac = store.account(client.account_id).head
    for number in range(1, count + 1):
        forgets = number % 5 == 0
        while True:
            entry, body = client.forget(last, 2) if forgets else client.put()
            try:
                store.append(client.account_id, client.append_key, [(entry, body)])
                break
            except HeadMoved as moved:
                client.seq, client.mac = moved.head
        last = entry[18:34]
        _say(f"{'forgot' if forgets else 'put'} {last.hex()} {entry.hex()}")


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
