"""The packages' source files and what they import, for the tests that keep the house in order."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("squirrel_mcp", "squirrel_mcp_embeddings", "squirrel_server", "sqmd")


@dataclass(frozen=True)
class Import:
    """One name that one line of one file imports; `target` is dotted and absolute."""

    file: str
    line: int
    target: str

    def of(self, *packages: str) -> bool:
        """Whether the target is one of `packages` or lies inside one."""
        return any(self.target == package or self.target.startswith(f"{package}.") for package in packages)

    def __str__(self) -> str:
        return f"{self.file}:{self.line} imports {self.target}"


def source_files() -> list[Path]:
    """Every module of the four packages. hatch_build.py lies among them and is a part of the build."""
    found = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return sorted(path for path in found if path.name != "hatch_build.py")


def relative(path: Path) -> str:
    """The path inside the checkout, with slashes."""
    return path.relative_to(ROOT).as_posix()


def imports_in(source: str, file: str) -> Iterator[Import]:
    """Every import of `source`, also those inside functions, relative ones made absolute by `file`.

    `from a import b` counts as `a.b`: whether b is a module or a name, it comes out of a.
    """
    # The package a file belongs to is its folder: also for an __init__.py.
    package = file.split("/")[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(file, node.lineno, alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = [*base, *(node.module.split(".") if node.module else [])]
            for alias in node.names:
                yield Import(file, node.lineno, ".".join([*base, alias.name]))


def all_imports() -> list[Import]:
    """The imports of all modules of the four packages."""
    return [found for path in source_files() for found in imports_in(path.read_text("utf-8"), relative(path))]
