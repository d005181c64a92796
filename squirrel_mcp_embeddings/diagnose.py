"""`python -m squirrel_mcp_embeddings.diagnose queries.json`: why a memory was not found (docs/embeddings.md).

It goes the way of the server through unlocking, model and ranking. The vectors that this makes go to a folder of its
own, which is deleted at the end, however that comes about; the companion's file is neither read nor written.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from squirrel_mcp.cli import app, asking
from squirrel_mcp.cli.output import Column, on_terminal, show_table
from squirrel_mcp.cli.session import PassphraseSource, open_vault
from squirrel_mcp.errors import InvalidInput
from squirrel_mcp.settings import Settings
from squirrel_mcp.vault import Vault, utc_now
from squirrel_mcp_embeddings.edition import COMPANION, load_embedder, vector_file
from squirrel_mcp_embeddings.errors import EmbeddingFailed

if TYPE_CHECKING:
    from squirrel_mcp_embeddings.diagnosis import Finding
    from squirrel_mcp_embeddings.embedder import Embedder
    from squirrel_mcp_embeddings.hybrid import HybridRanker

NAME = "python -m squirrel_mcp_embeddings.diagnose"
_ENDING = ("SIGTERM", "SIGHUP")
_SHORT_ID = 8  # digits on a terminal: the other commands take them for the memory
_LOOK_SECONDS = 0.5  # a wait without an end could not be interrupted on Windows
_COLUMNS = (
    Column("memory"),
    Column("rank"),
    Column("by meaning"),
    Column("cosine"),
    Column("under floor"),
    Column("query", long=True),
)


@click.command()
@click.argument("queries", type=click.Path(dir_okay=False, path_type=Path))
def diagnose(queries: Path) -> None:
    """Tell where the memories that you expected stand in the answers to your queries.

    QUERIES is a file: [{"query": "...", "expect": "..."}, ...], where `expect` is a piece of the wanted memory's text,
    entity or tags. Of memories only ids, ranks and scores are printed.
    """
    from squirrel_mcp_embeddings import diagnosis

    with open(queries, "rb") as file:
        wishes = diagnosis.parse(file.read(diagnosis.MAX_BYTES + 1))
    settings = _with_key(Settings.read())
    embedder = load_embedder(settings)
    try:
        with (
            open_vault(settings, PassphraseSource(settings), may_be_offline=True) as vault,
            _ranker(settings, vault, embedder) as ranker,
        ):
            model, memories = embedder.model, list(vault.memories)
            asking.say(f"{model.id}, floor {model.min_similarity:.3f}: {ranker.embedded:,} memories have a vector.")
            findings = [diagnosis.find(ranker, memories, wish, utc_now()) for wish in wishes]
            if not ranker.model:
                raise EmbeddingFailed("The runtime of the model broke down; nothing was found out.")
    finally:
        embedder.close()
    show_table(_COLUMNS, [_row(finding, model.min_similarity) for finding in findings])


def main() -> None:
    """The entry point. A signal that asks for an end is taken like Ctrl-C, so that the vectors go."""
    _on_signals(_ENDING, signal.default_int_handler)
    sys.exit(app.run(sys.argv[1:], COMPANION, diagnose, NAME))


def _with_key(settings: Settings) -> Settings:
    if settings.api_base_url is None or settings.api_key is not None or not asking.can_ask():
        return settings
    key = asking.hidden("API key of this device").strip()
    if not key:
        raise InvalidInput("key", "No key was typed.")
    return replace(settings, api_key=key)


@contextmanager
def _ranker(settings: Settings, vault: Vault, embedder: Embedder) -> Iterator[HybridRanker]:
    """The server's ranker over the vault, with a vector for every memory that can have one."""
    from squirrel_mcp_embeddings.background import Background
    from squirrel_mcp_embeddings.hybrid import HybridRanker

    with TemporaryDirectory(prefix="squirrel-diagnose-") as folder:
        mine = replace(settings, cache_dir=Path(folder))
        ranker = HybridRanker(patient=True)
        background = ranker.background = Background(
            ranker,
            lambda: embedder,
            lambda model: vector_file(mine, vault, model),
            asking.say,
            announce=False,
        )
        try:
            ranker.join(embedder)
            asking.say(f"Making the vectors of {len(vault.memories):,} memories.")
            vault.add_listener(ranker)
            background.begin()
            while ranker.model and not ranker.wait(_LOOK_SECONDS):
                pass
            yield ranker
        finally:
            # Nothing may come between from here on: there are vectors to delete, and nobody may write more of them.
            _on_signals(("SIGINT", *_ENDING), signal.SIG_IGN)
            ranker.close()


def _on_signals(names: Iterable[str], handler: Any) -> None:
    for name in names:
        if hasattr(signal, name):  # Windows has no SIGHUP
            signal.signal(getattr(signal, name), handler)


def _row(finding: Finding, floor: float) -> list[str]:
    if finding.fitting != 1:
        said = f"{finding.fitting:,} memories fit" if finding.fitting else "no memory fits"
        return ["-", said, "-", "-", "-", finding.query]
    rank = "not found"
    if finding.rank is not None:
        rank = f"match {finding.rank:,}"
    elif finding.near_miss is not None:
        rank = f"near miss {finding.near_miss:,}"
    return [
        finding.memory_id[:_SHORT_ID] if on_terminal() else finding.memory_id,
        rank,
        "-" if finding.by_meaning is None else f"{finding.by_meaning:,}",
        _score(finding.cosine),
        _score(finding.below(floor)),
        finding.query,
    ]


def _score(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


if __name__ == "__main__":
    main()
