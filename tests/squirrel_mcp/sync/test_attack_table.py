"""docs/attacks.md says what these tests do, no more and no less."""

from __future__ import annotations

import subprocess
import sys

from tests.house.sources import ROOT


def test_the_table_of_attacks_is_current() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "attack_table.py"), "--check"]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    assert result.returncode == 0, result.stderr
