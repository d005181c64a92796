"""`accept-rollback`: believing a vault file that is not a continuation of what this device has seen."""

from __future__ import annotations

import click

from squirrel_mcp import opening
from squirrel_mcp.cli import asking
from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.cli.output import json_option, show_facts, show_json
from squirrel_mcp.cli.session import PassphraseSource, open_vault
from squirrel_mcp.errors import (
    ForeignKey,
    ForkDetected,
    InvalidInput,
    KeyRecordDowngrade,
    PinDamaged,
    RollbackDetected,
    Verdict,
    WrongPassphrase,
)
from squirrel_mcp.opening import Heads, Unlocker
from squirrel_mcp.settings import Settings
from squirrel_mcp.vault import Vault

_ACCEPTABLE = (RollbackDetected, ForkDetected, KeyRecordDowngrade, ForeignKey, PinDamaged)


@click.command("accept-rollback")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def accept_rollback(yes: bool, as_json: bool) -> int:
    """Believe a vault file that was put back from a backup.

    Memories that were saved after the backup was made are not in it. Do this only if you put the file there yourself.
    """
    settings = Settings.read()
    source = PassphraseSource(settings)
    problem = _problem(settings, source)
    if problem is None:
        if as_json:
            show_json({"status": "nothing_to_accept"})
        else:
            click.echo("The vault is what this device knows: there is nothing to accept.")
        return Exit.OK
    heads = _heads(settings)
    pinned, served = (heads.pinned.fingerprint, heads.served.fingerprint) if heads else ("", "")
    asking.say(str(problem))
    if not as_json and heads:
        show_facts([("this device has seen", pinned), ("the vault file holds", served)])
    if not yes:
        if not asking.can_ask():
            raise InvalidInput("yes", "There is nobody to ask: use --yes to accept without a question.")
        if not asking.confirm("Believe the vault file as it is, and forget what this device has seen?"):
            raise click.Abort
    vault = _accept(settings, source)
    fingerprint, total = vault.fingerprint(), len(vault.memories)
    vault.close()
    if as_json:
        show_json(
            {
                "status": "accepted",
                "pinned": pinned or None,
                "served": served or None,
                "fingerprint": fingerprint,
                "total": total,
            }
        )
    else:
        click.echo(f"Accepted: {total} memories, fingerprint {fingerprint}")
    return Exit.OK


def _problem(settings: Settings, source: PassphraseSource) -> Verdict | None:
    """Why the vault is not believed; None if it is. What cannot be accepted is raised."""
    try:
        with open_vault(settings, source):
            return None
    except _ACCEPTABLE as problem:
        return problem


def _heads(settings: Settings) -> Heads | None:
    try:
        return opening.rolled_back(settings)
    except PinDamaged:
        return None


def _accept(settings: Settings, source: PassphraseSource) -> Vault:
    """The state that is accepted may have had another passphrase."""
    try:
        return opening.accept_rollback(settings, Unlocker(source))
    except WrongPassphrase:
        if not asking.can_ask():
            raise
    return asking.open_with_typed(
        "Passphrase of the vault file as it is now",
        lambda typed: opening.accept_rollback(settings, Unlocker(lambda: typed)),
    )
