"""Works on a vault until it is killed, and says before and after each change what it does.

Run as a program it is the parent of such workers: it loads everything once and forks one for each line on stdin,
`{"data_dir", "passphrase", "kinds", "seed"}`. On stdout, one JSON object a line: `{"pid"}`, `{"doing", ...}`,
`{"done", ...}`, and `{"dead"}` once the worker is gone. A line is one write, so none is ever torn.
"""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path
from typing import Any

from squirrel_mcp.crypto import kdf
from squirrel_mcp.memory import Changes, Draft
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.service import MemoryService
from squirrel_mcp.settings import Settings

CHEAP = kdf.Argon2id(time=2, memory_kib=19_456, lanes=1)


def open_service(data_dir: Path, passphrase: str) -> MemoryService:
    """A service whose key derivation is the cheapest that is allowed."""
    return MemoryService(Settings(data_dir=data_dir), unlock=Unlocker(lambda: passphrase), parameters=CHEAP)


def _report(**fields: Any) -> None:
    os.write(1, json.dumps(fields).encode() + b"\n")


def _work(data_dir: str, passphrase: str, kinds: list[str], seed: int) -> None:
    choose = random.Random(seed)
    service = open_service(Path(data_dir), passphrase)
    service.open()
    number = 0
    while True:
        number += 1
        kind, words = choose.choice(kinds), f"number {number} of round {seed}"
        with service.vault() as vault:
            ids = sorted(memory.id for memory in vault.memories)
        if kind == "save" or not ids:
            _report(doing="save", text=words)
            memory = service.save(Draft(words)).outcome.memory
            assert memory is not None
            _report(done="save", text=words, id=memory.id)
        elif kind in ("correct", "forget"):
            chosen = choose.choice(ids)
            _report(doing=kind, id=chosen, text=words)
            if kind == "correct":
                service.correct(chosen, Changes(text=words))
            else:
                service.forget(chosen)
            _report(done=kind, id=chosen, text=words)
        else:
            _report(doing=kind, passphrase=words)
            with service.vault() as vault:
                if kind == "rotate":
                    vault.rotate(words, None)
                else:
                    vault.change_passphrase(words)
            _report(done=kind, passphrase=words)


def main() -> None:
    """Until stdin ends."""
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            try:
                _work(**json.loads(line))
            finally:
                os._exit(1)
        _report(pid=pid)
        _, status = os.waitpid(pid, 0)
        _report(dead=os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
