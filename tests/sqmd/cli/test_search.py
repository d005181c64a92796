"""`sqmd search` and `sqmd context`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqmd.cli.exits import Exit
from sqmd.cli.search import _MODES
from sqmd.search.results import MODES

from ..fakes import FakeEmbedder
from .conftest import Run


def test_a_result_in_a_pipe_is_one_line_of_place_breadcrumb_score_and_snippet(run: Run, indexed: Path) -> None:
    ran = run("search", "blue cup")
    first = ran.out.splitlines()[0].split("\t")
    assert first[:2] == [f"{indexed / 'tea.md'}:5-7", "Tea > Cups"] and 0 < float(first[2]) < 1
    assert first[3] == "## Cups The blue cup [red]belongs[/red] to Ada."


def test_other_words_of_the_same_meaning_find_it_and_words_alone_do_not(run: Run, indexed: Path) -> None:
    assert "car.md" in run("search", "vehicle", "--mode", "vector", "--top-k", "1").out
    nothing = run("search", "vehicle", "--mode", "fts")
    assert (nothing.code, nothing.out, nothing.err) == (Exit.INCOMPLETE, "", "Nothing was found.\n")


def test_a_filter_is_taken_literally(run: Run, indexed: Path) -> None:
    (indexed / "it's 100%.md").write_text("# Percent\n\nThe automobile again.\n", "utf-8")
    run("index")
    for text, hits in (("it's", 1), ("%", 1), ("s_100", 0), ("deep/", 1)):
        assert run("search", "automobile", "--filter", text, "--mode", "fts").out.count("\n") == hits


def test_json_holds_every_field_and_no_vector(run: Run, indexed: Path) -> None:
    answer = run("search", "tea", "--top-k", "1", "--json").json
    assert answer.keys() == {"results", "query", "total", "duration_ms"} and answer["total"] == 1
    assert answer["results"][0].keys() == {
        *"chunk_id file_id file_path heading_path heading_text heading_level section_index chunk_index".split(),
        *"text_raw token_count score line_start line_end text".split(),
    }


@pytest.mark.parametrize("query", ['"blue', "C++", "it's", "-tea", "(unclosed", "a:b", "*", "日本語", "--", "\ud800"])
def test_no_query_is_an_error(run: Run, indexed: Path, query: str) -> None:
    assert run("search", "--", query).code in (0, 1)


@pytest.mark.parametrize("args", [("--top-k", "0"), ("--top-k", "101"), ("--mode", "zzz"), ("--top-k", "abc")])
def test_what_is_out_of_bounds_is_one_line(run: Run, indexed: Path, args: tuple[str, str]) -> None:
    ran = run("search", "tea", *args, "--json")
    assert ran.code == Exit.USAGE and ran.json["error"]["code"] == "usage" and ran.err.count("\n") == 1


def test_while_vectors_are_missing_a_search_by_meaning_says_so(run: Run, indexed: Path, embedder: FakeEmbedder) -> None:
    (indexed / "new.md").write_text("# New\n\nThe zebra arrived by ship.\n", "utf-8")
    assert run("search", "tea").err == ""
    embedder.down = True
    assert run("index").code != 0
    embedder.down = False
    for mode in ("hybrid", "vector"):
        assert run("search", "tea", "--mode", mode).err.startswith("1 passages have no vector yet")
    assert run("search", "tea", "--mode", "fts").err == ""


@pytest.mark.parametrize("command", ["search", "context"])
def test_before_the_first_index_it_says_how_to_make_one(run: Run, home: Path, command: str) -> None:
    ran = run(command, "tea")
    assert (ran.code, ran.err) == (Exit.NOT_INDEXED, "not indexed yet: run sqmd index --path DIR\n")


def test_a_context_is_the_documents_text_with_its_sources_within_the_budget(run: Run, indexed: Path) -> None:
    ran = run("context", "blue cup")
    assert ran.out.startswith(f"Source: {indexed / 'tea.md'}\nSection: Tea > Cups\nLines: 5-7\n\n## Cups")
    assert len(run("context", "blue cup", "--max-tokens", "20").out.split()) <= 20
    assert run("context", "blue cup", "--max-tokens", "1").code == Exit.INCOMPLETE


def test_the_modes_are_those_of_the_search() -> None:
    assert _MODES == MODES
