"""The companion's vector file: reading all of it, adding to it, writing it anew.

    python scripts/bench/vector_file.py [--sizes 10000 100000] [--appends 50]

Vectors of 384 dimensions, made up; the file is on the disk that holds the folder for temporary files. Reading is
from the system's cache, as after a start that read the vault.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import describe

from squirrel_mcp.crypto.key_set import KeyRing
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp_embeddings.vector_file import Rows, VectorFile

_DIMENSION = 384
_COUNTS = Path("/proc/self/io")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000])
    parser.add_argument("--appends", type=int, default=50)
    arguments = parser.parse_args()

    columns = [_measure(size, arguments.appends) for size in arguments.sizes]
    print(f"{describe()}\n")
    print(f"{'vector file':<52}" + "".join(f"{size:>14,}" for size in arguments.sizes) + f"{'target':>14}")
    for row, target in columns[0]:
        print(f"{row:<52}" + "".join(f"{column[row, target]:>14}" for column in columns) + f"{target:>14}")


def _measure(size: int, appends: int) -> dict[tuple[str, str], str]:
    ring = KeyRing((), Dek.generate())
    with tempfile.TemporaryDirectory() as folder:

        def handle() -> VectorFile:
            return VectorFile(Path(folder), bytes(16), lambda: ring, "bench", bytes(32), _DIMENSION, 1)

        mine, rows = handle(), _rows(size)
        began = time.perf_counter()
        mine.rewrite(rows)
        rewrite = time.perf_counter() - began
        file_size = mine.path.stat().st_size

        reads = []
        for _ in range(5):
            began = time.perf_counter()
            found = handle().load()
            reads.append(time.perf_counter() - began)
            assert found.size == size

        one, times, before = _rows(1), [], _written()
        for _ in range(appends):
            began = time.perf_counter()
            mine.append(one)
            times.append(time.perf_counter() - began)
        written = (_written() - before) / appends
        assert handle().load().size == size + appends
    return {
        ("size, MB", ""): f"{file_size / 1e6:.1f}",
        ("read, s", "0.7 (100,000)"): f"{statistics.median(reads):.3f}",
        ("write anew, s", ""): f"{rewrite:.3f}",
        ("append one, fsync included, p50 ms", ""): f"{statistics.median(times) * 1e3:.2f}",
        ("    written an append, KB", "64 (10,000)"): f"{written / 1e3:.2f}" if _COUNTS.exists() else "unknown",
    }


def _rows(count: int) -> Rows:
    random = np.random.default_rng(1)
    vectors = random.standard_normal((count, _DIMENSION), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    ids = random.integers(0, 256, (count, 16), np.uint8)
    return Rows(ids, np.ones(count, np.uint64), vectors.astype(np.float16))


def _written() -> int:
    """Bytes that this process has given to the system to write, files and all else."""
    if not _COUNTS.exists():
        return 0
    return int(dict(line.split(": ") for line in _COUNTS.read_text().splitlines())["wchar"])


if __name__ == "__main__":
    main()
