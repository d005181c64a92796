"""How fast texts become vectors: against one by one, what the processor can do, and other libraries; memory of loading.

    python scripts/bench/embedding.py [--rounds 9] [--peers PYTHON... --peer-model FOLDER]

--peers: interpreters that have sentence-transformers or fastembed; FOLDER: all-MiniLM-L6-v2 as its makers publish it.
All take turns in the same run, so that whatever else the machine does falls on all of them. The model of gte-small's
shape has random weights: cost depends on shapes alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from machine import describe
from random_bert import random_bert

from squirrel_mcp_embeddings.embedder import Embedder, load
from squirrel_mcp_embeddings.model_files import LoadedFiles, read
from squirrel_mcp_embeddings.runtime import Session

_TEXTS = 256
_EXPORT = Path(__file__).parents[1] / "export_minilm.py"
# Runs in a process of its own, since a peak is one of the process's whole life.
_LOAD = """
import gc, sys
from pathlib import Path
from squirrel_mcp_embeddings.embedder import load
from squirrel_mcp_embeddings.model_files import LoadedFiles, read

def now(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field + ":"))

model = read(None).model if len(sys.argv) > 1 else None

def files():
    if model is None:
        return read(None)
    weights, tokenizer = (Path(name).read_bytes() for name in sys.argv[1:])
    return LoadedFiles(model, weights, tokenizer)

gc.collect()
before = now("VmRSS")
embedder = load(files())
gc.collect()
print(now("VmHWM") - before, now("VmRSS") - before)
"""


@dataclass(frozen=True)
class _Shape:
    """What decides how much there is to compute."""

    layers: int
    hidden: int
    inner: int

    def operations(self, tokens: list[int]) -> float:
        """Floating-point operations of the matrix products for texts of these many tokens, padding left out."""
        per_token = 2 * (4 * self.hidden**2 + 2 * self.hidden * self.inner)
        attention = 2 * 2 * self.hidden
        return float(self.layers * sum(n * per_token + n * n * attention for n in tokens))


_MINILM = _Shape(6, 384, 1536)
_GTE_SMALL = _Shape(12, 384, 1536)
_VOCABULARY = 30_522


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--peers", nargs="+", default=[], metavar="PYTHON")
    parser.add_argument("--peer-model", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()

    texts = _memories(_TEXTS)
    files = read(None)
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        peers: list[_Peer] = []
        for python in arguments.peers:
            peers.append(stack.enter_context(_Peer(python, texts, _peer_folder(folder, arguments.peer_model, files))))
        print(f"{describe()}\n")
        _table(files.model.id, files, _MINILM, texts, peers, arguments.rounds)
        _memory(len(files.weights))
        made = _random_model(folder, files)
        print()
        _table("gte-small's shape, random weights", made, _GTE_SMALL, texts, [], arguments.rounds)
        _memory(len(made.weights), folder / "random.onnx", folder / "tokenizer.json")


def _table(title: str, files: LoadedFiles, shape: _Shape, texts: list[str], peers: list[_Peer], rounds: int) -> None:
    embedder = load(files)
    # The runtime's own way to use both cores, for comparison.
    spread = Embedder(embedder.model, embedder._tokenizer, Session(files.weights, threads=2))
    contenders: dict[str, Callable[[], float]] = {
        "sgemm": _sgemm,
        "ours": lambda: _time(lambda: embedder.embed(texts)),
        "one by one": lambda: _time(lambda: [embedder.embed([text]) for text in texts]),
        "one by one, two threads each": lambda: _time(lambda: [spread.embed([text]) for text in texts]),
    }
    for peer in peers:
        for name in peer.names:
            contenders[name] = partial(peer.measure, name)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(rounds + 1):
        for name, run in contenders.items():
            once = run()
            if turn:  # the first turn warms up
                seconds[name].append(once)

    operations = shape.operations([embedder.count_tokens(text) for text in texts])
    limit = [operations / rate for rate in seconds.pop("sgemm")]
    ours = seconds["ours"]
    print(f"{title:<42}{'ms a text':>12}{'ours is faster by':>20}")
    for name, taken in seconds.items():
        faster = statistics.median(other / own for other, own in zip(taken, ours, strict=True))
        print(f"{name:<42}{statistics.median(taken) / len(texts) * 1e3:>12.2f}{faster:>20.2f}")
    reached = statistics.median(least / own for least, own in zip(limit, ours, strict=True))
    print(f"{'sgemm, 2 threads':<42}{statistics.median(limit) / len(texts) * 1e3:>12.2f}{reached:>19.0%} reached")
    tokens = statistics.mean(embedder.count_tokens(text) for text in texts)
    print(f"{len(texts)} texts of {tokens:.0f} tokens on average; medians of {rounds} turns")
    embedder.close()
    spread.close()


def _memory(size: int, *paths: Path) -> None:
    """Print what loading takes and keeps, in MB and times the size of the weights."""
    command = [sys.executable, "-c", _LOAD, *map(str, paths)]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=True)
    except subprocess.CalledProcessError:
        print("memory: not measured, this platform has no /proc")
        return
    peak, kept = map(int, result.stdout.split())
    for what, taken in (("peak while loading", peak), ("kept after loading", kept)):
        print(f"{f'{what}, MB and times the file':<42}{taken / 1e6:>12.0f}{taken / size:>20.2f}")


def _sgemm() -> float:
    """Floating-point operations per second of a large matrix product, as many threads as there are cores."""
    n = 2048
    left, right = (np.ones((n, n), np.float32) for _ in range(2))
    return 2 * n**3 / min(_time(lambda: left @ right) for _ in range(3))


def _random_model(folder: Path, files: LoadedFiles) -> LoadedFiles:
    weights, onnx = folder / "random.safetensors", folder / "random.onnx"
    shape = _GTE_SMALL
    weights.write_bytes(
        random_bert(layers=shape.layers, hidden=shape.hidden, inner=shape.inner, vocabulary=_VOCABULARY)
    )
    subprocess.run([sys.executable, str(_EXPORT), str(weights), str(onnx)], check=True)
    (folder / "tokenizer.json").write_bytes(files.tokenizer)
    return LoadedFiles(replace(files.model, id="random"), onnx.read_bytes(), files.tokenizer)


def _peer_folder(folder: Path, published: Path | None, files: LoadedFiles) -> Path:
    """The published model with our ONNX file beside it: fastembed reads that one."""
    if published is None:
        raise SystemExit("--peers needs --peer-model")
    copy = folder / "peer"
    if not copy.exists():
        shutil.copytree(published, copy)
        (copy / "model.onnx").write_bytes(files.weights)
    return copy


class _Peer:
    """A process of embedding_peers.py."""

    def __init__(self, python: str, texts: list[str], folder: Path) -> None:
        listing = folder.parent / "texts.json"
        listing.write_text(json.dumps(texts), encoding="utf-8")
        command = [python, str(Path(__file__).with_name("embedding_peers.py")), str(listing), str(folder)]
        offline = {**os.environ, "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "true"}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=offline
        )
        self.names: list[str] = json.loads(self._answer())

    def __enter__(self) -> _Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def measure(self, name: str) -> float:
        assert self._process.stdin is not None
        print(name, file=self._process.stdin, flush=True)
        return float(self._answer())

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("a peer ended early")
        return line


def _time(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


_WHO = "Ana|My brother|The team|Our landlord|Dr. Weiss|The user|Priya from accounting|The build server".split("|")
_WHAT = (
    "prefers|moved the backup to|cannot eat|is allergic to|renewed|uses|wants to be reminded of|deployed|switched from "
    "Postgres to|asked about|always books|keeps the spare key near"
).split("|")
_WHICH = (
    "oat milk|window seats on trains|the blue notebook|version 2.14 of the parser|the Pi-hole in the attic|peanuts|"
    "short answers without bullet points|the quarterly report|a night train to Vienna|the staging cluster|"
    "dark roast coffee"
).split("|")
_WHEN = (
    "|every Monday|since last spring|before the release in March|because the old one broke|and does not want to "
    "discuss it again|unless the weather is bad|, as agreed with the whole family after the long call about money"
).split("|")


def _memories(count: int) -> list[str]:
    """English sentences of 7 to 50 words, the same in every run; most are short, as memories are."""
    rng = random.Random(1)
    sentences = rng.choices((1, 2, 3), (12, 4, 1), k=count)
    return [
        " ".join(f"{rng.choice(_WHO)} {rng.choice(_WHAT)} {rng.choice(_WHICH)} {rng.choice(_WHEN)}." for _ in range(n))
        for n in sentences
    ]


if __name__ == "__main__":
    main()
