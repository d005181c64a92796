"""A hub, and no proxy of this machine between it and the tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.scripts.hub import Hub


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)


@pytest.fixture
def hub() -> Iterator[Hub]:
    with Hub().running() as running:
        yield running
