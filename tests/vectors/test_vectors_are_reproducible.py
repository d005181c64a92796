from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from squirrel_mcp import errors
from tests.vectors.making.files import FOLDER, cases

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "make_vectors.py"
NAMES = sorted(path.name for path in FOLDER.glob("*.json"))
MOST_BYTES = 200_000


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_vectors", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", NAMES)
def test_a_rerun_gives_the_same_bytes(script: ModuleType, name: str) -> None:
    assert (FOLDER / name).read_bytes() == script.render(name).encode("ascii")


def test_every_file_has_a_generator_and_an_explanation(script: ModuleType) -> None:
    readme = (FOLDER / "README.md").read_text("utf-8")
    assert sorted(script.BUILDERS) == NAMES
    assert [name for name in NAMES if f"`{name}`" not in readme] == []


@pytest.mark.parametrize("name", NAMES)
def test_every_case_is_named_once_and_expects_a_code_that_exists(name: str) -> None:
    found = cases(name)
    assert len({case["name"] for case in found}) == len(found)
    classes = [each for each in vars(errors).values() if isinstance(each, type)]
    # A vector file that is wrong is no error: it is deleted and made anew.
    codes = {"ok", "dropped", *(each.code for each in classes if issubclass(each, errors.SquirrelError))}
    expected = {case["expect"] for case in found if "mutation" not in case}
    expected |= {code for case in found for _, _, code in case.get("expectByRange", [])}
    assert expected <= codes
    assert "ok" in expected and (len(expected) > 1 or name == "keys.json")


@pytest.mark.parametrize("name", NAMES)
def test_no_file_is_large(name: str) -> None:
    assert (FOLDER / name).stat().st_size < MOST_BYTES


def test_every_must_fail_item_of_the_protocol_has_the_vectors_that_the_readme_names() -> None:
    readme = (FOLDER / "README.md").read_text("utf-8")
    rows = re.findall(r"(?m)^\| [^|]+ \| `(\w+\.json)` \| ([^|]+) \|$", readme)
    assert len(rows) > 20
    known: dict[str, Any] = {name: {case["name"] for case in cases(name)} for name in NAMES}
    for name, listed in rows:
        for wanted in re.findall(r"`([^`]+)`", listed):
            pattern = re.escape(wanted).replace(r"\*", ".*")
            assert any(re.fullmatch(pattern, each) for each in known[name]), f"{name}: {wanted}"
