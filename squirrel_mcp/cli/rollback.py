"""`accept-rollback`: believing a vault file or a server that does not continue what this device has seen."""

from __future__ import annotations

from contextlib import closing, suppress
from pathlib import Path

import click

from squirrel_mcp import opening, private_files
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
    StoreError,
    Verdict,
    WrongPassphrase,
)
from squirrel_mcp.opening import Heads, Unlocker
from squirrel_mcp.portability import device_state, sealed_file
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.pins import PinFolder
from squirrel_mcp.vault import Vault

_ACCEPTABLE = (RollbackDetected, ForkDetected, KeyRecordDowngrade, ForeignKey, PinDamaged)


@click.command("accept-rollback")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def accept_rollback(yes: bool, as_json: bool) -> int:
    """Believe a vault file, or a server, that was put back from a backup.

    Memories that were saved after the backup was made are not in it. Do this only if you know who put it back. What
    this device alone has seen of an account on a server is exported first, sealed; `import` brings it in again.
    """
    settings = Settings.read()
    place = "the server" if settings.api_base_url else "the vault file"
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
        show_facts([("this device has seen", pinned), (f"{place} holds", served)])
    if not yes:
        if not asking.can_ask():
            raise InvalidInput("yes", "There is nobody to ask: use --yes to accept without a question.")
        if not asking.confirm(f"Believe {place} as it is, and forget what this device has seen?"):
            raise click.Abort
    kept = _keep(settings)
    if settings.api_base_url is not None and not as_json:
        asking.say(
            f"What this device has seen is kept in {kept}; `squirrel-mcp import` reads it, with the passphrase of then."
            if kept
            else "This device has no copy of its own that it could keep."
        )
    vault = _accept(settings, source, place)
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
                "kept": str(kept) if kept else None,
            }
        )
    else:
        click.echo(f"Accepted: {total} memories, fingerprint {fingerprint}")
    return Exit.OK


def _problem(settings: Settings, source: PassphraseSource) -> Verdict | None:
    """Why the vault is not believed; None if it is. What cannot be accepted is raised."""
    try:
        with open_vault(settings, source) as vault:
            if vault.verdict is not None:
                raise vault.verdict
            return None
    except _ACCEPTABLE as problem:
        return problem


def _heads(settings: Settings) -> Heads | None:
    try:
        return opening.rolled_back(settings)
    except PinDamaged:
        return None


def _keep(settings: Settings) -> Path | None:
    """Export what this device has seen of an account on a server; None where it holds no whole copy.

    A vault file is itself all there is.
    """
    if settings.api_base_url is None:
        return None
    from squirrel_mcp import remote_vault
    from squirrel_mcp.sync.state_cache import StateCache

    with closing(remote_vault.remote_store(settings)) as store:
        try:
            pins = PinFolder(settings.data_dir).by_route(store.route)
        except PinDamaged:
            return None
        if len(pins) != 1:
            return None
        pin = pins[0].pin
        with closing(StateCache(remote_vault.cache_path(settings, store.route))) as cache:
            export = device_state.take(pin, cache)
        if export is None:
            return None
        with suppress(StoreError):  # without the earlier revisions, then
            export = device_state.complete(export, store)
    path = settings.data_dir / f"before-rollback-{pin.head.seq}-{pin.head.mac[:4].hex()}.squirrel"
    private_files.replace(path, sealed_file.encode(export))
    return path


def _accept(settings: Settings, source: PassphraseSource, place: str) -> Vault:
    """The state that is accepted may have had another passphrase."""
    try:
        return opening.accept_rollback(settings, Unlocker(source))
    except WrongPassphrase:
        if not asking.can_ask():
            raise
    return asking.open_with_typed(
        f"Passphrase of {place} as it is now",
        lambda typed: opening.accept_rollback(settings, Unlocker(lambda: typed)),
    )
