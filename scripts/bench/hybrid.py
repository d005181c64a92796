"""What searching by meaning costs: starting the companion, its answers, its memory, and a first start without vectors.

    python scripts/bench/hybrid.py [--sizes 10000 100000] [--queries 200] [--runs 20] [--seconds 30]

Made-up memories of about 20 words (corpus.py) in a vault with the key derivation every vault has, and the model that
is in model/. Embedding 100,000 would take the bench a long while: the vectors are those of 1,000 memories, with a
little noise, so that they are as far from a query as real ones.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from corpus import memories, queries
from machine import describe
from numpy.typing import NDArray
from stdio_client import StdioClient, environment

from squirrel_mcp import opening
from squirrel_mcp.settings import Settings
from squirrel_mcp.vault import Vault
from squirrel_mcp_embeddings import edition
from squirrel_mcp_embeddings.memory_text import text_of
from squirrel_mcp_embeddings.vector_file import Rows

_PASSPHRASE = "a passphrase for the bench"
_BASE = [sys.executable, "-c", "from squirrel_mcp.cli import main; main()"]
_COMPANION = [sys.executable, "-c", "from squirrel_mcp_embeddings.cli import main; main()"]
_FEW = 1_000
_NOISE = 0.5  # length, of a vector of length 1
_POLL = 0.01  # seconds between two questions whether the model is there
_TARGETS = {
    "spawn to a hybrid answer, s": ("2 (1,000)",),
    "search_memory by meaning, p50 ms": ("12", "40"),
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--runs", type=int, default=20, help="starts for each of the two commands")
    parser.add_argument("--seconds", type=float, default=30, help="how long to look on while the largest is embedded")
    arguments = parser.parse_args()

    print(f"{describe()}\n")
    _print_initialize(arguments.runs)
    sizes = [_FEW, *arguments.sizes]
    with tempfile.TemporaryDirectory() as folder:
        columns = []
        for size in sizes:
            bench = _Bench(Path(folder) / str(size), size)
            columns.append(bench.measure(arguments.queries))
        print(f"\n{'hybrid, through the server':<42}" + "".join(f"{size:>12,}" for size in sizes) + f"{'targets':>20}")
        for row in columns[0]:
            targets = " / ".join(_TARGETS.get(row, ()))
            print(f"{row:<42}" + "".join(f"{column[row]:>12}" for column in columns) + f"{targets:>20}")
        bench.print_first_start(arguments.seconds)


def _print_initialize(runs: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # No passphrase: opening begins after the answer and would only disturb the next run.
        environ = environment(Path(folder) / "data")
        commands = {"squirrel-mcp": _BASE, "squirrel-mcp-embeddings": _COMPANION}
        times: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(runs + 1):
            for name, command in commands.items():
                began = time.perf_counter()
                with StdioClient(command, environ, stderr=subprocess.DEVNULL) as client:
                    client.initialize()
                    seconds = time.perf_counter() - began
                if turn:  # the first turn compiles and warms the disk cache
                    times[name].append(seconds)
    print(f"{'spawn to initialize, ms':<28}{'min':>8}{'median':>8}")
    for name, each in times.items():
        print(f"{name:<28}{min(each) * 1e3:>8.0f}{statistics.median(each) * 1e3:>8.0f}")
    base, companion = times.values()
    ratios = min(companion) / min(base), statistics.median(companion) / statistics.median(base)
    print(f"{'ratio (at most 1.1)':<28}{ratios[0]:>8.2f}{ratios[1]:>8.2f}")


class _Bench:
    """A vault of `size` memories below `home`, with a vector for each."""

    def __init__(self, home: Path, size: int) -> None:
        cache_dir = home / "cache"
        self._settings = Settings(data_dir=home / "data", passphrase=_PASSPHRASE, cache_dir=cache_dir)
        self._environ = environment(
            home / "data", SQUIRREL_PASSPHRASE=_PASSPHRASE, SQUIRREL_MEMORY_CACHE_DIR=str(cache_dir)
        )
        with self._vault() as vault:
            vault.put_revisions(list(memories(size)))
            embedder = edition.load_embedder(self._settings)
            some = [
                vector for vector in embedder.embed([text_of(each) for each in memories(_FEW)]) if vector is not None
            ]
            embedder.close()
            file = edition.vector_file(self._settings, vault, embedder.model)
            ids = [bytes.fromhex(memory.id) for memory in vault.memories]
            id_bytes = np.frombuffer(b"".join(ids), np.uint8).reshape(-1, 16)
            file.rewrite(Rows(id_bytes, np.ones(size, np.uint64), _varied(np.array(some), size)))
            self._file = file.path

    def measure(self, asked: int) -> dict[str, str]:
        starts = [self._to_answer() for _ in range(3)]
        with self._client() as client:
            client.initialize()
            self._wait_until_hybrid(client)
            before = client.processor()
            times = [_time(client, "search_memory", query=text) for text in queries(asked, seed=2)]
            processor = (client.processor() - before) / asked
            near = [_time(client, "search_memory", query=text, nearMisses=True) for text in queries(asked, seed=3)]
            saves, after = [], []
            for number, text in enumerate(queries(30, seed=4)):
                saves.append(_time(client, "save_memory", text=f"Saved {number}: {text}"))
                after.append(_time(client, "search_memory", query=text))
            used, most = client.resident()
        return {
            "spawn to a hybrid answer, s": f"{statistics.median(starts):.2f}",
            "search_memory by meaning, p50 ms": f"{statistics.median(times) * 1e3:.1f}",
            "search_memory by meaning, p95 ms": f"{sorted(times)[int(asked * 0.95)] * 1e3:.1f}",
            "    processor ms": f"{processor * 1e3:.1f}",
            "with near misses, p50 ms": f"{statistics.median(near) * 1e3:.1f}",
            "save_memory, p50 ms": f"{statistics.median(saves) * 1e3:.1f}",
            "first search after one save, p50 ms": f"{statistics.median(after) * 1e3:.1f}",
            "resident memory, MB": f"{used / 1e6:.0f}",
            "resident memory at most, MB": f"{most / 1e6:.0f}",
        }

    def print_first_start(self, seconds: float) -> None:
        """What searches answer while nothing has a vector yet, for the first `seconds` of the process."""
        self._file.unlink()
        print("\nfirst start without a vector: what a search answers")
        times: list[float] = []
        said = ""
        began = time.perf_counter()
        with self._client() as client:
            client.initialize()
            for text in queries(100_000, seed=5):
                at = time.perf_counter()
                if at - began > seconds:
                    break
                answer = client.call("search_memory", query=text)
                times.append(time.perf_counter() - at)
                kind = f"{answer['ranking']}: {answer.get('note', '')}".translate(str.maketrans("", "", "0123456789,"))
                if kind != said:
                    said, after, hits = kind, time.perf_counter() - began, len(answer["hits"])
                    print(f"  after {after:5.2f} s  {answer['ranking']}, {hits} hits; {answer.get('note', '')}")
                time.sleep(0.2)
            embedded = client.call("memory_status")["embedded"]
            _, most = client.resident()
        p50, longest = statistics.median(times[1:]) * 1e3, max(times[1:]) * 1e3
        print(f"  searches meanwhile: p50 {p50:.0f} ms, longest {longest:.0f} ms")
        print(f"  embedded after {seconds:.0f} s: {embedded:,}; resident memory at most, MB: {most / 1e6:.0f}")

    def _to_answer(self) -> float:
        began = time.perf_counter()
        with self._client() as client:
            client.initialize()
            self._wait_until_hybrid(client)
            return time.perf_counter() - began

    def _wait_until_hybrid(self, client: StdioClient) -> None:
        while client.call("search_memory", query="anything at all")["ranking"] != "hybrid":
            time.sleep(_POLL)

    def _client(self) -> StdioClient:
        return StdioClient(_COMPANION, self._environ, stderr=subprocess.DEVNULL)

    @contextmanager
    def _vault(self) -> Iterator[Vault]:
        vault = opening.open_vault(self._settings, opening.from_settings(self._settings))
        try:
            yield vault
        finally:
            vault.close()


def _varied(vectors: NDArray[np.float32], count: int) -> NDArray[np.float16]:
    """(count, dimension), each of length 1 and near one of `vectors`, which come in turn."""
    random = np.random.default_rng(1)
    dimension = vectors.shape[1]
    made = np.empty((count, dimension), np.float16)
    for start in range(0, count, len(vectors)):
        part = vectors[: count - start]
        noise = random.standard_normal(part.shape, np.float32) * np.float32(_NOISE / dimension**0.5)
        varied = part + noise
        made[start : start + len(part)] = varied / np.linalg.norm(varied, axis=1, keepdims=True)
    return made


def _time(client: StdioClient, tool: str, **arguments: Any) -> float:
    began = time.perf_counter()
    client.call(tool, **arguments)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
