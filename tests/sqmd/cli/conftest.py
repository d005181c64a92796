"""The command line in this process, over an index of its own and an embedder that is quick."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sqmd.cli import app
from sqmd.embed import choose
from tests.house.sources import ROOT
from tests.sqmd.fakes import FakeEmbedder

TEA = "# Tea\n\nGreen tea wants water of eighty degrees.\n\n## Cups\n\nThe blue cup [red]belongs[/red] to Ada.\n"
CAR = "# Car\n\nThe automobile is parked behind the house.\n"


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
def embedder() -> FakeEmbedder:
    return FakeEmbedder()


@pytest.fixture
def notes(home: Path) -> Path:
    """~/notes, which is what is indexed where nothing else is said."""
    folder = home / "notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "tea.md").write_text(TEA, "utf-8")
    (folder / "deep/car.md").write_text(CAR, "utf-8")
    return folder


@pytest.fixture
def run(home: Path, embedder: FakeEmbedder, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """One command line: exit code, stdout, stderr."""
    monkeypatch.setattr(choose, "make", lambda config: embedder)

    def run_it(*args: object) -> Ran:
        capfd.readouterr()
        code = app.run([str(arg) for arg in args])
        said = capfd.readouterr()
        return Ran(int(code), said.out, said.err)

    return run_it


@pytest.fixture
def indexed(run: Run, notes: Path) -> Path:
    """The notes, indexed."""
    assert run("index").code == 0
    return notes


@pytest.fixture
def environment(home: Path) -> dict[str, str]:
    """For a process: this test's home, and where the tests are."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}
