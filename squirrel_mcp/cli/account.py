"""`account delete`: the end of everything."""

from __future__ import annotations

import click

from squirrel_mcp import deleting, opening
from squirrel_mcp.cli import asking
from squirrel_mcp.cli.output import json_option, show_json
from squirrel_mcp.cli.session import open_vault, require_vault
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
    if not yes and not asking.can_ask():
        raise InvalidInput("yes", "There is nobody to ask: use --yes to erase everything without a question.")
    with open_vault(settings) as vault:
        total = len(vault.memories)
        if not yes:
            _ask(settings, where, total)
        deleting.delete(settings, vault)
    if as_json:
        show_json({"status": "deleted", "place": opening.place(settings), "memories": total})
        return
    click.echo(f"Erased: {total} memories, {opening.place(settings)}")
    asking.say("Exports and backups that were made before are not touched; nor is the passphrase where you keep it.")


def _ask(settings: Settings, where: str, total: int) -> None:
    what = "every API key of it, so that no other device gets in any more, " if settings.api_base_url else ""
    asking.say(
        f"This erases {total} memories with their history ({opening.place(settings)}), {what}and what this device has "
        "kept of them. There is no way back; `squirrel-mcp export` makes a copy first."
    )
    if asking.line(f"To erase it all, type {where}").strip() != where:
        asking.say("That is not it: nothing was erased.")
        raise click.Abort
