"""`init`: a new vault on this machine or a new account on a server, its recovery code, and what a client needs."""

from __future__ import annotations

import sys
from contextlib import closing
from dataclasses import replace

import click

from squirrel_mcp import opening
from squirrel_mcp.advice import NO_RECOVERY_CODE
from squirrel_mcp.cli import asking, connecting, recovery_code
from squirrel_mcp.cli.client_config import launch, snippet_fields
from squirrel_mcp.cli.client_snippets import CLIENTS, snippet
from squirrel_mcp.cli.exits import Exit, of
from squirrel_mcp.cli.output import json_option, show_json
from squirrel_mcp.cli.session import PassphraseSource, open_vault, say_made
from squirrel_mcp.crypto import kdf
from squirrel_mcp.errors import Conflict, InvalidInput, SquirrelError
from squirrel_mcp.settings import Settings


@click.command()
@click.option("--api", metavar="URL", help="Make an account on this server, instead of a vault on this machine.")
@click.option("--invite", metavar="TOKEN", help="What `squirrel-server invite` printed; - reads it from stdin.")
@connecting.certificate_option
@click.option("--no-recovery", is_flag=True, help="Make no recovery code now; `recovery new` makes one later.")
@connecting.keyring_option
@connecting.client_option
@json_option
def init(
    api: str | None,
    invite: str | None,
    certificate: str | None,
    no_recovery: bool,
    keyring: bool | None,
    client: str,
    as_json: bool,
) -> int:
    """Make the vault, or with --api an account on a server.

    The passphrase (12 characters or more) is asked for twice, or comes from SQUIRREL_PASSPHRASE_FILE and the other
    sources. Nobody can reset it: the recovery code is the only other way in.
    """
    settings = Settings.read()
    if api is None and (invite is not None or certificate is not None):
        raise click.UsageError("--invite and --certificate go with --api.")
    if api is None and settings.api_base_url is not None:
        raise InvalidInput("api", "SQUIRREL_API_BASE_URL is set: use --api for an account there, or unset it.")
    local = replace(settings, api_base_url=None, api_key=None)
    if opening.has_vault(local):
        what = "" if api is None else " `squirrel-mcp move` brings it to a server."
        raise Conflict(f"There is a vault at {settings.vault_path} already; nothing was changed.{what}")
    if not no_recovery:
        recovery_code.require_terminal()
    source = PassphraseSource(local)
    if api is not None:
        return _on_server(settings, source, api, invite, certificate, no_recovery, keyring, client, as_json)
    _on_this_machine(settings, source, no_recovery, keyring, client, as_json)
    return Exit.OK


def _on_this_machine(
    settings: Settings, source: PassphraseSource, no_recovery: bool, keyring: bool | None, client: str, as_json: bool
) -> None:
    chosen, secret = _secrets(source, no_recovery)
    # Asked before anything is made: who stops here has nothing to clean up.
    kept = connecting.wants_keyring(keyring, asked=source.asked)
    with open_vault(settings, source, may_create=True) as vault:
        if secret is not None:
            vault.set_recovery(secret)
    kept = kept and connecting.keep_in_keyring(settings, chosen)
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
    say_made(settings, has_code=secret is not None)
    connecting.show_snippet(found)
    asking.say(f"\nFor other clients: squirrel-mcp client-config --client {'|'.join(CLIENTS)}")


def _on_server(
    settings: Settings,
    source: PassphraseSource,
    api: str,
    invite: str | None,
    certificate: str | None,
    no_recovery: bool,
    keyring: bool | None,
    client: str,
    as_json: bool,
) -> int:
    from squirrel_mcp import remote_vault

    if settings.api_key is not None:
        raise Conflict("SQUIRREL_API_KEY is set: there is an account already. Unset it to make another one.")
    destination = connecting.reach(settings, api, certificate)
    token = connecting.invite(invite)
    chosen, secret = _secrets(source, no_recovery)
    kept = connecting.wants_keyring(keyring, asked=source.asked)
    destination.keep_certificate()
    with closing(remote_vault.transport(destination.settings)) as to:
        key = remote_vault.create(to, token, chosen, secret)
    account = replace(destination.settings, api_key=key.secret())
    kept = kept and connecting.keep_in_keyring(account, chosen)
    code, fingerprint = Exit.OK, None
    try:
        with open_vault(account, source) as vault:
            fingerprint = vault.fingerprint()
    except SquirrelError as error:
        # The account is there and its key comes this once: that is told whatever else went wrong.
        code = of(error)
        asking.say(f"The account is made, but opening it failed: {error}")
    found = connecting.with_key(account, client, in_keyring=kept)
    if as_json:
        fields = connecting.account_fields(account, fingerprint, found)
        show_json({**fields, "recoveryCode": secret is not None, "keyring": kept})
        return code
    asking.say(f"The account is made: {account.api_base_url}")
    if secret is None:
        asking.say(NO_RECOVERY_CODE)
    connecting.show_account(account, fingerprint, found)
    return code


def _secrets(source: PassphraseSource, no_recovery: bool) -> tuple[str, bytes | None]:
    """The new passphrase, and a recovery code that was confirmed; nothing is made yet."""
    chosen = source()
    kdf.check_new(chosen)
    return chosen, None if no_recovery else recovery_code.make()
