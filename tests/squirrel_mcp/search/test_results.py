from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest

from squirrel_mcp.search import Filters
from tests.squirrel_mcp.search.samples import NOW, memory


@pytest.mark.parametrize(
    ("filters", "passes"),
    [
        (Filters(), True),
        (Filters(category="EVENT"), True),
        (Filters(category="fact"), False),
        (Filters(entity="NOÉMIE"), True),
        (Filters(entity="noemie"), False),
        (Filters(entity=""), False),
        (Filters(tags=("Ｈome", "work")), True),
        (Filters(tags=("home", "travel")), False),
        (Filters(since=NOW, until=NOW), True),
        (Filters(since=NOW + timedelta(milliseconds=1)), False),
        (Filters(until=NOW - timedelta(milliseconds=1)), False),
        (Filters(category="event", entity="Noe\u0301mie", tags=("WORK",), since=NOW), True),
    ],
)
def test_filters_take_what_fits_in_everything_asked(filters: Filters, passes: bool) -> None:
    assert filters.matches(memory("x", category="Event", entity="Noémie", tags=("Home", "work"))) is passes


def test_the_shapes_load_no_engine() -> None:
    script = "import sys, squirrel_mcp.search.results; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "rank_bm25", "snowballstemmer"} & set(loaded)
