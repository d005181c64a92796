"""What an agent waits for: opening, searching, saving, through a real server process.

    python scripts/bench/server_calls.py [--sizes 10000 100000] [--queries 200] [--saves 50]

Made-up memories of about 20 words (corpus.py) in a vault with the key derivation every vault has.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from corpus import memories, queries
from machine import describe
from stdio_client import StdioClient, environment

from squirrel_mcp import opening
from squirrel_mcp.settings import Settings

_PASSPHRASE = "a passphrase for the bench"
_SERVE = [sys.executable, "-c", "from squirrel_mcp.cli import main; main()"]
_TARGETS = {
    "first start: unlock and first sync, s": ("2", "12"),
    "second start, s": ("1.5", "6"),
    "search_memory, p50 ms": ("6", "25"),
    "first search after one save, p50 ms": ("search + 10", ""),
    "save_memory, p50 ms": ("15", "15"),
    "resident memory, MB": ("180", "700"),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--saves", type=int, default=50)
    arguments = parser.parse_args()

    columns = [_measure(size, arguments.queries, arguments.saves) for size in arguments.sizes]
    print(f"{describe()}\n")
    print(f"{'through the server':<42}" + "".join(f"{size:>12,}" for size in arguments.sizes) + f"{'targets':>20}")
    for row in columns[0]:
        targets = " / ".join(filter(None, _TARGETS.get(row, ())))
        print(f"{row:<42}" + "".join(f"{column[row]:>12}" for column in columns) + f"{targets:>20}")


def _measure(size: int, asked: int, saves: int) -> dict[str, str]:
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder) / "data"
        load = _fill(data_dir, size)
        for state in data_dir.glob("state-*.bin"):
            state.unlink()  # as on a device that sees the vault for the first time
        environ = environment(data_dir, SQUIRREL_PASSPHRASE=_PASSPHRASE)
        first, first_processor, _ = _open(environ)
        second, second_processor, resident = _open(environ)
        with StdioClient(_SERVE, environ) as client:
            client.initialize()
            client.call("memory_status")
            before = client.processor()
            searches = [_time(client, "search_memory", query=text) for text in queries(asked, seed=2)]
            search_processor = (client.processor() - before) / asked
            save_times: list[float] = []
            after_save: list[float] = []
            for number, text in enumerate(queries(saves, seed=3)):
                save_times.append(_time(client, "save_memory", text=f"Saved {number}: {text}"))
                after_save.append(_time(client, "search_memory", query=text))
            used, most = client.resident()
        return {
            "loaded by the bench, s": f"{load:.1f}",
            "first start: unlock and first sync, s": f"{first:.2f}",
            "    processor s of it": f"{first_processor:.2f}",
            "second start, s": f"{second:.2f}",
            "    processor s of that": f"{second_processor:.2f}",
            "search_memory, p50 ms": f"{statistics.median(searches) * 1e3:.1f}",
            "search_memory, p95 ms": f"{sorted(searches)[int(asked * 0.95)] * 1e3:.1f}",
            "    processor ms": f"{search_processor * 1e3:.1f}",
            "first search after one save, p50 ms": f"{statistics.median(after_save) * 1e3:.1f}",
            "save_memory, p50 ms": f"{statistics.median(save_times) * 1e3:.1f}",
            "resident memory, MB": f"{used / 1e6:.0f}",
            "resident memory once opened, MB": f"{resident / 1e6:.0f}",
            "resident memory at most, MB": f"{most / 1e6:.0f}",
        }


def _fill(data_dir: Path, size: int) -> float:
    began = time.perf_counter()
    settings = Settings(data_dir=data_dir, passphrase=_PASSPHRASE)
    vault = opening.open_vault(settings, opening.from_settings(settings))
    vault.put_revisions(list(memories(size)))
    vault.close()
    return time.perf_counter() - began


def _open(environ: dict[str, str]) -> tuple[float, float, int]:
    """From the first answer, behind which the vault is opened, to a reply that needs it; resident bytes then.

    In seconds by the clock, and of the processor.
    """
    with StdioClient(_SERVE, environ) as client:
        client.initialize()
        before = client.processor()
        seconds = _time(client, "memory_status")
        return seconds, client.processor() - before, client.resident()[0]


def _time(client: StdioClient, tool: str, **arguments: Any) -> float:
    began = time.perf_counter()
    client.call(tool, **arguments)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
