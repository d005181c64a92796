"""Asking the index: for a person, and for a prompt."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sqmd.cli.exits import Exit
from sqmd.cli.options import config_option, json_option, loaded, opened
from sqmd.cli.output import on_terminal, show_json
from sqmd.cli.snippets import snippet
from sqmd.escaping import visible, visible_line
from sqmd.stderr import say

if TYPE_CHECKING:
    from sqmd.search.results import Answer, Mode, Result

_MODES = ("hybrid", "vector", "fts")  # search/results.py has them, with a test that they are the same


@click.command()
@click.argument("query")
@click.option("--top-k", type=click.IntRange(1, 100), help="How many results; search.default_top_k otherwise.")
@click.option("--mode", type=click.Choice(_MODES), default="hybrid", show_default=True, help="fts: by words alone.")
@click.option("--filter", "path", metavar="TEXT", default="", help="Only files whose path holds this.")
@click.option("--rerank/--no-rerank", default=None, help="Let a cross-encoder order the best.")
@json_option
@config_option
def search(
    query: str, top_k: int | None, mode: Mode, path: str, rerank: bool | None, as_json: bool, config_file: Path | None
) -> int:
    """Search the index, by words and by meaning.

    In a pipe each result is one line: path:lines, breadcrumb, score and snippet, with tabs between them.
    """
    with opened(loaded(config_file).config) as service:
        answer = service.search(query, top_k=top_k, mode=mode, path=path, rerank=rerank)
        pending = service.pending() if mode != "fts" else 0
    if as_json:
        show_json(_as_json(answer))
    else:
        _show(answer)
        if answer.note:
            say(answer.note)
        if not answer.results:
            say("Nothing was found.")
        if pending:
            say(f"{pending:,} passages have no vector yet, and are found by words alone: sqmd index goes on with them.")
    return Exit.OK if answer.results else Exit.INCOMPLETE


@click.command()
@click.argument("query")
@click.option("--max-tokens", type=click.IntRange(1), default=4_000, show_default=True, help="Never more than these.")
@click.option("--filter", "path", metavar="TEXT", default="", help="Only files whose path holds this.")
@config_option
def context(query: str, max_tokens: int, path: str, config_file: Path | None) -> int:
    """Print what a prompt needs to know about QUERY: the best chunks, each with its source."""
    with opened(loaded(config_file).config) as service:
        text = service.context(query, max_tokens=max_tokens, path=path)
    if not text:
        say("Nothing was found, or nothing that fits.")
        return Exit.INCOMPLETE
    click.echo(visible(text) if on_terminal() else text)  # who reads a pipe gets the documents as they are
    return Exit.OK


def _as_json(answer: Answer) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "results": [asdict(result) for result in answer.results],
        "query": answer.query,
        "total": len(answer.results),
        "duration_ms": round(answer.duration_ms, 3),
    }
    return {**shown, "note": answer.note} if answer.note else shown


def _show(answer: Answer) -> None:
    if not on_terminal():
        for result in answer.results:
            click.echo("\t".join((*_facts(result), snippet(result.text_raw, answer.query).text)))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(file=sys.stdout, highlight=False)
    for number, result in enumerate(answer.results):
        place, breadcrumb, score = _facts(result)
        text, matches = snippet(result.text_raw, answer.query)
        shown = Text(text)
        for start, end in matches:
            shown.stylize("bold yellow", start, end)
        if number:
            console.print()
        # Text, not str: square brackets in a document are no markup.
        console.print(Text.assemble((place, "cyan"), "  ", (breadcrumb, "bold"), "  ", (score, "dim")), soft_wrap=True)
        console.print(shown)


def _facts(result: Result) -> tuple[str, str, str]:
    lines = f"{result.line_start}-{result.line_end}"
    return f"{visible_line(result.file_path)}:{lines}", visible_line(result.heading_path), f"{result.score:.4f}"
