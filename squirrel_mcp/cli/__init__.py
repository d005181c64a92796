"""The command line. Without arguments it is the stdio server, which nothing of this package may slow down."""

from __future__ import annotations

import sys


def main() -> None:
    """The entry point `squirrel-mcp`."""
    if len(sys.argv) > 1:
        from squirrel_mcp.cli.app import run

        sys.exit(run(sys.argv[1:]))
    from squirrel_mcp.mcp_server.lifecycle import main as serve

    serve()
