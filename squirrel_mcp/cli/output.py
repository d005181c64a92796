"""Results as people and programs get them: tables and colours on a terminal, tabs in a pipe, JSON on request."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import click

from squirrel_mcp.escaping import escape

if TYPE_CHECKING:
    from rich.table import Table

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")


class Column(NamedTuple):
    """`style` is rich's; a column with `long` takes the room that is left and breaks its lines."""

    title: str
    style: str = ""
    long: bool = False


def on_terminal() -> bool:
    return sys.stdout.isatty()


def show_json(value: Any) -> None:
    """ASCII only, so that no console misreads it."""
    click.echo(json.dumps(value, indent=2 if on_terminal() else None))


def show_table(columns: Sequence[Column], rows: Sequence[Sequence[str]], title: str = "") -> None:
    """A table with a head, or one line per row with tabs between the cells and no head."""
    if not on_terminal():
        for row in rows:
            click.echo("\t".join(map(one_line, row)))
        return
    from rich.console import Console

    Console(file=sys.stdout, highlight=False).print(_table(columns, rows, title))


def show_boxed(title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """A table for people to read, in a pipe too, where it is 100 characters wide and without colours."""
    from rich.console import Console

    if on_terminal():
        Console(file=sys.stdout, highlight=False).print(_table(columns, rows, title))
        return
    text = io.StringIO()
    Console(file=text, highlight=False, width=100, color_system=None).print(_table(columns, rows, title))
    click.echo("\n".join(line.rstrip() for line in text.getvalue().splitlines()))


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]], title: str) -> Table:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    lines = box.SIMPLE_HEAD if (sys.stdout.encoding or "").lower().startswith("utf") else box.ASCII
    table = Table(title=title or None, title_justify="left", box=lines, show_header=any(c.title for c in columns))
    for column in columns:
        ratio = 1 if column.long else None
        table.add_column(column.title, style=column.style, no_wrap=not column.long, overflow="fold", ratio=ratio)
    for row in rows:
        cells = [escape(cell) if column.long else one_line(cell) for column, cell in zip(columns, row, strict=True)]
        # Text, not str: square brackets in a memory are no markup.
        table.add_row(*map(Text, cells))
    return table


def show_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Names and values; those without a value are left out."""
    show_table((Column("", "bold"), Column("", long=True)), [fact for fact in facts if fact[1]])


def one_line(text: str) -> str:
    """A cell: no line ends, no tabs, nothing that acts on a terminal."""
    return escape(" ".join(text.split()))


def local_time(moment: datetime) -> str:
    """As people read it, in their zone; in UTC, which it says, where their calendar would begin or end before it."""
    try:
        shown, zone = moment.astimezone(), ""
    except (OverflowError, ValueError, OSError):
        shown, zone = moment.astimezone(UTC), " UTC"
    # isoformat, unlike strftime, pads years below 1000 on every platform.
    return shown.replace(tzinfo=None).isoformat(" ", "minutes") + zone


class Told(Protocol):
    """Takes how much is done, of how much."""

    def __call__(self, done: int, total: int) -> None: ...


@contextmanager
def progress(label: str) -> Iterator[Told]:
    """A bar on stderr where that is a terminal, and silence elsewhere."""
    if not sys.stderr.isatty():
        yield _silent
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(file=sys.stderr), transient=True) as bar:
        task = bar.add_task(label, total=None)

        def tell(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield tell


def _silent(done: int, total: int) -> None:
    pass
