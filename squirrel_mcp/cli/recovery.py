"""`recovery new` and `recovery use`: the second way in."""

from __future__ import annotations

from pathlib import Path

import click

from squirrel_mcp import passphrase
from squirrel_mcp.cli import asking, new_passphrase, recovery_code
from squirrel_mcp.cli.output import json_option, show_json
from squirrel_mcp.cli.session import open_vault
from squirrel_mcp.crypto import recovery as code_format
from squirrel_mcp.errors import InvalidInput, WrongPassphrase
from squirrel_mcp.settings import Settings


@click.group()
def recovery() -> None:
    """Make a recovery code, or get in with one."""


@recovery.command()
@json_option
def new(as_json: bool) -> None:
    """Make a recovery code. One that was made before is no longer valid then."""
    with open_vault(Settings.read()) as vault:
        replaced = vault.key_set.recovery is not None
        vault.set_recovery(recovery_code.make())
    if as_json:
        show_json({"status": "made", "replaced": replaced})
        return
    click.echo("The recovery code is valid now." + (" The earlier one no longer is." if replaced else ""))


@recovery.command()
@click.option(
    "--code-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Holds the recovery code; without it, it is asked for.",
)
@new_passphrase.file_option
@json_option
def use(code_file: Path | None, new_passphrase_file: Path | None, as_json: bool) -> None:
    """Open the vault with the recovery code, and give it a new passphrase.

    The code stays valid; make a new one with `recovery new` if somebody else may have seen it.
    """
    settings = Settings.read()
    secret = _read_code(settings, code_file)
    try:
        with open_vault(settings, lambda: secret) as vault:
            chosen = new_passphrase.get(settings, new_passphrase_file)
            vault.change_passphrase(chosen)
    except WrongPassphrase as error:
        asking.say("This is not the recovery code of this vault.")
        raise error
    handed = new_passphrase.hand_over(settings, chosen)
    new_passphrase.tell(
        "The new passphrase is valid. The recovery code still is.", {"status": "changed"}, handed, as_json
    )


def _read_code(settings: Settings, file: Path | None) -> bytes:
    if file is not None:
        return code_format.from_code(passphrase.read(Settings(data_dir=settings.data_dir, passphrase_file=file)))
    if not asking.can_ask():
        raise InvalidInput("recovery code", "There is nobody to ask: name a file as --code-file.")
    for _ in range(asking.TRIES - 1):
        try:
            return code_format.from_code(asking.line("Recovery code"))
        except InvalidInput as error:
            asking.say(str(error))
    return code_format.from_code(asking.line("Recovery code"))
