"""Servers over a folder of notes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.sqmd.api.running import Running, config_for, running

NOTES = {
    "garden.md": "# Garden\n\n## Tomatoes\n\nTomatoes want sun and a bucket of water every evening.\n\n"
    "## Beans\n\nBeans climb up the fence by themselves.\n",
    "work/build.md": "# Build\n\nThe linker of C++ wants every symbol once. It's slow; don't touch `-O3`.\n",
    "work/it's 100%_x.md": "# Percent\n\nA note whose file name has a quote, a percent sign and an underscore.\n",
    "日本語.md": "# 旅行\n\n京都の庭はとても静かです。来年もう一度行きたい。\n",
    "plain.md": "No heading at all, just a line about lighthouses.\n",
}


def write_notes(folder: Path) -> None:
    for name, text in NOTES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server over the notes, indexed; shared by tests that change nothing."""
    folder = tmp_path_factory.mktemp("api") / "notes"
    write_notes(folder)
    with running(config_for(folder)) as found:
        found.service.index([folder])
        yield found


@pytest.fixture
def web(server: Running) -> Iterator[httpx.Client]:
    with server.client() as found:
        yield found


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    """A test's own folder of the same notes."""
    folder = tmp_path / "notes"
    write_notes(folder)
    return folder


@pytest.fixture
def own(notes: Path) -> Iterator[Running]:
    """A test's own server over them, indexed."""
    with running(config_for(notes)) as found:
        found.service.index([notes])
        yield found


@pytest.fixture
def own_web(own: Running) -> Iterator[httpx.Client]:
    with own.client() as found:
        yield found
