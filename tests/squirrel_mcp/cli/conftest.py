"""The command line in this process, on a vault of its own with a cheap key derivation."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from squirrel_mcp import opening
from squirrel_mcp.cli import app
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.settings import Settings
from tests.e2e.account_server import AccountServer, account_server

from ..conftest import CHEAP, PASSPHRASE
from .devices import Device, NewDevice, account


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ran]


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the commands of this test use; there is nothing in it yet."""
    monkeypatch.setenv("SQUIRREL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("SQUIRREL_PASSPHRASE", PASSPHRASE)
    return tmp_path / "data"


@pytest.fixture
def run(data_dir: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """One command line: exit code, stdout, stderr. Nobody sits at stdin."""
    # The process that runs the tests stays as it is.
    monkeypatch.setattr(app, "harden", lambda: None)

    def run_it(*args: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capfd.readouterr()
        code = app.run(args)
        said = capfd.readouterr()
        return Ran(int(code), said.out, said.err)

    return run_it


@pytest.fixture
def vault_dir(data_dir: Path) -> Path:
    """An empty vault is there."""
    settings = Settings(data_dir=data_dir)
    opening.open_vault(settings, Unlocker(lambda: PASSPHRASE), parameters=CHEAP).close()
    return data_dir


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccountServer]:
    """Plain http on loopback, for all tests of a file; nobody stops it."""
    with account_server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture
def own_server(tmp_path: Path) -> Iterator[AccountServer]:
    """One that the test may stop."""
    with account_server(tmp_path / "server") as running:
        yield running


@pytest.fixture
def device(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> NewDevice:
    """A device without anything."""
    return lambda name: Device(tmp_path / name, {}, run, monkeypatch)


@pytest.fixture
def with_account(device: NewDevice, server: AccountServer) -> Device:
    """A device with an empty account on the server."""
    return account(device("laptop"), server)


@pytest.fixture
def local(device: NewDevice) -> Device:
    """A vault on this machine with a corrected memory, a forgotten one, and a changed passphrase record."""
    desk = device("desk")
    settings = Settings(data_dir=desk.folder)
    vault = opening.open_vault(settings, Unlocker(lambda: PASSPHRASE), parameters=CHEAP)
    vault.change_passphrase(PASSPHRASE)
    vault.close()
    ids = [desk("add", text, "--json").json["id"] for text in ("one", "two", "three")]
    desk("correct", ids[0], "one and a half", "--reason", "more of it")
    desk("forget", ids[1], "--yes")
    return desk
