"""The four distributions as a user gets them: built wheels, installed and run outside the checkout."""

from __future__ import annotations

import email.message
import email.parser
import json
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from squirrel_mcp._version import __version__
from tests.house.sources import PACKAGES, ROOT

EPOCH = "1767225600"  # 2026-01-01: any fixed time makes a build repeatable
EXECUTABLES = Path(sys.executable).parent
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@dataclass(frozen=True)
class Built:
    """One distribution: its wheel built straight from the checkout, once more, and through its sdist."""

    package: str
    wheel: Path
    again: Path
    via_sdist: Path
    sdist: Path

    def names(self) -> list[str]:
        """The paths inside the wheel."""
        with zipfile.ZipFile(self.wheel) as archive:
            return archive.namelist()

    def metadata(self) -> email.message.Message:
        """The METADATA of the wheel."""
        with zipfile.ZipFile(self.wheel) as archive:
            name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            return email.parser.Parser().parsestr(archive.read(name).decode("utf-8"))


def build(folder: Path, target: str, into: Path) -> Path:
    """The one `target` (wheel or sdist) that hatchling makes of the project in `folder`."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", str(into)],
        cwd=folder,
        env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH},
        check=True,
        capture_output=True,
    )
    (made,) = into.iterdir()
    return made


@pytest.fixture(scope="session", params=PACKAGES)
def built(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Built:
    return _build_all(request.param, tmp_path_factory.mktemp(request.param))


def _build_all(package: str, out: Path) -> Built:
    folder = ROOT if package == "squirrel_mcp" else ROOT / package
    sdist = build(folder, "sdist", out / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(out / "unpacked", filter="data")
    (unpacked,) = (out / "unpacked").iterdir()
    return Built(
        package,
        wheel=build(folder, "wheel", out / "direct"),
        again=build(folder, "wheel", out / "again"),
        via_sdist=build(unpacked, "wheel", out / "via_sdist"),
        sdist=sdist,
    )


@pytest.fixture(scope="session")
def base_wheels(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """What `pip install squirrel-mcp` needs of ours: the base and the store."""
    out = tmp_path_factory.mktemp("base")
    return [build(ROOT, "wheel", out / "mcp"), build(ROOT / "squirrel_server", "wheel", out / "server")]


def test_all_distributions_have_the_one_version(built: Built) -> None:
    assert built.metadata()["Version"] == __version__


def test_every_dependency_is_pinned_to_one_version(built: Built) -> None:
    # This is read from the wheel because uv's workspace sources ignore the pins in pyproject.toml.
    for requirement in built.metadata().get_all("Requires-Dist") or []:
        pin = re.fullmatch(r"([a-z0-9-]+)(\[[a-z,]+\])?==([0-9][^;\s]*)( *;.*)?", requirement)
        assert pin, f"{built.package} requires {requirement}, which is no exact pin"
        if pin[1] in ("squirrel-mcp", "squirrel-mcp-embeddings", "squirrel-server", "sqmd"):
            assert pin[3] == __version__


def test_the_lock_holds_the_pinned_versions(built: Built) -> None:
    locked = dict(re.findall(r"(?m)^([a-z0-9-]+)==([^ ;\\]+)", (ROOT / "constraints.txt").read_text("utf-8")))
    for requirement in built.metadata().get_all("Requires-Dist") or []:
        name, version = re.split(r"(?:\[.*\])?==|;", requirement)[:2]
        assert locked.get(name, __version__) == version.strip(), f"run scripts/lock: {requirement}"


def test_a_wheel_holds_its_own_package_and_nothing_else(built: Built) -> None:
    foreign = [name for name in built.names() if not re.match(rf"{built.package}(-[^/]+\.dist-info)?/", name)]
    assert not foreign


def test_a_wheel_holds_every_module_of_its_package(built: Built) -> None:
    sources = (ROOT / built.package).rglob("*.py")
    assert {path.relative_to(ROOT).as_posix() for path in sources} <= set(built.names())
    assert f"{built.package}/py.typed" in built.names()


def test_an_sdist_ships_no_sibling_and_no_model(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    others = [*(package for package in PACKAGES if package != built.package), "model", "tests"]
    assert not [name for name in names if name.partition("/")[0] in others]


def test_two_builds_are_the_same_to_the_byte(built: Built) -> None:
    assert built.wheel.read_bytes() == built.again.read_bytes()


def test_a_wheel_through_the_sdist_is_the_same_to_the_byte(built: Built) -> None:
    assert built.wheel.read_bytes() == built.via_sdist.read_bytes()


def initialize(command: list[str], folder: Path) -> dict[str, object]:
    """Start `command` as a stdio server in `folder`, ask it to initialize, let it end; its one answer."""
    environment = {**os.environ, "SQUIRREL_DATA_DIR": str(folder / "data")}
    environment.pop("PYTHONPATH", None)
    result = subprocess.run(
        command,
        input=json.dumps(INITIALIZE) + "\n",
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    (line,) = result.stdout.splitlines()
    answer: dict[str, object] = json.loads(line)
    return answer


def is_squirrel(answer: dict[str, object]) -> bool:
    """Whether `answer` is an initialize result of this very version."""
    match answer:
        case {"id": 1, "result": {"serverInfo": {"version": version}}}:
            return bool(version == __version__)
    return False


@pytest.fixture(scope="session")
def installed(base_wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a fresh environment, outside the checkout, that holds the two wheels."""
    venv = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    executables = venv / EXECUTABLES.name
    subprocess.run(
        [EXECUTABLES / "uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--python", venv, *base_wheels],
        check=True,
    )
    # The third-party tree is the one the tests run on. A path in a .pth file does not bring the .pth files of that
    # folder along, so the editable install of the checkout stays out.
    (site_packages,) = venv.rglob("site-packages")
    (site_packages / "third_party.pth").write_text(sysconfig.get_path("purelib") + "\n", "utf-8")
    return executables


@pytest.mark.parametrize("package", ["squirrel_mcp", "squirrel_server.store"])
def test_the_installed_package_is_the_wheel_and_not_the_checkout(package: str, installed: Path, tmp_path: Path) -> None:
    found = subprocess.run(
        [installed / "python", "-I", "-c", f"import {package} as package; print(package.__file__)"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert Path(found.stdout.strip()).is_relative_to(installed.parent)


def test_the_installed_command_answers_initialize(installed: Path, tmp_path: Path) -> None:
    answer = initialize([str(installed / "python"), "-I", str(installed / "squirrel-mcp")], tmp_path)
    assert is_squirrel(answer), answer


@pytest.mark.network
def test_uvx_from_the_wheel_answers_initialize(base_wheels: list[Path], tmp_path: Path) -> None:
    base, store = base_wheels
    command = [
        *(str(EXECUTABLES / "uvx"), "--quiet", "--python", sys.executable),
        *("--find-links", str(store.parent), "--from", str(base), "squirrel-mcp"),
    ]
    answer = initialize(command, tmp_path)
    assert is_squirrel(answer), answer
