"""`move`: the vault of this machine to a server, with ids, dates and history."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from squirrel_mcp.cli import asking, connecting
from squirrel_mcp.cli.exits import Exit, of
from squirrel_mcp.cli.output import json_option, progress, show_json
from squirrel_mcp.cli.session import PassphraseSource, open_vault, require_vault
from squirrel_mcp.errors import Conflict, InvalidInput, SquirrelError
from squirrel_mcp.settings import Settings

if TYPE_CHECKING:
    from squirrel_mcp.sync.api_key import ApiKey


@click.command()
@click.option("--to", "url", metavar="URL", required=True, help="The server's address.")
@click.option("--invite", metavar="TOKEN", help="What `squirrel-server invite` printed; - reads it from stdin.")
@connecting.certificate_option
@click.option(
    "--start-over", is_flag=True, help="Erase on the server what an interrupted move has left, and begin anew."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@connecting.client_option
@json_option
def move(
    url: str,
    invite: str | None,
    certificate: str | None,
    start_over: bool,
    yes: bool,
    client: str,
    as_json: bool,
) -> int:
    """Move the vault of this machine to a server, so that other devices can join.

    One that was interrupted goes on when it is run again; once the API key was shown, with SQUIRREL_API_BASE_URL and
    SQUIRREL_API_KEY set and without --invite. If the passphrase, the recovery code or the key was changed in between,
    the server cannot take the rest: --start-over with a new --invite begins anew.
    """
    from squirrel_mcp import moving, remote_vault
    from squirrel_mcp.sync.api_key import ApiKey

    settings = Settings.read()
    local = replace(settings, api_base_url=None, api_key=None)
    moved = moving.moved_path(settings)
    key = ApiKey(settings.api_key) if settings.api_key is not None else None
    if key is None or not settings.vault_path.exists():
        require_vault(local)
    if moved.exists() and settings.vault_path.exists():
        raise Conflict(f"{moved} is left from an earlier move: put it somewhere else first. Nothing was moved.")
    destination = connecting.reach(settings, url, certificate)
    if key is not None and settings.api_base_url != destination.settings.api_base_url:
        raise InvalidInput("to", "SQUIRREL_API_BASE_URL and SQUIRREL_API_KEY belong to another server than --to names.")
    if start_over and key is None:
        raise InvalidInput("start_over", "--start-over takes the API key of the interrupted move in SQUIRREL_API_KEY.")
    if key is not None and not start_over and _is_complete(local, destination, key):
        account = replace(destination.settings, api_key=key.secret())
        with open_vault(account) as vault:
            moving.finish(local, vault)
            fingerprint = vault.fingerprint()
        return _tell(account, fingerprint, client, moved, as_json)
    require_vault(local)
    token = "" if key is not None and not start_over else connecting.invite(invite)
    source = PassphraseSource(local)
    with open_vault(local, source) as vault:
        if not yes:
            _ask(settings, destination.settings, len(vault.memories), vault.head.seq)
        destination.keep_certificate()
        to = remote_vault.transport(destination.settings)
        try:
            if start_over and key is not None:
                moving.start_over(local, vault, to, key)
                key = None
            with progress("Sending") as tell:
                key = moving.move(
                    local, vault, to, token, key=key, progress=tell, show_key=lambda made: _show(made.secret())
                )
        finally:
            to.close()
    account = replace(destination.settings, api_key=key.secret())
    try:
        with open_vault(account, source) as vault:
            fingerprint = vault.fingerprint()
    except SquirrelError as error:
        # It is moved; what is told now is needed whatever else goes wrong.
        asking.say(f"The vault is moved, but opening it there failed: {error}")
        _tell(account, None, client, moved, as_json)
        return of(error)
    return _tell(account, fingerprint, client, moved, as_json)


def _is_complete(local: Settings, destination: connecting.Destination, key: ApiKey) -> bool:
    """Whether an earlier move has only the file left to set aside."""
    from squirrel_mcp import moving, remote_vault

    destination.keep_certificate()
    with closing(remote_vault.transport(destination.settings)) as to:
        return moving.is_complete(local, to, key)


def _tell(account: Settings, fingerprint: str | None, client: str, moved: Path, as_json: bool) -> Exit:
    found = connecting.with_key(account, client)
    if as_json:
        show_json({**connecting.account_fields(account, fingerprint, found), "oldFile": str(moved)})
        return Exit.OK
    asking.say(f"The vault is moved to {account.api_base_url}.")
    asking.say(f"Its old file is {moved}, sealed as it was; delete it when the server has a backup.")
    connecting.show_account(account, fingerprint, found)
    return Exit.OK


def _ask(settings: Settings, to: Settings, memories: int, entries: int) -> None:
    asking.say(
        f"{memories} memories ({entries} entries with their history) go from {settings.vault_path} to "
        f"{to.api_base_url}, sealed as they are. Afterwards this machine needs the server, and the file is set aside."
    )
    if not asking.can_ask():
        raise InvalidInput("yes", "There is nobody to ask: use --yes to move without a question.")
    if not asking.confirm("Move them?"):
        raise click.Abort


def _show(key: str) -> None:
    asking.say(f"API key of the account: {key}")
    asking.say("If this is interrupted, set it as SQUIRREL_API_KEY, set SQUIRREL_API_BASE_URL, and run it again.")
