"""The command `squirrel-mcp-embeddings`: the base's server and commands, with search by meaning."""

from __future__ import annotations

from squirrel_mcp import cli
from squirrel_mcp_embeddings.edition import COMPANION


def main() -> None:
    """The entry point."""
    cli.main(COMPANION)
