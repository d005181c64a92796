"""`keys`: which devices may reach the account on its server, and how one gets in or out."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, get_args

import click

from squirrel_mcp.cli import asking
from squirrel_mcp.cli.connecting import own_certificate
from squirrel_mcp.cli.output import Column, json_option, local_time, on_terminal, show_json, show_table
from squirrel_mcp.cli.session import open_vault
from squirrel_mcp.errors import BadReply, ConfigurationError, InvalidInput, NotFound
from squirrel_mcp.memory import format_time
from squirrel_mcp.settings import Settings
from squirrel_mcp.vault import utc_now

_ID = re.compile(r"[0-9A-Za-z]{12}", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_SCOPES = ("read", "write", "admin")
_LONGEST = 3_650  # days


class _Key(NamedTuple):
    """An API key as the server lists it; `expires` in seconds since 1970."""

    id: str
    scope: str
    created: str
    last_used: str | None
    expires: int | None

    @property
    def expires_at(self) -> datetime | None:
        return None if self.expires is None else datetime.fromtimestamp(self.expires, UTC)


@click.group()
def keys() -> None:
    """List, make and revoke the API keys of an account on a server.

    All of it takes a key with the scope admin.
    """


@keys.command("list")
@json_option
def list_keys(as_json: bool) -> None:
    """List the keys, without their secret part."""
    from squirrel_mcp import remote_vault

    settings = _with_server(Settings.read())
    store = remote_vault.remote_store(settings)
    try:
        listed, own = store.keys(), store.route[1]
    finally:
        store.close()
    found = [_read(each) for each in listed]
    if as_json:
        show_json({"keys": [_fields(key, own) for key in found]})
        return
    columns = [Column("id", "green"), Column("scope"), Column("made", "dim"), Column("last used", "dim")]
    show_table([*columns, Column("expires", "dim"), Column("", "cyan")], [_row(key, own) for key in found])


@keys.command()
@click.option(
    "--scope",
    type=click.Choice(_SCOPES),
    default="write",
    show_default=True,
    help="read: only look. write: also save. admin: also change passphrase and keys, and delete the account.",
)
@click.option("--expires", "days", type=click.IntRange(1, _LONGEST), metavar="DAYS", help="How long it is valid.")
@click.option(
    "--join",
    "as_code",
    is_flag=True,
    help="Print the one line that `join` takes on the other device; it holds the key.",
)
@json_option
def create(scope: str, days: int | None, as_code: bool, as_json: bool) -> None:
    """Make a key for another device, and show it once.

    A join code is such a key with the server's address: whoever has it reaches the account until the key is revoked
    or ends, and needs the passphrase to read anything.
    """
    from squirrel_mcp import join_code, remote_vault
    from squirrel_mcp.sync.remote import Scope

    settings = _with_server(Settings.read())
    certificate = own_certificate(settings) if as_code else None
    chosen: Scope = next(each for each in get_args(Scope) if each == scope)
    expires = None if days is None else int((utc_now() + timedelta(days=days)).timestamp())
    with open_vault(settings) as vault:
        store = remote_vault.remote_store(settings)
        try:
            made = store.create_key(vault.ring.current.append, chosen, expires)
            origin = store.route[0]
        finally:
            store.close()
    code = join_code.encode(join_code.JoinCode(origin, made, certificate)) if as_code else None
    if as_json:
        until = None if expires is None else format_time(datetime.fromtimestamp(expires, UTC))
        show_json({"id": made.id, "scope": scope, "expires": until, "apiKey": made.secret(), "joinCode": code})
        return
    if code is None:
        asking.say(f"The key {made.id} is shown this once:")
        click.echo(made.secret())
        return
    asking.say(
        "On the other device run `squirrel-mcp join` and paste this line. It holds an API key, which stays valid: "
        f"pass it on privately; `squirrel-mcp keys revoke {made.id}` ends it."
    )
    click.echo(code)


@keys.command()
@click.argument("key_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask, even for the key of this device.")
@json_option
def revoke(key_id: str, yes: bool, as_json: bool) -> None:
    """Make a key invalid at once. What its device has already fetched stays there, sealed."""
    from squirrel_mcp import remote_vault

    settings = _with_server(Settings.read())
    if not _ID.fullmatch(key_id):
        raise InvalidInput("id", "The id of a key has 12 letters and digits; `squirrel-mcp keys list` shows it.")
    store = remote_vault.remote_store(settings)
    try:
        if key_id == store.route[1] and not yes:
            if not asking.can_ask():
                raise InvalidInput("yes", "This device uses that key itself: use --yes to revoke it all the same.")
            if not asking.confirm("This device uses that key itself and could not go on. Revoke it?"):
                raise click.Abort
        with open_vault(settings) as vault:
            store.revoke_key(vault.ring.current.append, key_id)
    except NotFound:
        raise NotFound("The account has no API key with this id.") from None
    finally:
        store.close()
    if as_json:
        show_json({"status": "revoked", "id": key_id})
        return
    click.echo(f"revoked {key_id}")


def _with_server(settings: Settings) -> Settings:
    if settings.api_base_url is None:
        raise ConfigurationError("API keys belong to an account on a server: set SQUIRREL_API_BASE_URL.")
    return settings


def _read(listed: dict[str, Any]) -> _Key:
    """BadReply for anything but the protocol's form; a server may list what it likes."""
    values: list[Any] = [listed.get(name) for name in ("id", "scope", "created", "lastUsed", "expiresAt")]
    key = _Key(*values)
    days = [day for day in (key.created, key.last_used) if day is not None]
    if not (
        type(key.id) is str
        and _ID.fullmatch(key.id)
        and key.scope in _SCOPES
        and key.created is not None
        and all(type(day) is str and _DAY.fullmatch(day) for day in days)
        and (key.expires is None or (type(key.expires) is int and 0 <= key.expires < 1 << 37))  # before the year 6000
    ):
        raise BadReply("The server's list of keys is not in the protocol's form.")
    return key


def _fields(key: _Key, own: str) -> dict[str, Any]:
    return {
        "id": key.id,
        "scope": key.scope,
        "created": key.created,
        "lastUsed": key.last_used,
        "expires": format_time(key.expires_at) if key.expires_at else None,
        "current": key.id == own,
    }


def _row(key: _Key, own: str) -> list[str]:
    expires = local_time(key.expires_at) if key.expires_at else "never"
    current = ("this one" if on_terminal() else "current") if key.id == own else ""
    return [key.id, key.scope, key.created, key.last_used or "never", expires, current]
