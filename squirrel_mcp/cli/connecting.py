"""Getting to a server for the first time: its certificate, the secrets that let a device in, the client's snippet."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import click

from squirrel_mcp import passphrase, private_files
from squirrel_mcp.cli import asking
from squirrel_mcp.cli.client_config import heading, hints, launch, snippet_fields
from squirrel_mcp.cli.client_snippets import CLIENTS, Snippet, snippet
from squirrel_mcp.errors import ConfigurationError, InvalidInput, NotTrusted
from squirrel_mcp.settings import Settings

_MAX_SECRET = 8192  # characters of an invite or a join code on stdin

_Command = TypeVar("_Command", bound=Callable[..., Any])


def certificate_option(command: _Command) -> _Command:
    return click.option(
        "--certificate",
        metavar="SHA256",
        help="Fingerprint of the server's self-signed certificate, as the server prints it; the certificate is kept.",
    )(command)


def client_option(command: _Command) -> _Command:
    return click.option(
        "--client", type=click.Choice(CLIENTS), default="claude-desktop", help="For which client to print the snippet."
    )(command)


def keyring_option(command: _Command) -> _Command:
    return click.option(
        "--keyring/--no-keyring", default=None, help="Keep the passphrase in this machine's keyring, or do not ask."
    )(command)


class Destination(NamedTuple):
    """A server to go to. `settings` name it, and no API key yet; `certificate` is PEM, not written yet."""

    settings: Settings
    certificate: str | None

    def keep_certificate(self) -> None:
        """Write the certificate that was compared where the settings name it; nothing without one of its own."""
        if self.certificate is not None and self.settings.ca_file is not None:
            private_files.ensure_folder(self.settings.data_dir)
            private_files.replace(self.settings.ca_file, self.certificate.encode("ascii"))


def reach(settings: Settings, url: str, fingerprint: str | None) -> Destination:
    """The server at `url`; its certificate is fetched and compared where a fingerprint is given. Writes nothing."""
    from squirrel_mcp.sync import certificate, transport

    origin = transport.check_origin(url)
    if fingerprint is None:
        return Destination(replace(settings, api_base_url=origin, api_key=None), None)
    wanted = certificate.normal_fingerprint(fingerprint)
    if not origin.startswith("https://"):
        raise InvalidInput("certificate", "A server at an http:// address has no certificate to compare.")
    pem = certificate.fetch(origin, wanted, proxy=settings.https_proxy)
    ca_file = settings.data_dir / f"certificate-{wanted[:16]}.pem"
    return Destination(replace(settings, api_base_url=origin, api_key=None, ca_file=ca_file), pem)


def own_certificate(settings: Settings) -> str | None:
    """The fingerprint of the certificate in SQUIRREL_CA_FILE, for another device to compare.

    None where there is no such file, or where it holds an authority and not the server's certificate itself.
    """
    from squirrel_mcp.sync import certificate

    if settings.ca_file is None or not (settings.api_base_url or "").startswith("https://"):
        return None
    try:
        pem = settings.ca_file.read_text("utf-8", "replace")
    except OSError as error:
        raise ConfigurationError(f"The file {settings.ca_file} cannot be read: {error.strerror}.") from None
    fingerprint = certificate.fingerprint(pem)
    try:
        certificate.fetch(settings.api_base_url or "", fingerprint, proxy=settings.https_proxy)
    except NotTrusted:
        asking.say(f"The other device needs {settings.ca_file} too: set SQUIRREL_CA_FILE there before it joins.")
        return None
    return fingerprint


def secret(name: str, given: str | None, question: str) -> str:
    """As it was given, one line of stdin for "-", or typed without echo."""
    if given is None:
        if not asking.can_ask():
            raise InvalidInput(name, f"The {name} is missing: give it, or - to read it from stdin.")
        given = asking.hidden(question)
    elif given == "-":
        given = sys.stdin.readline(_MAX_SECRET)
    if not given.strip():
        raise InvalidInput(name, f"The {name} is empty.")
    return given.strip()


def invite(given: str | None) -> str:
    """The invite as `secret` gets it; InvalidInput for one that was mistyped."""
    from squirrel_mcp.sync.api_key import check_invite

    token = secret("invite", given, "Invite")
    check_invite(token)
    return token


def wants_keyring(wanted: bool | None, *, asked: bool) -> bool:
    """Offer the keyring to who typed the passphrase; one that came from a source has its place."""
    if wanted is None:
        return asked and asking.confirm("Keep the passphrase in this machine's keyring?", default=True)
    return wanted


def keep_in_keyring(settings: Settings, chosen: str) -> bool:
    """Whether the keyring took it; says what to do instead where it did not."""
    kept = passphrase.keep_in_keyring(settings, chosen)
    if not kept:
        asking.say(
            "This machine has no keyring that can be used: put the passphrase into a file that only you can read, "
            "and name it as SQUIRREL_PASSPHRASE_FILE."
        )
    return kept


def with_key(settings: Settings, client: str, *, in_keyring: bool = False) -> Snippet:
    """The client's snippet for an account, API key included: this is where it is shown."""
    launched = launch(settings, passphrase_from="keyring" if in_keyring else None, show_key=True)
    return snippet(client, launched, sys.platform)


def account_fields(account: Settings, fingerprint: str | None, found: Snippet) -> dict[str, Any]:
    """What JSON output tells of an account that a device was brought to."""
    return {
        "server": account.api_base_url,
        "fingerprint": fingerprint,
        "apiKey": account.api_key,
        "certificateFile": str(account.ca_file) if account.ca_file else None,
        "clientConfig": snippet_fields(found),
    }


def show_snippet(found: Snippet) -> None:
    """The snippet on stdout, and on stderr where it goes."""
    asking.say(f"\n{heading(found)}")
    click.echo(found.content, nl=False)
    for hint in hints(found):
        asking.say(hint)


def show_account(account: Settings, fingerprint: str | None, found: Snippet) -> None:
    """The snippet of an account on a server, and what a person does with it."""
    if fingerprint is not None:
        asking.say(f"Fingerprint: {fingerprint} (`squirrel-mcp status --at {fingerprint.partition(':')[0]}` elsewhere)")
    show_snippet(found)
    asking.say("\nThe API key is shown this once. Commands in a terminal need the same variables:")
    for line in exports(account, sys.platform):
        asking.say(line)


def exports(account: Settings, platform: str) -> list[str]:
    """What a shell takes (on Windows: PowerShell) so that commands work on the account; holds its API key."""
    variables = {"SQUIRREL_API_BASE_URL": account.api_base_url, "SQUIRREL_API_KEY": account.api_key}
    if account.ca_file is not None:
        variables["SQUIRREL_CA_FILE"] = str(account.ca_file)
    if platform == "win32":
        return ["$env:{} = '{}'".format(name, (value or "").replace("'", "''")) for name, value in variables.items()]
    return [f"export {name}={shlex.quote(value or '')}" for name, value in variables.items()]
