"""A device in a test of commands that have to do with a server: a folder, and the variables of an account."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from squirrel_mcp import remote_vault
from squirrel_mcp.settings import Settings
from squirrel_server.api_keys import make_invite
from tests.e2e.account_server import AccountServer

from ..conftest import CHEAP, PASSPHRASE

if TYPE_CHECKING:
    from .conftest import Ran, Run

VARIABLES = ("SQUIRREL_API_BASE_URL", "SQUIRREL_API_KEY", "SQUIRREL_CA_FILE")


@dataclass
class Device:
    """A folder and the variables of an account; `run` runs a command there."""

    folder: Path
    variables: dict[str, str]
    _run: Run
    _patch: pytest.MonkeyPatch

    def __call__(self, *args: str, stdin: bytes = b"", passphrase: str = PASSPHRASE) -> Ran:
        for name in VARIABLES:
            self._patch.delenv(name, raising=False)
        for name, value in self.variables.items():
            self._patch.setenv(name, value)
        self._patch.setenv("SQUIRREL_DATA_DIR", str(self.folder))
        self._patch.setenv("SQUIRREL_PASSPHRASE", passphrase)
        return self._run(*args, stdin=stdin)

    def use(self, made: Any) -> None:
        """Take the variables of the snippet that a command printed."""
        (launch,) = json.loads(made["clientConfig"]["content"])["mcpServers"].values()
        self.variables = {name: value for name, value in launch["env"].items() if name in VARIABLES}


NewDevice = Callable[[str], Device]


def account(made: Device, server: AccountServer) -> Device:
    """Make an empty account on the server, with a cheap key derivation, for this device."""
    settings = Settings(data_dir=made.folder, api_base_url=server.origin)
    transport = remote_vault.transport(settings)
    key = remote_vault.create(transport, server.invite(), PASSPHRASE, parameters=CHEAP)
    transport.close()
    made.variables = {"SQUIRREL_API_BASE_URL": server.origin, "SQUIRREL_API_KEY": key.secret()}
    return made


def joined(first: Device, made: Device, *options: str) -> Device:
    """Bring the second device to the account of the first; `options` of `keys create`."""
    code = first("keys", "create", "--join", *options, "--json").json["joinCode"]
    made.use(made("join", "-", "--json", stdin=code.encode()).json)
    return made


def texts(made: Device) -> list[str]:
    return [memory["text"] for memory in made("list", "--all", "--json").json["memories"]]


def files(made: Device) -> set[str]:
    return {path.name for path in made.folder.iterdir()} if made.folder.exists() else set()


def invite(seed: str) -> str:
    """A well-formed invite that no server knows; another one for each seed."""
    return make_invite(lambda count: seed.encode().ljust(count, b".")[:count])[0]
