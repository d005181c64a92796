"""add, search, list, show, correct, forget: what people type, and what they and their scripts get."""

from __future__ import annotations

import pytest

from squirrel_mcp.cli.exits import Exit

from .conftest import Run

pytestmark = pytest.mark.usefixtures("vault_dir")


def _add(run: Run, text: str, *options: str) -> str:
    ran = run("add", text, *options, "--json")
    assert ran.code == Exit.OK
    return str(ran.json["id"])


def test_what_was_added_is_found_shown_corrected_and_forgotten(run: Run) -> None:
    memory_id = _add(run, "The router is 10.0.7.1", "--entity", "router", "--tag", "network", "--tag", "home")
    found = run("search", "router", "--json").json
    assert [hit["id"] for hit in found["hits"]] == [memory_id]
    assert (found["total"], found["searched"], found["ranking"], found["stale"]) == (1, 1, "lexical", False)
    assert {"score", "lexicalScore", "semanticScore", "nearMiss"} <= found["hits"][0].keys()

    changed = run("correct", memory_id, "The router is 10.0.9.1", "--reason", "moved", "--json")
    assert changed.json == {"status": "updated", "id": memory_id, "revision": 2}
    shown = run("show", memory_id, "--history", "--json").json
    assert (shown["text"], shown["reason"], shown["tags"]) == ("The router is 10.0.9.1", "moved", ["network", "home"])
    assert [revision["text"] for revision in shown["history"]] == ["The router is 10.0.7.1"]

    gone = run("forget", memory_id, "--yes", "--json")
    assert gone.json == {"results": [{"status": "forgotten", "id": memory_id}]}
    assert run("search", "router").code == Exit.NOTHING
    assert run("show", memory_id).code == Exit.NOTHING
    assert run("forget", memory_id, "--yes").code == Exit.NOTHING
    assert run("correct", memory_id, "again").code == Exit.NOTHING


def test_the_same_twice_is_one_memory_and_a_like_one_is_named(run: Run) -> None:
    first = run("add", "Ada likes green tea", "--json").json
    again = run("add", "Ada likes  green tea", "--json").json
    assert (first["status"], again["status"], again["id"]) == ("saved", "already_present", first["id"])
    similar = run("add", "Ada likes black tea", "--json").json["similar"]
    assert [hit["id"] for hit in similar] == [first["id"]]
    assert "Ada likes green tea" in run("add", "Ada likes white tea").err


def test_text_may_come_from_stdin_without_its_last_line_end(run: Run) -> None:
    ran = run("add", "-", "--json", stdin="zwei\nZeilen ☕\r\n".encode())
    assert run("show", ran.json["id"], "--json").json["text"] == "zwei\nZeilen ☕"
    run("correct", ran.json["id"], "-", stdin=b"one line\n")
    assert run("show", ran.json["id"], "--json").json["text"] == "one line"


@pytest.mark.parametrize(
    ("stdin", "said"),
    [(b"\xff\xfe", "UTF-8"), (b"x" * 70_000, "longer than"), (b"", "empty"), (b"x" * 16_001, "16,001")],
)
def test_text_that_cannot_be_stored_is_refused_in_a_sentence(run: Run, stdin: bytes, said: str) -> None:
    ran = run("add", "-", stdin=stdin)
    assert ran.code == Exit.USAGE and said in ran.err and ran.err.count("\n") == 1
    assert run("list").code == Exit.NOTHING


def test_in_a_pipe_a_memory_is_one_line_of_tab_separated_fields(run: Run) -> None:
    memory_id = _add(run, "first line\n\tsecond line")
    (line,) = run("list").out.splitlines()
    cells = line.split("\t")
    assert (cells[0], cells[2], cells[3]) == (memory_id, "fact", "first line second line")
    assert len(run("search", "second").out.splitlines()) == 1


def test_nothing_in_a_memory_acts_on_a_terminal(run: Run) -> None:
    hostile = "red \x1b[31m bell \x07 bidi \u202e tag \U000e0041 c1 \x9b"
    memory_id = run("add", "-", "--entity", hostile, "--json", stdin=hostile.encode()).json["id"]
    outputs = [
        run("list"), run("search", "bell"), run("show", memory_id), run("add", hostile + " again"),
        run("correct", memory_id, "new", "--expected-revision", "9"),
    ]  # fmt: skip
    for ran in outputs:
        assert not {"\x1b", "\x07", "\u202e", "\U000e0041", "\x9b"} & set(ran.out + ran.err)
    assert run("show", memory_id, "--json").out.isascii()
    assert run("show", memory_id, "--json").json["text"] == hostile


def test_any_beginning_of_an_id_will_do_that_only_one_memory_has(run: Run) -> None:
    memory_id = _add(run, "one")
    assert run("show", memory_id[:8].upper(), "--json").json["id"] == memory_id
    assert run("show", f"memory://{memory_id}", "--json").json["id"] == memory_id
    assert run("show", memory_id[:3]).code == Exit.USAGE
    assert run("show", "z" * 8).code == Exit.NOTHING
    assert run("show", "").code == Exit.USAGE


def test_filters_narrow_a_list_and_a_search(run: Run) -> None:
    wanted = _add(run, "tea one", "--entity", "Ada", "--category", "preference", "--tag", "drink", "--tag", "hot")
    _add(run, "tea two", "--entity", "Bob", "--tag", "drink")
    for options in (("--entity", "ADA"), ("--category", "preference"), ("--tag", "drink", "--tag", "hot")):
        assert [item["id"] for item in run("list", *options, "--json").json["memories"]] == [wanted]
        assert [item["id"] for item in run("search", "tea", *options, "--json").json["hits"]] == [wanted]
    assert run("search", "tea", "--until", "2020-01-01").code == Exit.NOTHING
    assert run("search", "tea", "--since", "2020-01-01", "--json").json["total"] == 2
    bad = run("search", "tea", "--since", "last week")
    assert bad.code == Exit.USAGE and "since" in bad.err


def test_a_list_goes_on_from_its_cursor_and_all_lists_all(run: Run) -> None:
    ids = [_add(run, f"memory number {number}") for number in range(5)]
    first = run("list", "--limit", "2", "--order", "oldest", "--json").json
    rest = run("list", "--limit", "9", "--cursor", first["nextCursor"], "--json").json
    assert [item["id"] for item in first["memories"] + rest["memories"]] == ids
    assert (first["total"], rest["nextCursor"]) == (5, None)
    assert len(run("list", "--all", "--json").json["memories"]) == 5
    assert "2 of 5" in run("list", "--limit", "2").err
    assert run("list", "--cursor", "nonsense").code == Exit.USAGE


def test_a_change_made_by_somebody_else_is_a_conflict_that_shows_it(run: Run) -> None:
    memory_id = _add(run, "one")
    run("correct", memory_id, "two")
    ran = run("correct", memory_id, "three", "--expected-revision", "1", "--json")
    assert ran.code == Exit.CONFLICT
    assert (ran.json["status"], ran.json["revision"], ran.json["current"]["text"]) == ("conflict", 2, "two")
    assert run("forget", memory_id, "--yes", "--expected-revision", "1").code == Exit.CONFLICT
    assert "two" in run("correct", memory_id, "three", "--expected-revision", "1").err


def test_a_correction_changes_what_is_named_and_clears_what_is_empty(run: Run) -> None:
    memory_id = _add(run, "one", "--entity", "Ada", "--tag", "a", "--keyword", "k", "--source", "here")
    run("correct", memory_id, "--entity", "", "--no-tags", "--keyword", "new")
    shown = run("show", memory_id, "--json").json
    assert (shown["text"], shown["entity"], shown["tags"], shown["keywords"], shown["source"]) == (
        "one", "", [], ["new"], "here",
    )  # fmt: skip
    assert run("correct", memory_id).code == Exit.USAGE
    assert run("correct", memory_id, "--tag", "a", "--no-tags").code == Exit.USAGE
    assert run("correct", memory_id, "one", "--json").json["status"] == "unchanged"


def test_forgetting_asks_unless_told_not_to(run: Run) -> None:
    memory_id = _add(run, "one")
    ran = run("forget", memory_id)
    assert ran.code == Exit.USAGE and "--yes" in ran.err
    assert run("show", memory_id).code == Exit.OK


def test_a_typing_error_in_one_id_forgets_none(run: Run) -> None:
    memory_id = _add(run, "one")
    assert run("forget", memory_id, "zzzz", "--yes").code == Exit.NOTHING
    assert run("show", memory_id).code == Exit.OK


def test_a_nonsense_query_says_how_many_were_searched(run: Run) -> None:
    _add(run, "one")
    ran = run("search", "qqqq")
    assert (ran.code, ran.out) == (Exit.NOTHING, "") and "1 memories" in ran.err
    assert run("search", "qqqq", "--json").json["searched"] == 1
