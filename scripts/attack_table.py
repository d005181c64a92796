#!/usr/bin/env python3
"""Keeps docs/attacks.md true: `--check` carries out every attack of the tests and compares, `--write` renews it.

The attacks are those that the tests are parametrised by, in tests/squirrel_mcp/sync; this adds none of its own.
"""

from __future__ import annotations

import difflib
import re
import sys
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "attacks.md"
NOT_PROMISED = "not promised"

HEAD = """# Attacks, and what the client says to them

This file is written by `scripts/attack_table.py` from what the tests in `tests/squirrel_mcp/sync` are parametrised
by; the sentences are what the client said when the script carried the attack out against the tests' hostile server
(`tests/hostile_server.py`). What is promised, and what is not, is in [security.md](security.md); what each error
means in [protocol.md](protocol.md).

{total} attacks, each on a new device, on one with a pin only, on one with pin and state cache and on a running client,
or on the connection. {refused} outcomes are refused by name. {accepted} are marked "{not_promised}": there a device
has nothing to compare with, or has the truth already, or is only kept from what is newer. No attack moves a pin, and
none has a memory shown that was never saved: the tests see to that.
"""
SERVER = """
## A server that lies: {count}

| attack | what the server does | a new device | a pin only | pin and cache | running | what is said |
|---|---|---|---|---|---|---|
"""
NETWORK = """
## What stands in its place, or in between: {count}

| attack | what comes back | error | what is said |
|---|---|---|---|
"""


def main(arguments: list[str]) -> int:
    if arguments not in (["--check"], ["--write"]):
        print("usage: scripts/attack_table.py --check | --write", file=sys.stderr)
        return 2
    sys.path.insert(0, str(ROOT))
    made = table()
    if arguments == ["--write"]:
        TABLE.write_text(made, "utf-8", newline="\n")
        return 0
    found = TABLE.read_text("utf-8") if TABLE.exists() else ""
    lines = list(difflib.unified_diff(found.splitlines(), made.splitlines(), "docs/attacks.md", "tests", lineterm=""))
    if lines:
        print("\n".join(lines), "\nrun scripts/attack_table.py --write", sep="\n", file=sys.stderr)
    return 1 if lines else 0


def table() -> str:
    """The whole file, every attack carried out."""
    server, network = list(server_rows()), list(network_rows())
    outcomes = [outcome for row in server for outcome in row[2:6]] + [row[2] for row in network]
    accepted = outcomes.count(NOT_PROMISED)
    head = HEAD.format(
        total=len(server) + len(network),
        refused=len(outcomes) - accepted,
        accepted=accepted,
        not_promised=NOT_PROMISED,
    )
    parts = [head, SERVER.format(count=len(server)), *map(_line, server)]
    return "".join([*parts, NETWORK.format(count=len(network)), *map(_line, network)])


def server_rows() -> Iterator[list[str]]:
    """Name, what is done, the outcome on each kind of device, the sentence."""
    attacks: Any = import_module("tests.squirrel_mcp.sync.attacks")
    scenes: Any = import_module("tests.squirrel_mcp.sync.scene")
    with tempfile.TemporaryDirectory() as folder, scenes.scenes(Path(folder)) as scene:
        for attack in attacks.ATTACKS:
            outcomes = [attack.error(device) for device in (*scenes.DEVICES, "running")]
            codes = [NOT_PROMISED if each == attacks.ACCEPTED else f"`{each.code}`" for each in outcomes]
            said = ""
            for device, outcome in zip(reversed(scenes.DEVICES), reversed(outcomes[:3]), strict=True):
                scene.reset()
                attack.act(scene)
                error = scene.attempt(device).error
                if outcome != attacks.ACCEPTED and type(error) is not outcome:
                    raise SystemExit(f"{attack.name} ended with {error!r} on a {device} device")
                if error is not None:
                    said = str(error)
                    break
            yield [f"`{attack.name}`", attack.what, *codes, said]


def network_rows() -> Iterator[list[str]]:
    """Name, what comes back, the error, the sentence."""
    attacks: Any = import_module("tests.squirrel_mcp.sync.network_attacks")
    hostile: Any = import_module("tests.hostile_server")
    from squirrel_mcp.errors import SquirrelError
    from squirrel_mcp.sync import transport
    from squirrel_mcp.sync.api_key import ApiKey
    from squirrel_mcp.sync.remote import RemoteStore

    transport.DEADLINE_SECONDS = 0.5
    with tempfile.TemporaryDirectory() as folder, hostile.HostileServer(Path(folder)).running() as server:
        for attack in attacks.NETWORK_ATTACKS:
            server.wire = attack.wire
            store = RemoteStore(transport.Transport(server.origin), ApiKey(hostile.make_key()))
            try:
                store.read_log(0)
            except SquirrelError as error:
                if type(error) is not attack.expected:
                    raise SystemExit(f"{attack.name} ended with {error!r}") from None
                yield [f"`{attack.name}`", attack.what, f"`{error.code}`", str(error)]
            else:
                raise SystemExit(f"{attack.name} was believed")
            finally:
                store.close()


def _line(cells: list[str]) -> str:
    # Ids differ from run to run.
    return "| " + " | ".join(re.sub(r"\b[0-9a-f]{32}\b", "...", cell).replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
