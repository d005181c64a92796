"""`client-config`: what to put into a client's configuration, and where that is."""

from __future__ import annotations

import sys
import sysconfig
from importlib import metadata
from pathlib import Path
from typing import Any

import click

from squirrel_mcp import passphrase
from squirrel_mcp.cli.asking import say
from squirrel_mcp.cli.client_snippets import CLIENTS, Launch, PassphraseFrom, Snippet, snippet
from squirrel_mcp.cli.output import json_option, show_json
from squirrel_mcp.cli.session import edition
from squirrel_mcp.settings import Settings, default_data_dir

_SOURCES: tuple[PassphraseFrom, ...] = ("keyring", "file", "command", "variable")


@click.command("client-config")
@click.option("--client", type=click.Choice(CLIENTS), required=True, help="The program to connect.")
@click.option(
    "--local/--uvx",
    default=None,
    help="Start this installation by its path, or `uvx squirrel-mcp`. By default what will start this version again.",
)
@click.option(
    "--passphrase-from",
    type=click.Choice(_SOURCES),
    help="Where the server finds the passphrase. By default where this command finds it, or else a file.",
)
@json_option
def client_config(client: str, local: bool | None, passphrase_from: PassphraseFrom | None, as_json: bool) -> None:
    """Print what a client needs to start the server.

    The passphrase is never part of it: keep it in the machine's keyring (`init` offers that) or in a file that only
    you can read.
    """
    settings = Settings.read()
    found = snippet(client, launch(settings, local=local, passphrase_from=passphrase_from), sys.platform)
    if as_json:
        show_json(snippet_fields(found))
        return
    say(heading(found))
    click.echo(found.content, nl=False)
    for hint in hints(found):
        say(hint)


def launch(
    settings: Settings,
    *,
    local: bool | None = None,
    passphrase_from: PassphraseFrom | None = None,
    show_key: bool = False,
) -> Launch:
    """How a client starts the server so that it finds the vault of `settings`; by default as `own_launch` says.

    show_key: whether the API key itself becomes part of it, or a placeholder.
    """
    chosen = passphrase_from or _source(settings)
    environment = {}
    if settings.data_dir != default_data_dir():
        environment["SQUIRREL_DATA_DIR"] = str(settings.data_dir)
    if settings.api_base_url is not None:
        environment["SQUIRREL_API_BASE_URL"] = settings.api_base_url
        if settings.ca_file is not None:
            environment["SQUIRREL_CA_FILE"] = str(settings.ca_file.absolute())
        if settings.https_proxy is not None:
            # Proxies may have a password in their address.
            environment["SQUIRREL_HTTPS_PROXY"] = "the address of your proxy"
    command, args = own_launch() if local is None else _own_command() if local else _uvx()
    return Launch(
        command,
        args,
        passphrase_from=chosen,
        passphrase_file=str(settings.passphrase_file.absolute()) if settings.passphrase_file else "",
        environment=environment,
        has_api_key=settings.api_base_url is not None,
        api_key=settings.api_key if show_key else None,
    )


def own_launch() -> tuple[str, tuple[str, ...]]:
    """Command and arguments that start this version again: uvx where it came from the package index.

    uvx would not find, or would not get the same, what was installed from a checkout, a wheel or a repository.
    """
    return _own_command() if _is_elsewhere() else _uvx()


def heading(found: Snippet) -> str:
    return f"Merge this into {found.where}:" if found.where else "Run this:"


def snippet_fields(found: Snippet) -> dict[str, Any]:
    return {"client": found.client, "file": found.where, "format": found.kind, "content": found.content}


def _source(settings: Settings) -> PassphraseFrom:
    if settings.passphrase_file is not None:
        return "file"
    if settings.passphrase_command is not None and settings.passphrase is None:
        return "command"
    return "keyring" if passphrase.is_in_keyring(settings) else "file"


def _uvx() -> tuple[str, tuple[str, ...]]:
    return "uvx", (edition().command,)


def _own_command() -> tuple[str, tuple[str, ...]]:
    """The absolute path of the program that is running, or of its interpreter where no such script is installed."""
    script = Path(sysconfig.get_path("scripts")) / (edition().command + (".exe" if sys.platform == "win32" else ""))
    return (str(script), ()) if script.is_file() else (sys.executable, ("-m", edition().package))


def _is_elsewhere() -> bool:
    """Whether it was not installed from an index: installers leave direct_url.json then (PEP 610)."""
    try:
        return metadata.distribution(edition().command).read_text("direct_url.json") is not None
    except metadata.PackageNotFoundError:
        return True


def hints(found: Snippet) -> list[str]:
    """What else to know about a snippet."""
    hints = []
    if found.client == "vscode":
        hints.append("For all workspaces: the command `MCP: Open User Configuration` opens the file to use instead.")
    if found.client == "claude-code":
        hints.append("For one project only: the snippet of `--client cursor` works as its .mcp.json.")
    if "SQUIRREL_PASSPHRASE_FILE" in found.content:
        hints.append("The file holds the passphrase and nothing else; run `chmod 600` on it.")
    if found.kind == "command" and "SQUIRREL_API_KEY=sqn_" in found.content:
        hints.append("The command holds the API key: keep it out of your shell's history.")
    elif "${SQUIRREL_API_KEY}" in found.content:
        hints.append("Fill in the API key of this device; `squirrel-mcp keys create` makes one.")
    if "uvx" in found.content:
        hints.append("If the client does not find uvx, use --local or the full path of uvx.")
    return hints
