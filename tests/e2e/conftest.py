"""Vault folders of the cheapest key derivation, and servers that end with the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from squirrel_mcp import opening
from squirrel_mcp.crypto import kdf
from squirrel_mcp.settings import Settings

from .server_process import ServerProcess, environment

PASSPHRASE = "correct horse battery staple"
Start = Callable[..., ServerProcess]


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """A folder with an empty vault that opens fast."""
    folder = tmp_path / "data"
    settings = Settings(data_dir=folder, passphrase=PASSPHRASE)
    cheap = kdf.Argon2id(time=2, memory_kib=19_456, lanes=1)
    opening.open_vault(settings, opening.from_settings(settings), parameters=cheap).close()
    return folder


@pytest.fixture
def start(data_dir: Path) -> Iterator[Start]:
    """Start a server on `data_dir`; a variable of None is not set."""
    with ExitStack() as servers:

        def one(*, folder: Path = data_dir, code: str | None = None, **variables: str | None) -> ServerProcess:
            given: dict[str, Any] = {"SQUIRREL_PASSPHRASE": PASSPHRASE, **variables}
            set_ones = {name: value for name, value in given.items() if value is not None}
            more = {} if code is None else {"code": code}
            return servers.enter_context(ServerProcess(environment(folder, **set_ones), **more))

        yield one
