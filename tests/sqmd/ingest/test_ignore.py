"""The rules of a .gitignore, against git itself."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sqmd.ingest.ignore import IgnoreRules


def left_out(lines: list[str], paths: list[str]) -> set[str]:
    """Those of these files that the rules leave out, as whoever walks through the folders finds it."""
    rules = IgnoreRules(lines)

    def out(path: str) -> bool:
        parts = path.split("/")
        folders = ("/".join(parts[:depth]) for depth in range(1, len(parts)))
        return any(rules.ignore(each, folder=True) for each in folders) or rules.ignore(path, folder=False)

    return {path for path in paths if out(path)}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("git") is None:
        if os.environ.get("CI"):
            pytest.fail("git is not here")
        pytest.skip("git is not here")
    folder = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    return folder


def left_out_by_git(repository: Path, lines: list[str], paths: list[str]) -> set[str]:
    (repository / ".git/info/exclude").write_text("".join(f"{line}\n" for line in lines), "utf-8")
    done = subprocess.run(
        ["git", "-c", "core.ignoreCase=false", "check-ignore", "--no-index", "--stdin", "-z"],
        cwd=repository, input="\0".join(paths).encode(), capture_output=True, check=False,
        env={**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"},
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    return set(done.stdout.decode().split("\0")) - {""}


# What git has of `b**/` is left out: it takes the stars for some between slashes where letters stand before them.
_NAMES = (
    "a b build * ** *** *.md k.md ? b* [ab] [!a] [a-c]* []a] [!]b] [[:alpha:]] [^[:digit:]-]* \\a [a\\-c] [z-a] [-a] "
    "[b-] \\*"
).split(" ")
LINES = st.builds(
    lambda no, start, names, end: no + start + "/".join(names) + end,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "/"]),
    st.lists(st.sampled_from([*_NAMES, "a ", "a\\ "]), min_size=1, max_size=3),
    st.sampled_from(["", "", "/", "/**", " "]),
)
PATHS = st.builds(
    lambda folders, name: "/".join([*folders, name]),
    st.lists(st.sampled_from(["a", "b", "build", "c", "a ", "-", "]", "*"]), max_size=3),
    st.sampled_from(["k.md", "x.md", "b", "build", "a ", "-"]),
)


@given(st.lists(LINES, min_size=1, max_size=4), st.lists(PATHS, min_size=1, max_size=30, unique=True))
@example(["build/**", "!build/k.md"], ["build/k.md", "build/x.md", "build/a/k.md"])
@example(["build/", "!build/k.md"], ["build/k.md"])
@example(["build", "!build/", "# build", ""], ["build/k.md", "a/build"])
@example(["**/build/**", "!**/build/a/"], ["build/a/k.md", "c/build/a", "c/build/b"])
@example(["a/**/", "\\!a", "\\#b"], ["a/k.md", "a/b/k.md", "!a", "#b", "c/#b"])
@example(["a/**/k.md"], ["a/k.md", "a/b/c/k.md", "b/a/k.md"])
@example(["*.md", "!k.md"], ["k.md", "a/k.md", "a/x.md"])
def test_what_is_left_out_is_what_git_leaves_out(repository: Path, lines: list[str], paths: list[str]) -> None:
    assert left_out(lines, paths) == left_out_by_git(repository, lines, paths)


def test_a_folder_whose_contents_are_all_left_out_is_not_looked_into_unless_some_may_be_had_back() -> None:
    assert IgnoreRules(["**/private/**"]).ignore("a/private", folder=True)
    assert not IgnoreRules(["**/private/**", "!k.md"]).ignore("a/private", folder=True)
    for line in ("private/*/", "private/*.md", "private/?"):
        assert not IgnoreRules([line]).ignore("private", folder=True)


@pytest.mark.parametrize("line", ["!", "/", "!/", "//", "a[b", "[]", "[!]", "a\\", "[[:alpa:]]"])
def test_what_git_would_pass_over_in_silence_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"^(names nothing|has )"):
        IgnoreRules(["a", line])


@given(st.text(st.sampled_from("ab/*?[]!^-\\:. #ü\n"), max_size=12), st.text("ab/ü-", max_size=8))
def test_any_line_is_a_rule_or_refused(line: str, path: str) -> None:
    try:
        rules = IgnoreRules([line])
    except ValueError:
        return
    rules.ignore(path, folder=True)
