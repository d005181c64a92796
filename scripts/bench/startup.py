"""How long a client waits for the first answer: spawn to `initialize`, against a bare MCPServer with one tool.

    python scripts/bench/startup.py [--runs 20]

The two take turns in the same run, so that whatever else the machine does falls on both.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from machine import describe
from stdio_client import StdioClient, environment

BARE = """
from mcp.server import MCPServer

mcp = MCPServer("bare")


@mcp.tool()
def echo(text: str) -> str:
    return text


mcp.run()
"""
OURS = "from squirrel_mcp.cli import main; main()"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    arguments = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        bare = Path(folder) / "bare.py"
        bare.write_text(BARE, encoding="utf-8")
        commands = {"a bare MCPServer": [sys.executable, str(bare)], "squirrel-mcp": [sys.executable, "-c", OURS]}
        # No passphrase: opening begins after the answer and would only disturb the next run.
        environ = environment(Path(folder) / "data")
        times: dict[str, list[float]] = {name: [] for name in commands}
        for turn in range(arguments.runs + 1):
            for name, command in commands.items():
                seconds = _to_initialize(command, environ)
                if turn:  # the first turn compiles and warms the disk cache
                    times[name].append(seconds)

    print(f"{describe()}\n")
    print(f"{'spawn to initialize, ms':<28}{'min':>8}{'median':>8}")
    for name, seconds_each in times.items():
        print(f"{name:<28}{min(seconds_each) * 1e3:>8.0f}{statistics.median(seconds_each) * 1e3:>8.0f}")
    peer, own = times.values()
    ratios = min(own) / min(peer), statistics.median(own) / statistics.median(peer)
    print(f"{'ratio (at most 1.25)':<28}{ratios[0]:>8.2f}{ratios[1]:>8.2f}")


def _to_initialize(command: list[str], environ: dict[str, str]) -> float:
    began = time.perf_counter()
    with StdioClient(command, environ, stderr=subprocess.DEVNULL) as client:
        client.initialize()
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
