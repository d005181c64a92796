"""Nothing committed names a machine that it was written on, or where packages are fetched from."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.house.sources import ROOT

# Homes and scratch folders of Linux, macOS and Windows, followed by a name.
MACHINE_PATH = re.compile(
    r"(?<![\w.~*$}])(?:/(?:home|Users|root|tmp|mnt|work|workspace|builds?|private|var/folders)/[A-Za-z0-9_]"
    r"|[A-Za-z]:\\{1,2}Users\\{1,2}[A-Za-z0-9_])"
)
PACKAGE_INDEX = re.compile(
    r"(?:pypi|pythonhosted|npmjs|crates|debian)\.(?:org|com|io|net)"
    r"|--?(?:extra-)?index-url[ =]https?:|https?://[^ )]*/simple\b",
    re.IGNORECASE,
)


def of_this_machine() -> list[str]:
    """The folders that are this machine's own: the checkout, the home, the interpreter, the scratch folder."""
    folders = (ROOT, Path.home(), Path(sys.base_prefix), Path(tempfile.gettempdir()))
    # One-part folders such as /root say nothing by themselves; with a name below them MACHINE_PATH has them.
    return [str(folder) for folder in folders if len(folder.parts) > 2 and folder != Path("/usr")]


def committed() -> list[Path]:
    """What git tracks, and what it would track after `git add .`."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    paths = (ROOT / name for name in listing.stdout.decode("utf-8").split("\0") if name)
    return [path for path in paths if path.is_file()]


def traces(text: str) -> list[str]:
    """The lines of `text` that name a machine path or a package index."""
    own = of_this_machine()
    return [
        line.strip()
        for line in text.splitlines()
        if MACHINE_PATH.search(line) or PACKAGE_INDEX.search(line) or any(folder in line for folder in own)
    ]


def test_no_committed_file_names_this_workplace() -> None:
    found = []
    for path in committed():
        text = path.read_bytes().decode("utf-8", "replace")
        found += [f"{path.relative_to(ROOT)}: {line[:160]}" for line in traces(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "line",
    [
        "cd " + "/".join(["", "home", "ada", "squirrel"]),
        "open('" + "/".join(["", "tmp", "x"]) + "')",
        "C:" + "\\".join(["", "Users", "ada"]),
        "https://files." + "python" + "hosted.org/packages/x.whl",
        "https://example.org" + "/simple/mcp",
    ],
)
def test_the_check_notices(line: str) -> None:
    assert traces(line)


@pytest.mark.parametrize("line", ["see ~/.claude/skills/", "pip install mcp", "/path/to/python", "/etc/hosts"])
def test_the_check_lets_ordinary_text_pass(line: str) -> None:
    assert not traces(line)
