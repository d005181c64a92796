"""`rotate`: a new key for what is written from now on."""

from __future__ import annotations

from pathlib import Path

import click

from squirrel_mcp.cli import asking, new_passphrase, recovery_code
from squirrel_mcp.cli.output import json_option
from squirrel_mcp.cli.session import PassphraseSource, open_vault
from squirrel_mcp.settings import Settings

_LIMITS = (
    "A rotation protects what is written from now on. It does not reach what was copied before: whoever has the old "
    "key and a copy of the vault file or an export can read what is in it. If the passphrase leaked, take a new one."
)


@click.command()
@click.option("--keep-passphrase", is_flag=True, help="Keep the present passphrase, and do not ask.")
@new_passphrase.file_option
@click.option("--no-recovery", is_flag=True, help="Make no new recovery code. The present one ends in any case.")
@json_option
def rotate(keep_passphrase: bool, new_passphrase_file: Path | None, no_recovery: bool, as_json: bool) -> None:
    """Take a new key for what is written from now on, after the present one may have leaked.

    It does not protect what was copied before.
    """
    settings = Settings.read()
    if not no_recovery:
        recovery_code.require_terminal()
    source = PassphraseSource(settings)
    with open_vault(settings, source) as vault:
        asking.say(_LIMITS)
        present = source()
        if keep_passphrase:
            chosen = present
        elif new_passphrase_file is not None or not asking.can_ask():
            chosen = new_passphrase.get(settings, new_passphrase_file)
        else:
            chosen = asking.new_passphrase("New passphrase (Enter keeps the present one)", may_be_empty=True) or present
        secret = None if no_recovery else recovery_code.make()
        vault.rotate(chosen, secret)
    done = "The key is rotated." + (" There is no recovery code now." if secret is None else "")
    fields = {"status": "rotated", "recoveryCode": secret is not None}
    handed = new_passphrase.hand_over(settings, chosen) if chosen != present else None
    new_passphrase.tell(done, fields, handed, as_json)
