"""Results as people and programs get them: colours on a terminal, tabs in a pipe, JSON on request."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import click

from sqmd.escaping import visible_line


def on_terminal() -> bool:
    return sys.stdout.isatty()


def show_json(value: Any) -> None:
    """ASCII only, so that no console misreads it."""
    click.echo(json.dumps(value, indent=2 if on_terminal() else None))


def show_rows(rows: Sequence[Sequence[str]], *, head: Sequence[str] = ()) -> None:
    """A table, or one line for each row with tabs between its cells and no head."""
    if not on_terminal():
        for row in rows:
            click.echo("\t".join(map(visible_line, row)))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, show_header=bool(head), padding=(0, 2, 0, 0), header_style="bold")
    for number in range(max(map(len, rows), default=0)):
        table.add_column(head[number] if head else "", overflow="fold", style="" if number or head else "bold")
    for row in rows:
        table.add_row(*(Text(visible_line(cell)) for cell in row))
    Console(file=sys.stdout, highlight=False).print(table)


def local_time(seconds: float) -> str:
    """A moment as people read it, in their zone."""
    return datetime.fromtimestamp(seconds).isoformat(" ", "seconds")
