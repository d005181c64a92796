"""`passphrase change`."""

from __future__ import annotations

from pathlib import Path

import click

from squirrel_mcp.cli import new_passphrase
from squirrel_mcp.cli.output import json_option
from squirrel_mcp.cli.session import open_vault
from squirrel_mcp.settings import Settings


@click.group()
def passphrase() -> None:
    """Change the passphrase."""


@passphrase.command()
@new_passphrase.file_option
@json_option
def change(new_passphrase_file: Path | None, as_json: bool) -> None:
    """Make a new passphrase the valid one.

    The recovery code stays. Exports and copies of the vault file made before still open with the old passphrase.
    """
    settings = Settings.read()
    with open_vault(settings) as vault:
        chosen = new_passphrase.get(settings, new_passphrase_file)
        vault.change_passphrase(chosen)
    handed = new_passphrase.hand_over(settings, chosen)
    new_passphrase.tell("The passphrase is changed.", {"status": "changed"}, handed, as_json)
