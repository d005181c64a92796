"""`sqmd index`: what it says, and what it ends with."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqmd.cli.exits import Exit
from sqmd.store.lock import writer_lock
from tests.sqmd.fakes import FakeEmbedder

from .conftest import Run


def test_it_indexes_the_watched_folders_and_counts_what_it_did(run: Run, notes: Path) -> None:
    first = run("index")
    assert (first.code, first.out) == (0, "2 indexed, 0 skipped, 0 moved, 0 removed, 0 errors\n") and first.err == ""
    (notes / "tea.md").rename(notes / "green.md")
    (notes / "deep/car.md").unlink()
    assert run("index").out == "0 indexed, 0 skipped, 1 moved, 1 removed, 0 errors\n"


def test_paths_may_be_files_and_folders_and_come_as_often_as_one_likes(run: Run, notes: Path, tmp_path: Path) -> None:
    (tmp_path / "else.mdx").write_text("# Else\n\nSomewhere else.\n", "utf-8")
    ran = run("index", "--path", notes / "tea.md", "--path", tmp_path / "else.mdx", "--json")
    assert ran.json == {"indexed": 2, "skipped": 0, "moved": 0, "removed": 0, "chunks": 3, "failed": []}
    assert run("index", "--path", "~/notes/deep").out.startswith("1 indexed")


def test_a_file_that_cannot_be_read_is_named_and_the_code_says_so_every_time(run: Run, notes: Path) -> None:
    (notes / "bad\x1b[31m.md").write_bytes(b"caf\xe9")
    for _ in range(2):
        ran = run("index")
        assert ran.code == Exit.INCOMPLETE and ran.out.endswith("1 errors\n")
        assert "bad\\u{1b}[31m.md: not UTF-8 at byte 3" in ran.err.replace("it is ", "") and ran.err.count("\n") == 1
    assert run("search", "tea").code == 0


def test_force_reads_and_embeds_everything_again(run: Run, indexed: Path, embedder: FakeEmbedder) -> None:
    embedder.embedded.clear()
    assert run("index", "--force").out.startswith("2 indexed") and len(embedder.embedded) == 3


def test_a_model_that_is_another_is_one_line_that_names_the_command(
    run: Run, indexed: Path, embedder: FakeEmbedder
) -> None:
    embedder.name = "other"
    ran = run("search", "tea")
    assert ran.code == Exit.UNUSABLE and "sqmd index --force" in ran.err and ran.err.count("\n") == 1
    assert run("index", "--force").code == 0 and run("search", "tea").code == 0


def test_an_embedder_that_is_down_leaves_text_that_can_be_searched(
    run: Run, notes: Path, embedder: FakeEmbedder
) -> None:
    embedder.down = True
    ran = run("index")
    assert ran.code == Exit.UNUSABLE and ran.err == "The embedding server does not answer.\n"
    found = run("search", "degrees")
    assert found.code == 0 and "tea.md:1-3" in found.out and "words only" in found.err


def test_somebody_else_who_indexes_is_named(run: Run, indexed: Path, home: Path) -> None:
    with writer_lock(str(home / ".sqmd/lancedb")):
        ran = run("index", "--json")
    assert ran.code == Exit.BUSY and ran.json["error"]["code"] == "index_busy"


def test_a_folder_that_is_not_there_is_one_line(run: Run, home: Path) -> None:
    ran = run("index", "--path", home / "nowhere")
    assert (ran.code, ran.err) == (Exit.USAGE, f"{home / 'nowhere'} is not there.\n")


def test_watch_and_json_exclude_each_other(run: Run, notes: Path) -> None:
    assert run("index", "--watch", "--json").code == Exit.USAGE


@pytest.mark.parametrize("path", ["~nobody-here/x", "~nobody-here"])
def test_a_path_that_names_nothing_is_one_line(run: Run, home: Path, path: str) -> None:
    ran = run("index", "--path", path, "--json")
    assert (ran.code, ran.json["error"]["code"]) == (Exit.USAGE, "invalid_input")
    assert ran.err.startswith("--path ") and ran.err.count("\n") == 1


def test_a_path_is_the_same_however_it_is_written(run: Run, notes: Path) -> None:
    assert run("index", "--path", notes).out.startswith("2 indexed")
    for path in ("../home/notes", f"{notes}/deep/..", "~/notes/", notes / "deep/../tea.md", "~/notes/./deep"):
        assert "0 indexed, " in run("index", "--path", path).out
    assert run("status", "--json").json["files"] == 2
