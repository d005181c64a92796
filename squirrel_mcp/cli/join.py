"""`join`: a second device on an account that a server keeps."""

from __future__ import annotations

from dataclasses import replace

import click

from squirrel_mcp.cli import asking, connecting
from squirrel_mcp.cli.output import json_option, show_json
from squirrel_mcp.cli.session import PassphraseSource, open_vault
from squirrel_mcp.settings import Settings


@click.command()
@click.argument("code", required=False, metavar="[-]")
@connecting.keyring_option
@connecting.client_option
@json_option
def join(code: str | None, keyring: bool | None, client: str, as_json: bool) -> None:
    """Bring this device to an account, with the join code that `keys create --join` printed on another one.

    It is asked for without echo, and with - read from stdin: it holds an API key, which belongs on no command line.
    The passphrase is the account's.
    """
    from squirrel_mcp import join_code

    settings = Settings.read()
    decoded = join_code.decode(connecting.secret("code", code, "Join code"))
    destination = connecting.reach(settings, decoded.origin, decoded.certificate)
    account = replace(destination.settings, api_key=decoded.api_key.secret())
    source = PassphraseSource(account)
    source()  # who stops here leaves nothing behind
    destination.keep_certificate()
    with open_vault(account, source) as vault:
        if vault.verdict is not None:
            raise vault.verdict
        fingerprint, total = vault.fingerprint(), len(vault.memories)
    kept = connecting.wants_keyring(keyring, asked=source.asked)
    kept = kept and connecting.keep_in_keyring(account, source())
    found = connecting.with_key(account, client, in_keyring=kept)
    if as_json:
        fields = connecting.account_fields(account, fingerprint, found)
        show_json({**fields, "total": total, "keyring": kept})
        return
    asking.say(f"This device shares {total} memories at {account.api_base_url}.")
    if settings.vault_path.exists():
        asking.say(f"The memories in {settings.vault_path} stay there and are not among them.")
    connecting.show_account(account, fingerprint, found)
