"""The borders between the rooms, read from the imports: a change that crosses one fails with the reason."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import packages_distributions

import pytest

from tests.house.sources import PACKAGES, ROOT, Import, all_imports, imports_in, relative, source_files

PURE_ROOMS = ("squirrel_mcp/crypto/", "squirrel_mcp/search/")
# Standard modules through which I/O, a clock, the environment or hidden randomness come in.
WORLDLY = frozenset(
    {
        "asyncio",
        "ctypes",
        "fcntl",
        "fileinput",
        "getpass",
        "glob",
        "http",
        "importlib",
        "io",
        "linecache",
        "locale",
        "logging",
        "mmap",
        "multiprocessing",
        "os",
        "pathlib",
        "platform",
        "random",
        "secrets",
        "select",
        "selectors",
        "shelve",
        "shutil",
        "signal",
        "socket",
        "sqlite3",
        "ssl",
        "subprocess",
        "tempfile",
        "time",
        "urllib",
        "zoneinfo",
    }
)
# Of os only urandom, which is looked at below; import_module lets a package load its own modules when they are needed.
WORLDLY_BUT_ALLOWED = ("os", "os.urandom", "importlib.import_module")
ENVIRONMENT = ("environ", "environb", "getenv", "getenvb")
LIBRARIES_OF_PURE_ROOMS = {
    "squirrel_mcp/crypto/": ("cryptography", "squirrel_mcp.crypto", "squirrel_mcp.errors"),
    "squirrel_mcp/search/": (
        "numpy",
        "rank_bm25",
        "snowballstemmer",
        "squirrel_mcp.search",
        "squirrel_mcp.memory",
        "squirrel_mcp.errors",
    ),
}

HEAVY = ("httpx", "keyring", "numpy", "psycopg", "rank_bm25", "rich", "snowballstemmer", "sqlalchemy")
HEAVY_OF_SQMD = (
    *HEAVY,
    "fastapi",
    "lancedb",
    "markdown_it",
    "mcp",
    "mdit_py_plugins",
    "onnxruntime",
    "prometheus_client",
    "pyarrow",
    "pydantic",
    "starlette",
    "tokenizers",
    "uvicorn",
    "watchfiles",
    "yaml",
)
LIGHT_ENTRANCES = {
    "squirrel_mcp.mcp_server.app": HEAVY,
    "squirrel_mcp.cli": HEAVY,
    "sqmd.cli": HEAVY_OF_SQMD,
    "sqmd.config": HEAVY_OF_SQMD,
    "sqmd.errors": HEAVY_OF_SQMD,
}
# The modules that read the environment, and of whose variables every name must begin so; of the base's some are the
# platform's.
READERS_OF_THE_ENVIRONMENT = {"squirrel_mcp/settings.py": "", "sqmd/config.py": "SQMD_"}

# Declared, not imported yet, and why that is so.
NOT_YET_IMPORTED = {
    "psycopg": "SQLAlchemy imports it by the name in the URL",
}


@dataclass(frozen=True)
class Border:
    """Files under `inside`, but not `except_in`, import nothing that `refuses` is true of."""

    inside: tuple[str, ...]
    refuses: Callable[[Import], bool]
    why: str
    except_in: tuple[str, ...] = ()

    def crossings(self, imports: list[Import]) -> list[str]:
        return [
            f"{found}: {self.why}"
            for found in imports
            if found.file.startswith(self.inside)
            and not found.file.startswith(self.except_in or ("//",))
            and self.refuses(found)
        ]


BORDERS = {
    "the server's graph holds no decryption code": Border(
        ("squirrel_server/",),
        lambda found: found.of("squirrel_mcp", "squirrel_mcp_embeddings", "sqmd"),
        "squirrel_server imports nothing of the other packages",
    ),
    "the base does not know its companion": Border(
        ("squirrel_mcp/",),
        lambda found: found.of("squirrel_mcp_embeddings", "onnxruntime", "tokenizers", "sqmd"),
        "the companion plugs in through the Ranker protocol",
    ),
    "only the in-process store touches the server's package": Border(
        ("squirrel_mcp/",),
        lambda found: found.of("squirrel_server"),
        "the client parses what a store says itself; only sync/local.py calls squirrel_server.store",
        except_in=("squirrel_mcp/sync/local.py",),
    ),
    "and of that package it takes the store alone": Border(
        ("squirrel_mcp/sync/local.py",),
        lambda found: found.of("squirrel_server") and not found.of("squirrel_server.store"),
        "sync/local.py calls squirrel_server.store and nothing else of it",
    ),
    "the companion reaches the store through the base": Border(
        ("squirrel_mcp_embeddings/",),
        lambda found: found.of("squirrel_server", "sqmd"),
        "squirrel_mcp_embeddings builds on squirrel_mcp only",
    ),
    "Markdown search uses the companion's embedder alone": Border(
        ("sqmd/",),
        lambda found: found.of("squirrel_mcp", "squirrel_server"),
        "sqmd uses the companion's embedder, and of squirrel_mcp nothing",
    ),
    "what agents call never handles keys or a store": Border(
        ("squirrel_mcp/mcp_server/",),
        lambda found: found.of(
            "squirrel_mcp.crypto", "squirrel_mcp.sync", "squirrel_mcp.portability", "squirrel_mcp.cli"
        ),
        "fronts are thin: parse, call one service, present",
    ),
    "nothing below the fronts knows them": Border(
        ("squirrel_mcp/",),
        lambda found: found.of("squirrel_mcp.mcp_server", "squirrel_mcp.cli"),
        "data passes through the rooms one way",
        except_in=("squirrel_mcp/mcp_server/", "squirrel_mcp/cli/", "squirrel_mcp/__main__.py"),
    ),
    "the two fronts stand side by side": Border(
        ("squirrel_mcp/mcp_server/", "squirrel_mcp/cli/"),
        lambda found: found.of("squirrel_mcp.cli" if "/mcp_server/" in found.file else "squirrel_mcp.mcp_server"),
        "cli and mcp_server share what lies beside them; only cli/__init__.py starts the server",
        except_in=("squirrel_mcp/cli/__init__.py",),
    ),
    "the bottom rooms know nothing above them": Border(
        ("squirrel_mcp/errors.py", "squirrel_mcp/memory.py"),
        lambda found: found.of("squirrel_mcp") and not found.of("squirrel_mcp.errors", "squirrel_mcp.memory"),
        "plain values and errors stand on nothing of ours",
    ),
}


@pytest.mark.parametrize("name", BORDERS)
def test_no_import_crosses_a_border(name: str) -> None:
    crossings = BORDERS[name].crossings(all_imports())
    assert not crossings, "\n".join(crossings)


def test_a_relative_import_inside_a_function_is_seen_crossing() -> None:
    source = "def f():\n    from ..mcp_server import app\n    from ... import squirrel_server\n"
    found = list(imports_in(source, "squirrel_mcp/search/bm25.py"))
    assert [each.target for each in found] == ["squirrel_mcp.mcp_server.app", "squirrel_server"]
    assert BORDERS["nothing below the fronts knows them"].crossings(found)
    assert BORDERS["only the in-process store touches the server's package"].crossings(found)


def test_a_front_that_borrows_from_the_other_is_seen() -> None:
    border = BORDERS["the two fronts stand side by side"]
    source = "from squirrel_mcp.mcp_server.app import NAME\nfrom squirrel_mcp.cli.exits import Exit\n"
    assert len(border.crossings(list(imports_in(source, "squirrel_mcp/cli/reading.py")))) == 1
    assert len(border.crossings(list(imports_in(source, "squirrel_mcp/mcp_server/tools.py")))) == 1
    assert not border.crossings(list(imports_in(source, "squirrel_mcp/cli/__init__.py")))


def impurities(source: str, file: str) -> list[str]:
    """What ties `source`, a file of a pure room, to the world; one sentence each."""
    room = next(room for room in PURE_ROOMS if file.startswith(room))
    allowed = LIBRARIES_OF_PURE_ROOMS[room]
    found = []
    for each in imports_in(source, file):
        top = each.target.partition(".")[0]
        if top in sys.stdlib_module_names:
            if top in WORLDLY and each.target not in WORLDLY_BUT_ALLOWED:
                found.append(f"{each}: {room} does no I/O and reads no clock and no environment")
        elif not each.of(*allowed):
            found.append(f"{each}: {room} stands on {', '.join(allowed)} and the standard library")
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(value=ast.Name(id="os"), attr=name) if name != "urandom":
                found.append(f"{file}:{node.lineno} uses os.{name}: of os only urandom, as a default argument")
            case ast.Call(func=ast.Attribute(attr="now" | "utcnow" | "today" as name)):
                found.append(f"{file}:{node.lineno} calls {name}(): the time is an argument")
            case ast.Call(func=ast.Name(id="open" | "print" | "input" | "breakpoint" as name)):
                found.append(f"{file}:{node.lineno} calls {name}(): values come in as arguments")
    return found


def test_crypto_and_search_do_no_io_and_read_no_clock_and_no_environment() -> None:
    files = [path for path in source_files() if relative(path).startswith(PURE_ROOMS)]
    found = [line for path in files for line in impurities(path.read_text("utf-8"), relative(path))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "source",
    [
        "import time",
        "from os import environ",
        "import os\nos.getenv('HOME')",
        "from datetime import datetime\ndatetime.now()",
        "open('vault.db')",
        "import pathlib",
        "import httpx",
        "from squirrel_mcp import vault",
    ],
)
def test_the_purity_check_notices(source: str) -> None:
    assert impurities(source, "squirrel_mcp/search/bm25.py")


def test_randomness_as_a_default_argument_is_pure() -> None:
    assert not impurities("import os\ndef salt(random=os.urandom): return random(16)", "squirrel_mcp/crypto/a.py")


def test_only_the_settings_read_the_environment() -> None:
    found = []
    for path in source_files():
        if relative(path) in READERS_OF_THE_ENVIRONMENT:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.Attribute(attr=name) | ast.Name(id=name) if name in ENVIRONMENT:
                    found.append(f"{relative(path)}:{node.lineno} uses {name}: only settings.py and config.py read it")
    assert not found, "\n".join(found)


def variable_names(source: str) -> set[str]:
    """Every text in `source` that has the shape of a variable's name."""
    texts = (node.value for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Constant))
    return {text for text in texts if isinstance(text, str) and re.fullmatch(r"[A-Z][A-Z0-9_]+", text)}


@pytest.mark.parametrize("file", READERS_OF_THE_ENVIRONMENT)
def test_the_settings_of_a_package_read_its_own_variables(file: str) -> None:
    found = variable_names((ROOT / file).read_text("utf-8"))
    foreign = sorted(name for name in found if not name.startswith(READERS_OF_THE_ENVIRONMENT[file]))
    assert found and not foreign, f"{file} reads {foreign}"
    assert variable_names("import os\nos.getenv('HOME'), os.environ['A_B'], 'Word'") == {"HOME", "A_B"}


def names(dependencies: list[str]) -> set[str]:
    """The distributions that a list of requirements names, normalised."""
    return {_normalised(re.split(r"[\[=<>!~; ]", each, maxsplit=1)[0]) for each in dependencies}


def _normalised(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def declared(package: str) -> set[str]:
    """The distributions that `package`'s pyproject.toml depends on, extras included."""
    folder = ROOT if package == "squirrel_mcp" else ROOT / package
    project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project.get("optional-dependencies", {})
    return names([*project["dependencies"], *(each for extra in extras.values() for each in extra)])


def imported_distributions(package: str) -> dict[str, Import]:
    """What `package` imports from, by distribution, each with one place; standard library and itself aside."""
    provided_by = packages_distributions()
    found: dict[str, Import] = {}
    for each in all_imports():
        top = each.target.partition(".")[0]
        if each.file.startswith(f"{package}/") and top != package and top not in sys.stdlib_module_names:
            ours = [top] if top in PACKAGES else provided_by.get(top, [top])
            for distribution in ours:
                found.setdefault(_normalised(distribution), each)
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_every_library_that_is_imported_is_a_declared_dependency(package: str) -> None:
    found = imported_distributions(package)
    missing = [f"{each}, which no dependency declares" for name, each in found.items() if name not in declared(package)]
    assert not missing, "\n".join(missing)


@pytest.mark.parametrize("package", ["squirrel_mcp", "squirrel_server"])
def test_every_declared_dependency_is_imported(package: str) -> None:
    unused = declared(package) - imported_distributions(package).keys() - NOT_YET_IMPORTED.keys()
    assert not unused, f"{package} declares {sorted(unused)} and imports nothing of it"


@pytest.mark.parametrize("module", LIGHT_ENTRANCES)
def test_nothing_heavy_is_imported_before_it_is_needed(module: str) -> None:
    program = f"import json, sys, {module}; print(json.dumps(sorted(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT)
    assert result.returncode == 0, result.stderr
    loaded = [name for name in json.loads(result.stdout) if name.partition(".")[0] in LIGHT_ENTRANCES[module]]
    assert not loaded, f"import {module} loads {loaded}: import it inside the function that needs it"
