"""The settings: shown with where each comes from, or a file of them to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from sqmd.cli.exits import Exit
from sqmd.cli.options import config_option, json_option, loaded
from sqmd.cli.output import show_json, show_rows
from sqmd.stderr import say


@click.command()
@click.option("--init", "init", metavar="PATH", type=click.Path(path_type=Path), help="Write a file with all defaults.")
@click.option("--force", is_flag=True, help="With --init: write over a file that is there.")
@click.option("--show", is_flag=True, help="The settings in force and where each comes from; so without options.")
@json_option
@config_option
def config(init: Path | None, force: bool, show: bool, as_json: bool, config_file: Path | None) -> int:
    """Show the settings, or write a file of them."""
    if init is not None and show:
        raise click.UsageError("--init and --show exclude each other.")
    if force and init is None:
        raise click.UsageError("--force needs --init PATH.")
    if init is not None and str(init).startswith("-"):
        raise click.UsageError("--init needs a PATH.")
    if init is not None:
        from sqmd.config import write_template

        write_template(init, force)
        if as_json:
            show_json({"file": str(init)})
        else:
            say(f"Written: {init}")
        return Exit.OK
    rows = list(loaded(config_file).rows())
    if as_json:
        show_json({name: {"value": value, "origin": origin} for name, value, origin in rows})
    else:
        show_rows(rows, head=("setting", "value", "comes from"))
    return Exit.OK
