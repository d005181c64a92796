"""Bringing the index up to date, once or from now on."""

from __future__ import annotations

import sys
import threading
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sqmd.cli.exits import Exit
from sqmd.cli.options import config_option, json_option, loaded, opened
from sqmd.cli.output import show_json
from sqmd.errors import InvalidInput
from sqmd.escaping import visible_line
from sqmd.stderr import say

if TYPE_CHECKING:
    from types import TracebackType

    from sqmd.indexer import Summary


@click.command()
@click.option(
    "--path",
    "paths",
    metavar="DIR|FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="What to index; as often as you like. paths.watch_dirs otherwise.",
)
@click.option("--force", is_flag=True, help="Read and embed everything again.")
@click.option("--watch", is_flag=True, help="Go on with what changes, until Ctrl-C.")
@json_option
@config_option
def index(paths: tuple[Path, ...], force: bool, watch: bool, as_json: bool, config_file: Path | None) -> int:
    """Index Markdown: what is new, changed, moved or gone.

    Text comes first and can be searched within seconds; vectors follow. Whenever it is stopped, the next run goes on.
    """
    if watch and as_json:
        raise click.UsageError("--watch does not end, so there is nothing that --json could print.")
    config = loaded(config_file).config
    roots = tuple(map(_absolute, paths)) or config.paths.watch_dirs
    with opened(config) as service:
        with _Bars() as bars:
            try:
                summary = service.index(roots, force=force, progress=bars)
            except KeyboardInterrupt:
                bars.left()
                raise
        if as_json:
            failed = [{"path": path, "reason": reason} for path, reason in summary.failed]
            show_json({**asdict(summary), "failed": failed})
        else:
            click.echo(_told(summary))
        if watch:
            from sqmd.watch import Watcher

            with Watcher(service, roots, say=say, indexed=_report, rescan=True):
                say(f"Watching {', '.join(map(str, roots))}")
                threading.Event().wait()
    return Exit.INCOMPLETE if summary.failed else Exit.OK


def _absolute(path: Path) -> Path:
    from sqmd.config_values import absolute

    try:
        return absolute(path)
    except ValueError as error:
        raise InvalidInput("path", f"--path {path} {error}.") from None


def _told(summary: Summary) -> str:
    counts = ("indexed", "skipped", "moved", "removed")
    return ", ".join([*(f"{getattr(summary, name)} {name}" for name in counts), f"{len(summary.failed)} errors"])


def _report(summary: Summary) -> None:
    if summary.indexed or summary.moved or summary.removed:
        click.echo(f"{datetime.now():%H:%M:%S} {_told(summary)}")


class _Bars:
    """Progress on stderr: bars with rate and time left where that is a terminal, and failed files anywhere."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._tasks: dict[str, Any] = {}
        self._last: dict[str, tuple[int, int]] = {}

    def __enter__(self) -> _Bars:
        if sys.stderr.isatty():
            from rich import progress
            from rich.console import Console

            self._bar = progress.Progress(
                progress.TextColumn("{task.description}"),
                progress.BarColumn(),
                progress.MofNCompleteColumn(),
                _rate_column(),
                progress.TimeRemainingColumn(),
                console=Console(file=sys.stderr, highlight=False),
                transient=True,
            )
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def text(self, done: int, total: int) -> None:
        self._show("files", done, total)

    def vectors(self, done: int, total: int) -> None:
        if "vectors" not in self._tasks:
            self._line("The text can be searched; vectors follow.")
        self._show("vectors", done, total)

    def left(self) -> None:
        """What a run that is stopped leaves to the next one."""
        for what, (done, total) in self._last.items():
            if done < total:
                say(f"{done:,} of {total:,} {what} are done; the next run goes on.")

    def failed(self, path: str, reason: str) -> None:
        line = f"{path}: {reason}"
        if self._bar is None:
            say(line)
        else:
            self._line(visible_line(line))

    def _line(self, line: str) -> None:
        if self._bar is not None:
            from rich.text import Text

            self._bar.console.print(Text(line), soft_wrap=True)

    def _show(self, what: str, done: int, total: int) -> None:
        self._last[what] = (done, total)
        if self._bar is not None:
            if what not in self._tasks:
                self._tasks[what] = self._bar.add_task(what, total=total)
            self._bar.update(self._tasks[what], completed=done, total=total)


def _rate_column() -> Any:
    from rich.progress import ProgressColumn, Task
    from rich.text import Text

    class Rate(ProgressColumn):
        """How many a second."""

        def render(self, task: Task) -> Text:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f}/s" if speed else "", style="dim")

    return Rate()
