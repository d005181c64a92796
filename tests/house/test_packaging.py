"""The four distributions as a user gets them: built wheels, installed and run outside the checkout."""

from __future__ import annotations

import email.message
import email.parser
import hashlib
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from squirrel_mcp._version import __version__
from squirrel_mcp_embeddings import manifest
from tests.house.sources import PACKAGES, ROOT, relative, source_files

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
def built(request: pytest.FixtureRequest, builds: Callable[[str], Built]) -> Built:
    return builds(request.param)


@pytest.fixture(scope="session")
def companion(builds: Callable[[str], Built]) -> Built:
    return builds("squirrel_mcp_embeddings")


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Built]:
    """By package; each is built when it is first asked for, as the companion's model takes a while to pack."""
    return cache(lambda package: _build_all(package, tmp_path_factory.mktemp(package)))


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
    sources = {relative(path) for path in source_files() if path.is_relative_to(ROOT / built.package)}
    assert {name for name in built.names() if name.endswith(".py")} == sources
    assert f"{built.package}/py.typed" in built.names()


def test_an_sdist_ships_no_sibling_and_only_the_companions_a_model(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = [name.partition("/")[2] for name in archive.getnames()]
    others = [*(package for package in PACKAGES if package != built.package), "tests"]
    # A wheel is usually built through the sdist, which therefore has to bring the model along.
    others += ["model"] if built.package != "squirrel_mcp_embeddings" else []
    assert not [name for name in names if name.partition("/")[0] in others]


def digest(path: Path) -> str:
    # Of two large files that differ, an assertion would show where for minutes.
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_two_builds_are_the_same_to_the_byte(built: Built) -> None:
    assert digest(built.wheel) == digest(built.again)


def test_a_wheel_through_the_sdist_is_the_same_to_the_byte(built: Built) -> None:
    assert digest(built.wheel) == digest(built.via_sdist)


RUNTIME = ("lancedb", "onnxruntime", "tokenizers", "torch")


def requirements(package: str) -> set[str]:
    """The names of everything that an install of our `package` brings, by the metadata of what is installed here."""
    found: set[str] = set()
    todo = [package]
    while todo:
        name = todo.pop()
        if name not in found:
            found.add(name)
            try:
                lines = importlib.metadata.requires(name) or []
            except importlib.metadata.PackageNotFoundError:
                continue  # for another platform
            todo += [re.split(r"[^A-Za-z0-9._-]", line)[0].lower() for line in lines if "extra ==" not in line]
    return found


@pytest.mark.parametrize("package", ["squirrel_mcp", "squirrel_server"])
def test_the_base_brings_no_runtime_for_models(package: str, builds: Callable[[str], Built]) -> None:
    direct = [re.split("[=;[ ]", each)[0] for each in builds(package).metadata().get_all("Requires-Dist") or []]
    whole = set().union(*map(requirements, direct))
    assert "numpy" in whole or package == "squirrel_server"
    assert not whole & {*RUNTIME, "squirrel-mcp-embeddings"}


def test_the_companion_brings_the_base_at_its_own_version(companion: Built) -> None:
    lines = companion.metadata().get_all("Requires-Dist") or []
    assert f"squirrel-mcp=={__version__}" in lines
    assert {"onnxruntime", "tokenizers"} <= {re.split("[=;]", line)[0] for line in lines}


def test_the_runtime_is_not_asked_for_where_there_is_no_wheel_of_it(companion: Built) -> None:
    (line,) = [each for each in companion.metadata().get_all("Requires-Dist") or [] if each.startswith("onnxruntime")]
    marker = Requirement(line).marker
    assert marker is not None

    def wanted(system: str, machine: str, python: str = "3.11") -> bool:
        return marker.evaluate({"sys_platform": system, "platform_machine": machine, "python_version": python})

    assert wanted("linux", "x86_64") and wanted("linux", "aarch64") and wanted("win32", "AMD64")
    assert wanted("darwin", "arm64", "3.14") and not wanted("darwin", "x86_64")
    assert not wanted("linux", "x86_64", "3.15")


def test_the_companions_wheel_holds_the_manifest_and_one_model_as_pinned(companion: Built) -> None:
    with zipfile.ZipFile(companion.wheel) as archive:
        raw = archive.read("squirrel_mcp_embeddings/model-manifest.json")
        held = [name for name in archive.namelist() if name.startswith("squirrel_mcp_embeddings/model/")]
        (model,) = [each for each in manifest.parse(raw) if held[0].split("/")[2] == each.id]
        hashes = {name: hashlib.sha256(archive.read(name)).digest() for name in held}
        assert archive.read("squirrel_mcp_embeddings/LICENSE-MODEL.txt") == (ROOT / "LICENSE-MODEL.txt").read_bytes()
    assert raw == (ROOT / "model-manifest.json").read_bytes()
    assert hashes == {f"squirrel_mcp_embeddings/model/{model.id}/{file.path}": file.sha256 for file in model.files}


class TestTheBuildOfTheCompanion:
    """In a copy of the checkout, with a small model of its own."""

    @pytest.fixture
    def copy(self, tmp_path: Path) -> Path:
        leave_out = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "squirrel_mcp_embeddings", tmp_path / "squirrel_mcp_embeddings", ignore=leave_out)
        (tmp_path / "squirrel_mcp").mkdir()
        shutil.copy(ROOT / "squirrel_mcp/_version.py", tmp_path / "squirrel_mcp")
        shutil.copy(ROOT / "LICENSE-MODEL.txt", tmp_path)
        value = json.loads((ROOT / "model-manifest.json").read_bytes())
        for model in value["models"]:
            for kind in ("weights", "tokenizer"):
                content = f"{kind} of {model['id']}".encode()
                model[kind].update(size=len(content), sha256=hashlib.sha256(content).hexdigest())
                file = tmp_path / "model" / model["id"] / model[kind]["path"]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        (tmp_path / "model-manifest.json").write_text(json.dumps(value), "utf-8")
        return tmp_path

    def build(self, copy: Path, target: str = "wheel") -> list[str]:
        """The files of models in what is built; the folder is emptied for the next build."""
        made = build(copy / "squirrel_mcp_embeddings", target, copy / "dist")
        if target == "wheel":
            with zipfile.ZipFile(made) as wheel:
                names = wheel.namelist()
        else:
            with tarfile.open(made) as sdist:
                names = sdist.getnames()
        shutil.rmtree(copy / "dist")
        return sorted(name.partition("/")[2] for name in names if "/model/" in name)

    def refusal(self, copy: Path, target: str = "wheel") -> str:
        with pytest.raises(subprocess.CalledProcessError) as raised:
            self.build(copy, target)
        return str(raised.value.stderr.decode())

    def test_takes_the_first_model_of_the_manifest(self, copy: Path) -> None:
        gte = ["model/gte-small/onnx/model.onnx", "model/gte-small/tokenizer.json"]
        assert self.build(copy) == gte
        assert self.build(copy, "sdist") == gte

    def test_takes_the_next_where_the_first_is_not_whole(self, copy: Path) -> None:
        weights = copy / "model/gte-small/onnx/model.onnx"
        weights.rename(weights.with_name("model.onnx.part"))
        assert self.build(copy) == ["model/all-MiniLM-L6-v2/model.onnx", "model/all-MiniLM-L6-v2/tokenizer.json"]

    @pytest.mark.parametrize("target", ["wheel", "sdist"])
    def test_refuses_a_file_that_differs(self, copy: Path, target: str) -> None:
        (copy / "model/gte-small/tokenizer.json").write_bytes(b"tokenizer of gte-smalL")
        assert "is not the file that the manifest pins" in self.refusal(copy, target)

    @pytest.mark.parametrize("target", ["wheel", "sdist"])
    def test_says_plainly_that_there_is_no_model(self, copy: Path, target: str) -> None:
        shutil.rmtree(copy / "model")
        assert "holds no whole model: run scripts/fetch_model.py first." in self.refusal(copy, target)

    def test_refuses_a_manifest_that_is_damaged(self, copy: Path) -> None:
        (copy / "model-manifest.json").write_text("{}", "utf-8")
        assert "ManifestDamaged" in self.refusal(copy)

    def test_in_place_needs_no_model(self, copy: Path) -> None:
        shutil.rmtree(copy / "model")
        subprocess.run(
            [sys.executable, "-m", "hatchling", "build", "-t", "wheel:editable", "-d", str(copy / "dist")],
            cwd=copy / "squirrel_mcp_embeddings",
            check=True,
            capture_output=True,
        )


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
    return install(base_wheels, tmp_path_factory)


@pytest.fixture(scope="session")
def with_companion(base_wheels: list[Path], companion: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the companion's wheel."""
    return install([*base_wheels, companion.wheel], tmp_path_factory)


def install(wheels: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    venv = tmp_path_factory.mktemp("installed") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(venv)], check=True)
    executables = venv / EXECUTABLES.name
    subprocess.run(
        [EXECUTABLES / "uv", "pip", "install", "--quiet", "--offline", "--no-deps", "--python", venv, *wheels],
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


def test_the_installed_companion_answers_initialize(with_companion: Path, tmp_path: Path) -> None:
    command = [str(with_companion / "python"), "-I", str(with_companion / "squirrel-mcp-embeddings")]
    answer = initialize(command, tmp_path)
    assert is_squirrel(answer), answer


def test_the_installed_companion_reads_its_model_outside_the_checkout(with_companion: Path, tmp_path: Path) -> None:
    program = (
        "from squirrel_mcp_embeddings import model_files; files = model_files.read(None);"
        "print(model_files.own_home(), files.model.id, len(files.weights), sep='\\n')"
    )
    found = subprocess.run(
        [with_companion / "python", "-I", "-c", program], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    home, model, size = found.stdout.splitlines()
    assert Path(home).is_relative_to(with_companion.parent)
    assert (model, int(size)) in [(path.name, _weights(path)) for path in (ROOT / "model").iterdir() if path.is_dir()]


def test_the_installed_companion_finds_by_meaning(with_companion: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "SQUIRREL_PASSPHRASE": "correct horse battery staple"}
    environment |= {"SQUIRREL_DATA_DIR": str(tmp_path / "data"), "SQUIRREL_MEMORY_CACHE_DIR": str(tmp_path / "cache")}
    environment.pop("PYTHONPATH", None)

    def run(*args: str) -> str:
        command = [str(with_companion / "python"), "-I", str(with_companion / "squirrel-mcp-embeddings"), *args]
        return subprocess.run(command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True).stdout

    run("add", "Ana takes oat milk in her coffee")
    answer = json.loads(run("search", "What does she like to drink in the morning?", "--json"))
    assert answer["ranking"] == "hybrid" and len(answer["hits"]) == 1


def _weights(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*.onnx"))


@pytest.mark.network
def test_uvx_from_the_wheel_answers_initialize(base_wheels: list[Path], tmp_path: Path) -> None:
    base, store = base_wheels
    command = [
        *(str(EXECUTABLES / "uvx"), "--quiet", "--python", sys.executable),
        *("--find-links", str(store.parent), "--from", str(base), "squirrel-mcp"),
    ]
    answer = initialize(command, tmp_path)
    assert is_squirrel(answer), answer
