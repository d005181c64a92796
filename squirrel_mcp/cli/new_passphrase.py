"""Where a new passphrase comes from, and where it has to go once it is valid."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import click

from squirrel_mcp import passphrase
from squirrel_mcp.cli import asking
from squirrel_mcp.cli.output import show_json
from squirrel_mcp.crypto import kdf
from squirrel_mcp.errors import InvalidInput, NewPassphraseRefused, PassphraseRefused
from squirrel_mcp.settings import Settings

file_option = click.option(
    "--new-passphrase-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Holds the new passphrase; without it, it is asked for twice.",
)


def get(settings: Settings, file: Path | None) -> str:
    """From the file, or typed twice; checked for length."""
    if file is not None:
        try:
            chosen = passphrase.read(Settings(data_dir=settings.data_dir, passphrase_file=file))
        except PassphraseRefused as error:
            raise NewPassphraseRefused(str(error)) from None
        kdf.check_new(chosen)
        return chosen
    if not asking.can_ask():
        raise InvalidInput("new passphrase", "There is nobody to ask: name a file as --new-passphrase-file.")
    return asking.new_passphrase()


class Handed(NamedTuple):
    """in_keyring: whether the keyring had the old one and has the new one now. left: what is left to the person."""

    in_keyring: bool
    left: str


def hand_over(settings: Settings, chosen: str) -> Handed:
    """Put a new passphrase, which is valid already, where this program finds it, as far as that can be done."""
    kept = passphrase.is_in_keyring(settings) and passphrase.keep_in_keyring(settings, chosen)
    if settings.passphrase is not None:
        left = "SQUIRREL_PASSPHRASE holds the old one: change it here and in the configuration of your clients."
    elif settings.passphrase_file is not None:
        left = f"{settings.passphrase_file} holds the old one: put the new one there."
    elif settings.passphrase_command is not None:
        left = "Make SQUIRREL_PASSPHRASE_COMMAND print the new one."
    elif kept:
        left = ""
    else:
        left = "Put it where the configuration of your clients takes it from."
    return Handed(kept, left)


def tell(done: str, fields: dict[str, Any], handed: Handed | None, as_json: bool) -> None:
    """Say what was done and what is left; `handed` is None where the passphrase stayed the same."""
    kept, left = handed or Handed(False, "")
    if as_json:
        show_json({**fields, "keyringUpdated": kept, "toDo": left})
        return
    click.echo(done)
    if kept:
        click.echo("The keyring holds the new passphrase.")
    if left:
        asking.say(left)
    if handed:
        asking.say("A server that runs goes on showing memories and saves again once it has the new passphrase.")
