"""Dates at the edges of the calendar, for every reader's zone."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.cli.output import local_time

from .conftest import Run

EDGES = ("0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z")


@pytest.fixture(params=["UTC", "America/New_York", "Pacific/Kiritimati", "Europe/Berlin"])
def zone(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("TZ", request.param)
    time.tzset()
    yield request.param
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.usefixtures("zone")
def test_a_time_at_the_edge_of_the_calendar_is_shown(edge: str) -> None:
    shown = local_time(datetime.fromisoformat(edge))
    assert shown[:4] in ("0001", "9999") and shown.removesuffix(" UTC")[4] == "-"


def test_a_time_is_shown_in_the_zone_and_says_so_where_it_is_not(zone: str) -> None:
    assert (
        local_time(datetime(2026, 3, 1, 12, tzinfo=UTC))
        == {
            "UTC": "2026-03-01 12:00",
            "America/New_York": "2026-03-01 07:00",
            "Pacific/Kiritimati": "2026-03-02 02:00",
            "Europe/Berlin": "2026-03-01 13:00",
        }[zone]
    )
    if zone == "America/New_York":
        assert local_time(datetime.min.replace(tzinfo=UTC)) == "0001-01-01 00:00 UTC"
    if zone == "Pacific/Kiritimati":
        assert local_time(datetime.max.replace(tzinfo=UTC)) == "9999-12-31 23:59 UTC"


@pytest.mark.usefixtures("zone", "vault_dir")
def test_commands_show_and_find_memories_of_any_date(run: Run, tmp_path: Path) -> None:
    lines = [
        json.dumps({"id": f"{number:032x}", "text": f"tea {number}", "createdAt": edge, "updatedAt": edge})
        for number, edge in enumerate(EDGES, 1)
    ]
    (tmp_path / "x").write_text("\n".join(lines))
    assert run("import", str(tmp_path / "x")).code == Exit.OK
    everything = ("--since", "0001-01-01", "--until", "9999-12-31")
    for command in (("list",), ("search", "tea"), ("search", "tea", *everything)):
        ran = run(*command)
        assert ran.code == Exit.OK and len(ran.out.splitlines()) == 2, ran.err
    for number, edge in enumerate(EDGES, 1):
        ran = run("show", f"{number:032x}", "--history")
        assert ran.code == Exit.OK and edge[:4] in ran.out
