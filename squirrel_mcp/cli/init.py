"""`init`: a new vault on this machine, its recovery code, and what a client needs to use it."""

from __future__ import annotations

import sys

import click

from squirrel_mcp import opening, passphrase
from squirrel_mcp.cli import asking, recovery_code
from squirrel_mcp.cli.client_config import heading, hints, launch, snippet_fields
from squirrel_mcp.cli.client_snippets import CLIENTS, snippet
from squirrel_mcp.cli.output import json_option, show_json
from squirrel_mcp.cli.session import PassphraseSource, open_vault
from squirrel_mcp.crypto import kdf
from squirrel_mcp.errors import Conflict, InvalidInput
from squirrel_mcp.settings import Settings


@click.command()
@click.option("--no-recovery", is_flag=True, help="Make no recovery code now; `recovery new` makes one later.")
@click.option(
    "--keyring/--no-keyring", default=None, help="Keep the passphrase in this machine's keyring, or do not ask."
)
@click.option(
    "--client", type=click.Choice(CLIENTS), default="claude-desktop", help="For which client to print the snippet."
)
@json_option
def init(no_recovery: bool, keyring: bool | None, client: str, as_json: bool) -> None:
    """Make the vault.

    The passphrase (12 characters or more) is asked for twice, or comes from SQUIRREL_PASSPHRASE_FILE and the other
    sources. Nobody can reset it: the recovery code is the only other way in.
    """
    settings = Settings.read()
    if opening.has_vault(settings):
        raise Conflict(f"There is a vault at {settings.vault_path} already; nothing was changed.")
    if not no_recovery and not asking.can_show():
        raise InvalidInput(
            "recovery code",
            "There is no terminal to show a recovery code on: use --no-recovery, and `recovery new` later.",
        )
    source = PassphraseSource(settings)
    chosen = source()
    kdf.check_new(chosen)
    # The code is confirmed before anything is made: who stops here has nothing to clean up.
    secret = None if no_recovery else recovery_code.make()
    with open_vault(settings, source, may_create=True) as vault:
        if secret is not None:
            vault.set_recovery(secret)
    kept = _keep(settings, chosen, keyring, asked=source.asked)
    found = snippet(client, launch(settings, passphrase_from="keyring" if kept else None), sys.platform)
    if as_json:
        show_json(
            {
                "vault": str(settings.vault_path),
                "recoveryCode": secret is not None,
                "keyring": kept,
                "clientConfig": snippet_fields(found),
            }
        )
        return
    asking.say(f"The vault is made: {settings.vault_path}")
    if secret is None:
        asking.say("There is no recovery code yet: a forgotten passphrase means that the memories are lost.")
    asking.say(f"\n{heading(found)}")
    click.echo(found.content, nl=False)
    for hint in hints(found):
        asking.say(hint)
    asking.say(f"\nFor other clients: squirrel-mcp client-config --client {'|'.join(CLIENTS)}")


def _keep(settings: Settings, chosen: str, wanted: bool | None, *, asked: bool) -> bool:
    """Offer the keyring to who typed the passphrase; one that came from a source has its place."""
    if wanted is None:
        wanted = asked and asking.confirm("Keep the passphrase in this machine's keyring?", default=True)
    if not wanted:
        return False
    kept = passphrase.keep_in_keyring(settings, chosen)
    if not kept:
        asking.say(
            "This machine has no keyring that can be used: put the passphrase into a file that only you can read, "
            "and name it as SQUIRREL_PASSPHRASE_FILE."
        )
    return kept
