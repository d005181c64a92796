"""What there is."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import click

from sqmd.cli.exits import Exit
from sqmd.cli.options import config_option, json_option, loaded, opened
from sqmd.cli.output import local_time, show_json, show_rows
from sqmd.stderr import say

_SHOWN_ERRORS = 20


@click.command()
@json_option
@config_option
def status(as_json: bool, config_file: Path | None) -> int:
    """Show the database, how much is in it, and what could not be read."""
    with opened(loaded(config_file).config) as service:
        found = service.status()
    if as_json:
        errors = [{"path": path, "reason": reason} for path, reason in found.errors]
        show_json({**asdict(found), "errors": errors, "watch_dirs": list(map(str, found.watch_dirs))})
        return Exit.OK
    rows = [("database", found.db_path)]
    if found.indexed:
        rows += [
            ("files", f"{found.files:,}"),
            ("chunks", f"{found.chunks:,}"),
            ("chunks with vectors", f"{found.vectors:,}"),
            ("errors", f"{len(found.errors):,}"),
            ("last index", local_time(found.last_index) if found.last_index else "never"),
        ]
    else:
        rows.append(("files", "not indexed yet: run sqmd index --path DIR"))
    rows += [("watch dirs", ", ".join(map(str, found.watch_dirs))), ("embedder", found.embedder)]
    show_rows(rows)
    for path, reason in found.errors[:_SHOWN_ERRORS]:
        show_rows([("error", f"{path}: {reason}")])
    if len(found.errors) > _SHOWN_ERRORS:
        say(f"and {len(found.errors) - _SHOWN_ERRORS} more; --json has all of them.")
    return Exit.OK
