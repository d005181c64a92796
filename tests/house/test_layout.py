"""Small rooms with clear names."""

from __future__ import annotations

import re
import statistics
from importlib.metadata import packages_distributions

from tests.house.sources import PACKAGES, ROOT, relative, source_files

DRAWERS = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
LONGEST = 400
MEDIAN = 150


def test_no_module_is_a_drawer_for_everything() -> None:
    found = [relative(path) for path in source_files() if path.stem in DRAWERS or path.parent.name in DRAWERS]
    assert not found, f"{found}: name the module after what it does"


def test_no_module_or_folder_has_the_name_of_a_dependency() -> None:
    dependencies = packages_distributions().keys() - set(PACKAGES)
    rooms = {(relative(path), name) for path in source_files() for name in (path.stem, path.parent.name)}
    found = [file for file, name in rooms if name in dependencies]
    assert not found, f"{sorted(found)}: such a name shadows the library where its folder is on the path"


def test_modules_are_short() -> None:
    lengths = {relative(path): len(path.read_text("utf-8").splitlines()) for path in source_files()}
    long = {file: lines for file, lines in lengths.items() if lines > LONGEST}
    assert not long, f"over {LONGEST} lines, split them: {long}"
    assert statistics.median(lengths.values()) <= MEDIAN


def test_every_package_says_that_it_is_typed() -> None:
    assert not [
        path
        for path in source_files()
        if path.stem == "__init__" and path.parent.name in PACKAGES and not (path.parent / "py.typed").exists()
    ]


def test_no_test_changes_the_clock_of_the_whole_process() -> None:
    """Servers run in threads beside the tests: an event loop that reads a wrong time may sleep until that time."""
    changed = re.compile(r"""setattr\("?(time|asyncio)[.,]""")
    files = sorted((ROOT / "tests").rglob("*.py"))
    found = [relative(path) for path in files if changed.search(path.read_text("utf-8"))]
    assert not found, f"{found}: change the clock of the module under test instead"
