"""kill -9 at random points: what was acknowledged is there, nothing is half-written, exactly one passphrase opens."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from squirrel_mcp.crypto.key_set import KeySet
from squirrel_mcp.errors import WrongPassphrase
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.local import LocalStore

from . import kill_child

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="workers are forked")

_HANGS = 120.0  # seconds of silence
# The change that a round's worker is killed in; what it does besides; and how many seconds after the change began it is
# killed at most: about as long as such a change takes. A change of keys is mostly key derivation, before anything is
# written.
KINDS: dict[str, tuple[list[str], float]] = {
    "save": (["save"], 0.02),
    "correct": (["save", "correct", "correct"], 0.02),
    "forget": (["save", "save", "forget"], 0.02),
    "passphrase": (["passphrase", "passphrase", "save"], 0.12),
    "rotate": (["rotate", "rotate", "correct", "forget"], 0.12),
}
_MOST_ROUNDS = 60  # for one kind, until a kill has met it at work
_SEED = "KILL_SEED"  # a variable of the environment: the seed of a run whose choices are to be made again


class Workers:
    """Starts workers one after the other and listens to them."""

    def __init__(self) -> None:
        self._parent = subprocess.Popen(
            [sys.executable, kill_child.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self._parent.stdin is not None and self._parent.stdout is not None
        self._stdin, self._stdout = self._parent.stdin, self._parent.stdout.fileno()
        self._lines: list[dict[str, Any]] = []
        self._buffer = b""

    def start(self, **command: Any) -> int:
        self._stdin.write(json.dumps(command).encode() + b"\n")
        self._stdin.flush()
        said = self.next()
        assert said is not None
        return int(said["pid"])

    def next(self, deadline: float | None = None) -> dict[str, Any] | None:
        """What is said next; None at the deadline (of `time.monotonic`)."""
        while not self._lines:
            left = _HANGS if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([self._stdout], [], [], left)[0]:
                assert deadline is not None, "the worker hangs"
                return None
            piece = os.read(self._stdout, 65_536)
            assert piece, "the workers' parent ended"
            *whole, self._buffer = (self._buffer + piece).split(b"\n")
            self._lines += map(json.loads, whole)
        return self._lines.pop(0)

    def close(self) -> None:
        self._stdin.close()
        self._parent.wait()
        assert self._parent.stdout is not None
        self._parent.stdout.close()


class Expected:
    """What the vault must hold: changed by what was acknowledged, and by what is found of what was not."""

    def __init__(self, passphrase: str) -> None:
        self.passphrase = passphrase
        self.texts: dict[str, list[str]] = {}  # by id, the earliest first
        self.forgotten: set[str] = set()
        self.doing: dict[str, Any] | None = None

    def hear(self, said: dict[str, Any]) -> None:
        if "doing" in said:
            self.doing = said
        elif "done" in said:
            self.doing = None
            self._apply(said["done"], said)

    def check(self, data_dir: Path) -> None:
        """After a kill. The one change that was under way is there whole, or not at all."""
        doing, self.doing = self.doing, None
        self._find_passphrase(data_dir, doing)
        with closing(kill_child.open_service(data_dir, self.passphrase)) as service, service.vault() as vault:
            assert vault.verdict is None and vault.damaged == {}
            found = {
                memory.id: [*(each.text for each in reversed(vault.history(memory.id))), memory.text]
                for memory in vault.memories
            }
            assert all(vault.revision_of(memory_id)[1] for memory_id in self.forgotten)
        if found != self.texts and doing is not None:
            self._apply(doing["doing"], {"id": next(iter(found.keys() - self.texts.keys()), ""), **doing})
        assert found == self.texts

    def _apply(self, kind: str, said: dict[str, Any]) -> None:
        if kind == "save":
            self.texts[said["id"]] = [said["text"]]
        elif kind == "correct":
            self.texts[said["id"]].append(said["text"])
        elif kind == "forget":
            del self.texts[said["id"]]
            self.forgotten.add(said["id"])
        else:
            self.passphrase = said["passphrase"]

    def _find_passphrase(self, data_dir: Path, doing: dict[str, Any] | None) -> None:
        known = [self.passphrase]
        if doing is not None and "passphrase" in doing:
            known.append(doing["passphrase"])
        with closing(LocalStore(Settings(data_dir=data_dir).vault_path)) as store:
            record = store.account()
        keys = KeySet.parse(record.wraps, record.previous_keys, record.account_id)
        opening = [passphrase for passphrase in known if _opens(keys, passphrase)]
        assert len(opening) == 1, f"{len(opening)} of {len(known)} passphrases open the vault"
        self.passphrase = opening[0]


@pytest.fixture
def workers() -> Iterator[Workers]:
    workers = Workers()
    yield workers
    workers.close()


def test_a_process_killed_at_any_point_loses_nothing_acknowledged(workers: Workers, tmp_path: Path, full: bool) -> None:
    data_dir = tmp_path / "data"
    expected = Expected("the first passphrase")
    with closing(kill_child.open_service(data_dir, expected.passphrase)) as service:
        service.open()
    seed = int(os.environ.get(_SEED) or random.SystemRandom().randrange(10**9))
    print(f"{_SEED}={seed} makes the same choices; when the kills come is the machine's")  # noqa: T201
    choose = random.Random(seed)
    rounds, tried, killed_at_work = 60 if full else 6, Counter[str](), Counter[str]()
    for number, kind in enumerate(cycle(KINDS)):
        if all(tried[each] >= (rounds if killed_at_work[each] else _MOST_ROUNDS) for each in KINDS):
            break
        tried[kind] += 1
        kinds, longest = KINDS[kind]
        pid = workers.start(data_dir=str(data_dir), passphrase=expected.passphrase, kinds=kinds, seed=seed + number)
        for _ in range(choose.randint(1, 3)):
            while (said := workers.next() or {}).get("doing") != kind:
                assert "dead" not in said, "the worker failed"
                expected.hear(said)
            expected.hear(said)
        deadline = time.monotonic() + choose.uniform(0, longest)
        while (heard := workers.next(deadline)) is not None:
            expected.hear(heard)
        os.kill(pid, signal.SIGKILL)
        while "dead" not in (said := workers.next() or {}):
            expected.hear(said)
        assert said["dead"] == -signal.SIGKILL
        killed_at_work[kind] += expected.doing is not None and expected.doing["doing"] == kind
        expected.check(data_dir)
    assert all(killed_at_work[kind] for kind in KINDS), (killed_at_work, tried)


def _opens(keys: KeySet, passphrase: str) -> bool:
    try:
        keys.open(passphrase)
    except WrongPassphrase:
        return False
    return True
