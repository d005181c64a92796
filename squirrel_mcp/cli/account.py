"""`account delete`: the end of everything."""

from __future__ import annotations

import click

from squirrel_mcp import deleting, opening, passphrase
from squirrel_mcp.cli import asking
from squirrel_mcp.cli.output import json_option, show_json
from squirrel_mcp.cli.session import open_vault, require_vault
from squirrel_mcp.deleting import Erased
from squirrel_mcp.errors import InvalidInput
from squirrel_mcp.settings import Settings


@click.group()
def account() -> None:
    """Delete the account."""


@account.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def delete(yes: bool, as_json: bool) -> None:
    """Erase the vault of this machine, or the account on its server, with every memory. It cannot be undone."""
    settings = Settings.read()
    require_vault(settings)
    where = settings.api_base_url or str(settings.vault_path)
    if (erased := deleting.finish(settings)) is not None:
        _tell(settings, erased, None, as_json)
        return
    if not yes and not asking.can_ask():
        raise InvalidInput("yes", "There is nobody to ask: use --yes to erase everything without a question.")
    with open_vault(settings) as vault:
        total = len(vault.memories)
        if not yes:
            _ask(settings, where, total)
        erased = deleting.delete(settings, vault)
    _tell(settings, erased, total, as_json)


def _tell(settings: Settings, erased: Erased, total: int | None, as_json: bool) -> None:
    """`total`: how many memories there were, if that is known."""
    if as_json:
        status = "deleted" if erased.confirmed else "forgotten"
        place = opening.place(settings)
        show_json({"status": status, "place": place, "memories": total, "keyringRemoved": erased.from_keyring})
        return
    if erased.confirmed:
        click.echo(f"Erased: {total} memories, {opening.place(settings)}")
    else:
        click.echo("The server no longer knows this API key; what this device kept of the account is erased.")
        asking.say(
            "It was asked to erase the account before, and its answer was lost. Had somebody revoked the key at that "
            "moment, the account would still be there: another device that can open it would tell."
        )
    if erased.from_keyring:
        asking.say("The passphrase is no longer in this machine's keyring.")
    asking.say(
        "Exports and backups that were made before are not touched, and still need the passphrase; "
        "nor is it touched where you keep it yourself."
    )


def _ask(settings: Settings, where: str, total: int) -> None:
    what = "every API key of it, so that no other device gets in any more, " if settings.api_base_url else ""
    in_keyring = passphrase.is_in_keyring(settings)
    asking.say(
        f"This erases {total} memories with their history ({opening.place(settings)}), {what}and what this device has "
        "kept of them. There is no way back; `squirrel-mcp export` makes a copy first."
        + (" The passphrase goes from this machine's keyring; an export needs it." if in_keyring else "")
    )
    if asking.line(f"To erase it all, type {where}").strip() != where:
        asking.say("That is not it: nothing was erased.")
        raise click.Abort
