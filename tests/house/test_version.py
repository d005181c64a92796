"""scripts/bump_version.py writes one version and the pins between the four distributions."""

from __future__ import annotations

from scripts.bump_version import PYPROJECTS, with_version
from tests.house.sources import PACKAGES


def test_a_bump_changes_the_pins_between_our_distributions_and_no_other() -> None:
    text = 'dependencies = ["squirrel-mcp==0.1.0", "squirrel-server[postgresql]==0.1.0", "mcp==2.3.0", "x==1.0"]'
    assert with_version(text, "1.0.0rc1") == (
        'dependencies = ["squirrel-mcp==1.0.0rc1", "squirrel-server[postgresql]==1.0.0rc1", "mcp==2.3.0", "x==1.0"]'
    )


def test_a_bump_reaches_every_distribution() -> None:
    assert len(PYPROJECTS) == len(PACKAGES)
