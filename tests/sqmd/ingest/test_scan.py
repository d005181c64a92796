"""Finding Markdown below a folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from sqmd.errors import NoSuchPath
from sqmd.ingest.scan import Selection, anchor_of, scan

EXTENSIONS = (".md", ".mdx")
IGNORED = ("**/.git/**", "**/node_modules/**", "**/.obsidian/**")


def tree(root: Path, *names: str) -> Path:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, encoding="utf-8")
    return root


def unheard(path: Path, reason: str) -> None:
    raise AssertionError(f"{path}: {reason}")


def found(root: Path, *patterns: str) -> list[str]:
    return [each.path.relative_to(root).as_posix() for each in scan(root, EXTENSIONS, patterns, unheard)]


def test_files_are_found_by_their_ending_in_either_case_and_in_a_fixed_order(tmp_path: Path) -> None:
    root = tree(tmp_path, "b.md", "a/z.MDX", "a/b/c.md", "README.MD", "x.txt", "md", "c.md.bak", "Z/a.md")
    assert found(root) == ["README.MD", "b.md", "Z/a.md", "a/z.MDX", "a/b/c.md"]


def test_time_and_size_are_the_files(tmp_path: Path) -> None:
    root = tree(tmp_path, "a.md")
    os.utime(root / "a.md", ns=(5, 1_700_000_000_123_456_700))
    (only,) = scan(root, EXTENSIONS, (), unheard)
    assert only.path.is_absolute() and only.size == 4
    assert only.mtime_ns == (root / "a.md").stat().st_mtime_ns


def test_patterns_are_gitignore_rules_anchored_at_the_root(tmp_path: Path) -> None:
    root = tree(tmp_path, "build/a.md", "docs/build/a.md", "draft.md", "docs/draft.md", "docs/x/keep.md")
    assert found(root, "build/**") == ["draft.md", "docs/draft.md", "docs/build/a.md", "docs/x/keep.md"]
    assert found(root, "build/") == ["draft.md", "docs/draft.md", "docs/x/keep.md"]
    assert found(root, "/draft.md", "build") == ["docs/draft.md", "docs/x/keep.md"]
    assert found(root, "*.md", "!keep.md") == ["docs/x/keep.md"]
    # As git has it: what lies in an ignored folder cannot be had back.
    assert found(root, "docs/x/", "!docs/x/keep.md", "build", "draft.md") == []


def test_the_default_patterns_leave_the_folders_of_programs_out(tmp_path: Path) -> None:
    root = tree(tmp_path, ".git/a.md", "x/.git/b/a.md", "node_modules/p/README.md", ".obsidian/a.md", "git/a.md")
    assert found(root, *IGNORED) == ["git/a.md"]


def test_what_a_rule_has_back_is_found_in_a_folder_whose_contents_are_ignored(tmp_path: Path) -> None:
    root = tree(tmp_path, "build/keep.md", "build/a.md", "build/x/keep.md", "x/node_modules/keep.md", "own.md")
    assert found(root, "build/**", "!build/keep.md", *IGNORED) == ["own.md", "build/keep.md"]
    assert found(root, "build/", "!build/keep.md", *IGNORED) == ["own.md"]


@pytest.mark.parametrize(
    "start", ["sub", "sub/build", "sub/build/x.md", "build", "build/deep", "build/x.md", "a.md", "."]
)
@pytest.mark.parametrize("pattern", ["build/**", "build/", "/build", "sub/build/", "*.md", "x.md", "a.md"])
def test_wherever_a_scan_starts_it_finds_what_one_of_the_anchor_finds_there(
    tmp_path: Path, start: str, pattern: str
) -> None:
    root = tree(tmp_path, "a.md", "sub/a.md", "sub/build/x.md", "build/x.md", "build/deep/a.md")
    below = root / start
    whole = [each.path for each in scan(root, EXTENSIONS, (pattern,), unheard, anchor=root)]
    part = [each.path for each in scan(below, EXTENSIONS, (pattern,), unheard, anchor=root)]
    assert part == [path for path in whole if path.is_relative_to(below)]
    if below.is_dir():
        selection = Selection(below, EXTENSIONS, (pattern,), root)
        assert [path for path in sorted(root.rglob("*.md")) if selection.holds(path)] == sorted(part)


def test_without_an_anchor_the_rules_are_anchored_where_the_scan_starts(tmp_path: Path) -> None:
    root = tree(tmp_path, "build/build/a.md", "build/b.md")
    assert found(root / "build", "/build/") == ["b.md"]
    for anchor in (None, root / "build/b.md", root / "build"):  # of a file: its folder
        assert list(scan(root / "build/b.md", EXTENSIONS, ("/b.md",), unheard, anchor=anchor)) == []
    assert len(list(scan(root / "build/b.md", EXTENSIONS, ("/build/",), unheard))) == 1


def test_the_anchor_of_a_path_is_the_innermost_folder_that_holds_it(tmp_path: Path) -> None:
    folders = [tmp_path / "other", tmp_path / "notes/sub", tmp_path / "notes"]
    for name, anchor in (("notes", "notes"), ("notes/x/../a.md", "notes"), ("notes/sub/a.md", "notes/sub")):
        assert anchor_of(tmp_path / name, folders) == tmp_path / anchor
    assert anchor_of(tmp_path / "elsewhere", folders) is None and anchor_of(tmp_path / "notes2", folders) is None


def test_a_file_of_another_ending_that_is_named_is_told(tmp_path: Path) -> None:
    path = tree(tmp_path, "a.markdown") / "a.markdown"
    said: list[tuple[Path, str]] = []
    assert list(scan(path, EXTENSIONS, (), lambda *what: said.append(what))) == []
    assert said == [(path, "its ending is none of watcher.extensions")]


def test_a_file_is_found_by_itself(tmp_path: Path) -> None:
    root = tree(tmp_path, "a.md")
    assert [each.path for each in scan(root / "a.md", EXTENSIONS, (), unheard)] == [root / "a.md"]


def test_a_path_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(NoSuchPath, match=r"gone is not there\.$"):
        list(scan(tmp_path / "gone", EXTENSIONS, (), unheard))


def test_links_in_a_circle_end_and_each_folder_is_seen_once_under_its_own_path(tmp_path: Path) -> None:
    root = tree(tmp_path / "root", "b/one.md", "c/two.md")
    (root / "a").symlink_to(root / "b", target_is_directory=True)
    (root / "b/up").symlink_to(root, target_is_directory=True)
    (root / "c/itself").symlink_to(root / "c/itself")
    (root / "c/itself.md").symlink_to(root / "c/itself.md")
    (root / "0.md").symlink_to(root / "b/one.md")
    (root / "dead.md").symlink_to(root / "nothing")
    assert found(root) == ["b/one.md", "c/two.md"]


def test_links_to_what_lies_outside_are_followed(tmp_path: Path) -> None:
    tree(tmp_path / "outside", "x/a.md", "b.md")
    root = tree(tmp_path / "root", "own.md")
    (root / "link").symlink_to(tmp_path / "outside/x", target_is_directory=True)
    (root / "again").symlink_to(tmp_path / "outside/x", target_is_directory=True)
    (root / "b.md").symlink_to(tmp_path / "outside/b.md")
    assert found(root) == ["own.md", "again/a.md", "b.md"]
    assert found(root, "again/") == ["own.md", "b.md", "link/a.md"]


def test_two_identical_files_are_two(tmp_path: Path) -> None:
    root = tree(tmp_path, "a.md")
    os.link(root / "a.md", root / "b.md")
    assert found(root) == ["a.md", "b.md"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no fifos here")
def test_what_is_no_plain_file_is_left_out(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.md")
    (tmp_path / "folder.md").mkdir()
    assert found(tmp_path) == []


@pytest.mark.skipif(sys.platform != "linux", reason="only there may a name be any bytes")
def test_a_name_that_is_no_text_is_reported_and_the_others_are_found(tmp_path: Path) -> None:
    tree(tmp_path, "a.md", "z.md")
    with open(os.path.join(os.fsencode(tmp_path), b"caf\xe9.md"), "wb"):
        pass
    told: list[str] = []
    names = [each.path.name for each in scan(tmp_path, EXTENSIONS, (), lambda path, why: told.append(why))]
    assert names == ["a.md", "z.md"] and told == ["its name is not Unicode"]


def test_a_folder_that_cannot_be_listed_is_told_and_does_not_look_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tree(tmp_path, "a.md", "shut/b.md", "z/c.md")
    listing = os.scandir

    def scandir(path: Path) -> object:
        # Modes would do, but nothing is shut for the superuser, whom some machines run tests as.
        if Path(path).name == "shut":
            raise PermissionError(13, "Permission denied")
        return listing(path)

    monkeypatch.setattr("sqmd.ingest.scan.os.scandir", scandir)
    told: list[tuple[str, str]] = []
    names = [each.path.name for each in scan(root, EXTENSIONS, (), lambda path, why: told.append((path.name, why)))]
    assert names == ["a.md", "c.md"] and told == [("shut", "permission denied")]
    for pattern in ("shut/", "**/shut/**"):
        assert found(root, pattern) == ["a.md", "z/c.md"]


def test_a_selection_says_what_a_scan_would_find(tmp_path: Path) -> None:
    names = ["a.md", "x/b.md", "build/c.md", "x/build/d.md", "e.txt", "x/.git/f.md", "keep/g.md"]
    root = tree(tmp_path, *names)
    patterns = ("build/**", *IGNORED, "keep/", "!keep/g.md")
    selection = Selection(root, EXTENSIONS, patterns)
    assert sorted(name for name in names if selection.holds(root / name)) == sorted(found(root, *patterns))
    assert not selection.holds(root) and not selection.holds(root.parent / "a.md")


@pytest.mark.skipif(sys.platform != "linux", reason="names are bytes only there")
def test_a_name_that_is_no_text_is_skipped_by_name_wherever_it_stands(tmp_path: Path) -> None:
    root = tree(tmp_path / "root", "good.md")
    bad = os.fsdecode(b"caf\xe9")
    for where in (root / f"{bad}.md", root / bad / "inside.md", tmp_path / bad / "linked.md", tmp_path / "out.md"):
        where.parent.mkdir(exist_ok=True)
        where.write_bytes(b"text")
    (root / "folder").symlink_to(tmp_path / bad, target_is_directory=True)
    (root / f"{bad}-link.md").symlink_to(tmp_path / "out.md")
    skipped: list[tuple[Path, str]] = []

    def names(start: Path) -> list[str]:
        skipped.clear()
        return [one.path.name for one in scan(start, EXTENSIONS, (), skipped=lambda *what: skipped.append(what))]

    assert names(root) == ["good.md", "linked.md"]
    assert {path.name for path, _ in skipped} == {f"{bad}.md", "inside.md", f"{bad}-link.md"}
    assert {reason for _, reason in skipped} == {"its name is not Unicode"}
    for start in (root / bad, root / f"{bad}.md"):
        assert names(start) == [] and [path for path, _ in skipped] == [start]
