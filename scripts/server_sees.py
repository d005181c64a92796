#!/usr/bin/env python3
"""Keeps "What the server sees" in docs/security.md true: `--check` compares it with a real server, `--write` renews it.

A real `squirrel-server` and two real devices live through a few changes; then every table and column of the server's
SQLite file is read. What differs from run to run (random bytes, times) is shown by kind and length; all else as it is.
A column that nobody described here, or a word of a memory in any of them, ends the script with an error.
"""

from __future__ import annotations

import base64
import difflib
import json
import re
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCUMENT = ROOT / "docs" / "security.md"
BLOCK = re.compile(r"(?s)(<!-- server-sees:begin [^\n]* -->\n)(.*?)(<!-- server-sees:end -->)")

PASSPHRASE = "canary-passphrase-2207-cobalt"
TEXTS = ["canary-text-7319-ochre", "canary-forgotten-4402-umber", "canary-longer-5518-sienna " * 40]
CORRECTED = "canary-corrected-6604-ivory, and some more about it, so that it is five times as long as it was before."
FIELDS = {name: f"canary-{name}-3391-teal" for name in ("entity", "category", "tag", "keyword", "source", "reason")}

OPS = {1: "put", 2: "tombstone", 3: "rewrap", 4: "rotate"}
Values = Sequence[Any]
Tables = dict[str, dict[str, list[Any]]]
Columns = dict[str, tuple[Callable[[Values], str], str]]
"""By column: how its values are shown, and what they tell whoever reads the database."""


def main(arguments: list[str]) -> int:
    if arguments not in (["--check"], ["--write"]):
        print("usage: scripts/server_sees.py --check | --write", file=sys.stderr)
        return 2
    document = DOCUMENT.read_text("utf-8")
    found = BLOCK.search(document)
    if found is None:
        raise SystemExit("docs/security.md has lost the marks around what the server sees")
    made = block()
    if arguments == ["--write"]:
        DOCUMENT.write_text(BLOCK.sub(lambda old: old[1] + made + old[3], document), "utf-8", newline="\n")
        return 0
    lines = list(difflib.unified_diff(found[2].splitlines(), made.splitlines(), DOCUMENT.name, "seen", lineterm=""))
    if lines:
        print("\n".join(lines), "\nrun scripts/server_sees.py --write", sep="\n", file=sys.stderr)
    return 1 if lines else 0


def block() -> str:
    """What stands between the marks. SystemExit if a secret is in the database or in the server's log."""
    with tempfile.TemporaryDirectory() as folder:
        seen = live(Path(folder))
    found = leaks(seen.tables, seen.secrets)
    found += [f"the log: {secret}" for secret in seen.secrets if any(form in seen.log for form in forms(secret))]
    if found:
        raise SystemExit("The server has what it must not have: " + "; ".join(found))
    return render(seen)


@dataclass(frozen=True)
class Seen:
    """What the server had at the end: its tables, what it wrote to its log, and the secrets to look for in both."""

    tables: Tables
    log: bytes
    secrets: list[str]
    lengths: list[int]  # characters of the texts whose objects are there, in the order of their entries


def live(folder: Path) -> Seen:
    """Two devices on a server: saved, corrected, forgotten, a second API key, a rotation; all by real commands."""
    sys.path.insert(0, str(ROOT))
    servers: Any = import_module("tests.e2e.account_server")
    devices: Any = import_module("tests.e2e.devices")
    with servers.account_server(folder / "server") as server:
        laptop = devices.Device(folder / "laptop", PASSPHRASE)
        laptop.configure(laptop.ask("init", "--api", server.origin, "--invite", server.invite(), "--no-recovery"))
        options = [word for name, value in FIELDS.items() if name != "reason" for word in (f"--{name}", value)]
        memory = laptop.ask("add", TEXTS[0], *options)["id"]
        forgotten = laptop.ask("add", TEXTS[1])["id"]
        laptop.ask("correct", memory, CORRECTED, "--reason", FIELDS["reason"])
        laptop.ask("forget", forgotten, "--yes")
        laptop.ask("rotate", "--keep-passphrase", "--no-recovery")
        code = laptop.ask("keys", "create", "--join", "--expires", "30")["joinCode"]
        phone = devices.Device(folder / "phone", PASSPHRASE)
        phone.join(code)
        phone.ask("add", TEXTS[2])
        invite = server.invite()  # nobody uses it
        server.stop()
        tables, log = read(folder / "server" / "server.db"), server.logged()
    keys = [device.variables["SQUIRREL_API_KEY"] for device in (laptop, phone)]
    secrets = [PASSPHRASE, *TEXTS, CORRECTED, *FIELDS.values(), invite, *keys, *(key.split("_")[2] for key in keys)]
    return Seen(tables, log, secrets, [len(text.strip()) for text in (TEXTS[0], CORRECTED, TEXTS[2])])


def read(database: Path) -> Tables:
    """Every column of every table, rows in the order of the primary key where there is one."""
    with closing(sqlite3.connect(database)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        tables: Tables = {}
        for table in names:
            columns = connection.execute("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid", (table,)).fetchall()
            keys = [name for name, place in sorted(columns, key=lambda each: each[1]) if place]
            rows = connection.execute(
                f'SELECT * FROM "{table}"' + (f" ORDER BY {', '.join(keys)}" if keys else "")
            ).fetchall()
            tables[table] = {name: [row[n] for row in rows] for n, (name, _) in enumerate(columns)}
    return tables


def leaks(tables: Tables, secrets: Iterable[str]) -> list[str]:
    """Each secret that is in a column, with the column."""
    known = [(secret, form) for secret in secrets for form in forms(secret)]
    return sorted(
        {
            f"{table}.{column}: {secret}"
            for table, columns in tables.items()
            for column, values in columns.items()
            for value in values
            for secret, form in known
            if form in (value if isinstance(value, bytes) else str(value).encode())
        }
    )


def forms(secret: str) -> set[bytes]:
    """As it is, in UTF-16, in hex, and in base64 at each of its three offsets, less what its neighbours change."""
    raw = secret.strip().encode()
    shifted = {base64.b64encode(b"\0" * shift + raw)[4:-4] for shift in range(3)}
    return {raw, secret.strip().encode("utf-16-le"), raw.hex().encode(), *shifted}


# How values are shown. Each refuses a value that is not of the kind it claims.


def as_is(values: Values) -> str:
    return _or_empty(values, ", ".join(f"`{value}`" for value in sorted({each for each in values if each is not None})))


def random_bytes(values: Values) -> str:
    return _or_empty(values, f"{_sizes(values)} random bytes")


def hash_bytes(values: Values) -> str:
    return _or_empty(values, f"{_sizes(values)} bytes, a hash")


def mac(values: Values) -> str:
    return _or_empty(values, f"{_sizes(values)} bytes, a MAC")


def sealed(prefix: int) -> Callable[[Values], str]:
    """Length, and as many bytes from the front as are no secret and the same each time."""

    def show(values: Values) -> str:
        first = next((value for value in values if value is not None), b"")
        return _or_empty(values, f"{_sizes(values)} bytes, `{first[:prefix].hex()}…`")

    return show


def key_id(values: Values) -> str:
    assert all(value is None or re.fullmatch("[0-9A-Za-z]{12}", value) for value in values)
    return _or_empty(values, "12 random characters")


def day(values: Values) -> str:
    today = time.time() / 86_400
    assert all(value is None or abs(value - today) < 2 for value in values), values
    return _or_empty(values, "a day")


def second(values: Values) -> str:
    assert all(value is None or abs(value - time.time()) < 40 * 86_400 for value in values), values
    return _or_empty(values, "a time, to the second")


def _sizes(values: Values) -> str:
    assert all(value is None or isinstance(value, bytes) for value in values), values
    return ", ".join(f"{size:,}" for size in sorted({len(value) for value in values if value is not None}))


def _or_empty(values: Values, shown: str) -> str:
    if all(value is None for value in values):
        return "empty"
    return f"{shown}; or empty" if None in values else shown


NUMBER = "the account, by a short number"
COLUMNS: dict[str, Columns] = {
    "accounts": {
        "account": (as_is, "a short number that stands for the id in the other tables"),
        "account_id": (random_bytes, "a name drawn by the client; nothing of a person is in it"),
        "head_seq": (as_is, "how many entries there are: every save, correction, forgetting and change of keys"),
        "head_mac": (mac, "the last entry's, which takes a key to make or to check"),
        "generation": (as_is, "how often passphrase, recovery code or key were changed, the first time included"),
        "wraps": (sealed(24), "the key, sealed under the passphrase; how that is stretched; a second one of 164 bytes "
                              "where there is a recovery code. What a passphrase could be guessed against"),
        "previous_keys": (sealed(4), "the keys before each rotation, sealed under the present one"),
        "append_verifier": (hash_bytes, "compared with what a write brings; opens nothing"),
        "upload_seq": (as_is, "of an account that `squirrel-mcp move` brought here: how long its log was then"),
        "upload_mac": (as_is, "and the MAC of its last entry then"),
    },
    "log": {
        "account": (as_is, NUMBER),
        "seq": (as_is, "the order in which things happened"),
        "entry": (sealed(2), "what happened, without its content: see the next table"),
        "memory_id": (random_bytes, "which memory, by a name that the client drew; empty for a change of keys"),
        "object_sha256": (hash_bytes, "of the sealed record, not of the text; empty for all but a put"),
    },
    "objects": {
        "account": (as_is, NUMBER),
        "seq": (as_is, "which entry it came with"),
        "memory_id": (random_bytes, "which memory it is a revision of"),
        "body": (sealed(4), "one revision of a memory, sealed, its size rounded up; gone once that is forgotten"),
    },
    "memories": {
        "memory_id": (random_bytes, "one row for each memory there ever was"),
        "account": (as_is, NUMBER),
        "revision": (as_is, "how often it was written, its forgetting included"),
        "forgotten": (as_is, "whether it was forgotten"),
        "seq": (as_is, "when it was changed last, in the order of the log"),
    },
    "api_keys": {
        "key_id": (key_id, "the public part of a key; no name and no label of a device"),
        "account": (as_is, NUMBER),
        "digest": (hash_bytes, "of the whole key, which cannot be had from it"),
        "scope": (as_is, "what the key may do"),
        "created_day": (day, "when it was made"),
        "last_used_day": (day, "when it was used last"),
        "expires": (second, "when it ends by itself, if it does"),
    },
    "invites": {
        "digest": (hash_bytes, "of the token"),
        "expires": (second, "until when it can be used"),
        "account": (as_is, "which account it opened"),
        "key_id": (key_id, "which key it was answered with"),
    },
    "store_schema": {"version": (as_is, "the form of these tables")},
}  # fmt: skip


def render(seen: Seen) -> str:
    """The tables as Markdown. SystemExit where the database and the descriptions above do not have the same columns."""
    found = {table: set(columns) for table, columns in seen.tables.items()}
    described = {table: set(columns) for table, columns in COLUMNS.items()}
    if found != described:
        raise SystemExit(f"described and found differ: {described} and {found}")
    parts = []
    for table, columns in COLUMNS.items():
        values = seen.tables[table]
        rows = max(map(len, values.values()))
        parts.append(f"`{table}`: {rows} {'row' if rows == 1 else 'rows'}\n\n| column | here | what it tells |\n")
        parts.append("|---|---|---|\n")
        parts += [f"| `{name}` | {show(values[name])} | {tells} |\n" for name, (show, tells) in columns.items()]
        parts.append("\n")
        if table == "log":
            parts.append(_entries(values["entry"]))
        if table == "objects":
            parts.append(_lengths(seen.lengths, values["body"]))
    return "\n" + "".join([*parts, _requests(seen.log)])


def _entries(raw: Values) -> str:
    from squirrel_mcp.crypto import log

    entries = [log.parse(each) for each in raw]
    assert all(abs(entry.time / 1000 - time.time()) < 86_400 for entry in entries)
    ops = " ".join(OPS[entry.op] for entry in entries)
    revisions = " ".join(str(entry.revision) for entry in entries)
    return (
        "In each `entry`\n\n| field | here | what it tells |\n|---|---|---|\n"
        f"| op | {ops} | saved or corrected, forgotten, keys changed, key rotated |\n"
        "| time | a time, to the millisecond | when, by the client's clock |\n"
        f"| revision | {revisions} | of that memory; with changes of keys the generation |\n"
        "| seq, memory id, hash | the columns beside it | |\n"
        "| two MACs | 32 bytes each | that the entries are in this order; they take a key to make or to check |\n\n"
    )


def _lengths(texts: Sequence[int], bodies: Values) -> str:
    pairs = [f"{text:,} characters: {len(body):,} bytes" for text, body in zip(texts, bodies, strict=True)]
    return f"Texts and what became of them, with their labels: {'; '.join(pairs)}.\n\n"


def _requests(log: bytes) -> str:
    lines = [json.loads(line) for line in log.splitlines() if line.startswith(b"{")]
    requests = [line for line in lines if line["event"] == "request"]
    fields = dict.fromkeys(name for line in requests for name in line)
    asked = sorted({f"`{line['method']} {line['route']}`" for line in requests})
    noted = ", ".join(f"`{name}`" for name in fields)
    return f"Its log has a line for each request, with {noted}. Here: {', '.join(asked)}.\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
