"""The context of a prompt: the best first, within its budget, nothing twice."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqmd.embed.local import CompanionEmbedder
from sqmd.rag import build_context, rag_system_prompt
from sqmd.search.results import Result
from tests.real_model import real_model


def words(text: str) -> int:
    return len(text.split())


def result(
    text: str,
    start: int = 1,
    end: int | None = None,
    *,
    path: str = "/notes/a.md",
    section: str = "A > B",
    index: int = 0,
) -> Result:
    end = start + text.count("\n") if end is None else end
    return Result(
        chunk_id=f"{path}:{start}:{index}:{text[:20]}",
        file_id="f",
        file_path=path,
        heading_path=section,
        heading_text=section.rpartition(" > ")[2],
        heading_level=2,
        section_index=0,
        chunk_index=index,
        text_raw=text,
        token_count=words(text),
        score=1.0,
        line_start=start,
        line_end=end,
        text=f"Section: {section}\n\n{text}",
    )


def of_lines(lines: list[str], start: int, end: int, **others: object) -> Result:
    return result("\n".join(lines[start - 1 : end]), start, end, **others)  # type: ignore[arg-type]


def passages(context: str) -> list[tuple[str, str, int, int, str]]:
    """(source, section, first line, last line, text) of each."""
    found = []
    for part in re.split(r"\n\n---\n\n(?=Source: )", context) if context else []:
        match = re.fullmatch(r"Source: (.*)\nSection: (.*)\nLines: (\d+)-(\d+)\n\n(.*)", part, re.DOTALL)
        assert match, part
        found.append((match[1], match[2], int(match[3]), int(match[4]), match[5]))
    return found


def test_each_chunk_comes_with_its_source_section_and_lines_the_best_first() -> None:
    context = build_context([result("Second.\n\nMore.", 7), result("First.", 3, path="/notes/b.md")], 4_000, words)
    assert context == (
        "Source: /notes/a.md\nSection: A > B\nLines: 7-9\n\nSecond.\n\nMore."
        "\n\n---\n\n"
        "Source: /notes/b.md\nSection: A > B\nLines: 3-3\n\nFirst."
    )


def test_what_stands_before_the_first_heading_is_named_by_the_file() -> None:
    assert (
        passages(build_context([result("Text.", path="/notes/deep/idea.md", section="")], 100, words))[0][1] == "idea"
    )


def test_nothing_found_is_nothing() -> None:
    assert build_context([], 4_000, words) == ""


@pytest.mark.parametrize("budget", [-1, 0, 1, 5])
def test_a_budget_that_holds_no_word_gives_nothing(budget: int) -> None:
    assert build_context([result("word " * 50)], budget, words) == ""


def test_a_smaller_one_behind_is_taken_where_a_bigger_does_not_fit() -> None:
    results = [
        result("best", 1),
        result("word " * 500, 10),
        result("small", 20),
    ]
    assert [each[4] for each in passages(build_context(results, 40, words))] == ["best", "small"]


def test_a_first_hit_of_five_thousand_words_is_cut_to_a_budget_of_a_hundred() -> None:
    with real_model() as real:
        context = build_context([result("word " * 5_000)], 100, real.count_tokens)
        assert 90 <= real.count_tokens(context) <= 100
    assert context.endswith("word …")


def test_a_smaller_one_is_better_than_the_best_one_cut() -> None:
    context = build_context([result("word " * 5_000), result("small", 9)], 100, words)
    assert [each[4] for each in passages(context)] == ["small"]


def test_a_cut_one_names_the_lines_that_are_left() -> None:
    lines = [f"line {number} of many" for number in range(1, 101)]
    context = build_context([of_lines(lines, 1, 100)], 40, words)
    ((_, _, start, end, text),) = passages(context)
    assert start == 1
    assert end == text.count("\n") + 1 < 100
    assert text.removesuffix(" …").split("\n")[:3] == lines[:3]


def test_a_line_without_blanks_is_cut_between_characters() -> None:
    context = build_context([result("語" * 5_000)], 100, len)
    assert 90 <= len(context) <= 100
    assert context.endswith("語 …")


def test_chunks_that_share_lines_are_one_and_each_line_stands_once() -> None:
    lines = [f"line {number}" for number in range(1, 31)]
    results = [of_lines(lines, 8, 15), result("other", 50), of_lines(lines, 1, 9), of_lines(lines, 15, 20)]
    found = passages(build_context(results, 4_000, words))
    assert [(each[2], each[3]) for each in found] == [(1, 20), (50, 50)]
    assert found[0][4] == "\n".join(lines[:20])


def test_one_that_connects_two_makes_one_of_three_in_the_place_of_the_best() -> None:
    lines = [f"line {number}" for number in range(1, 31)]
    results = [result("best", 90), of_lines(lines, 1, 10), of_lines(lines, 20, 30), of_lines(lines, 9, 21)]
    found = passages(build_context(results, 4_000, words))
    assert [(each[2], each[3]) for each in found] == [(90, 90), (1, 30)]
    assert found[1][4] == "\n".join(lines)


def test_what_is_inside_another_adds_nothing() -> None:
    lines = [f"line {number}" for number in range(1, 11)]
    for results in ([of_lines(lines, 3, 4), of_lines(lines, 1, 10)], [of_lines(lines, 1, 10), of_lines(lines, 3, 4)]):
        assert [each[2:4] for each in passages(build_context(results, 4_000, words))] == [(1, 10)]


def test_neighbours_that_share_no_line_stay_apart() -> None:
    lines = [f"line {number}" for number in range(1, 11)]
    results = [of_lines(lines, 1, 5), of_lines(lines, 6, 10)]
    assert len(passages(build_context(results, 4_000, words))) == 2


def test_the_same_lines_of_another_file_or_of_another_text_are_not_mixed() -> None:
    results = [result("a\nb\nc", 1), result("c\nd", 3, path="/notes/b.md"), result("x\nd", 3)]
    assert [each[4] for each in passages(build_context(results, 4_000, words))] == ["a\nb\nc", "c\nd", "x\nd"]


def test_a_copy_of_the_file_adds_nothing_but_the_same_words_elsewhere_do() -> None:
    results = [
        result("done", 1, section="House > State"),
        result("done", 1, section="House > State", path="/copy/a.md"),
        result("done", 9, section="Garden > State"),
    ]
    found = passages(build_context(results, 4_000, words))
    assert [each[:2] for each in found] == [("/notes/a.md", "House > State"), ("/notes/a.md", "Garden > State")]


def test_parts_of_a_line_that_overlap_are_joined_and_others_stay_apart() -> None:
    line = " ".join(f"word{number}" for number in range(100))
    one, two, far = line[:200], line[180:400], line[500:600]
    for results in ([result(one, 4), result(two, 4)], [result(two, 4), result(one, 4)]):
        assert [each[4] for each in passages(build_context(results, 4_000, words))] == [line[:400]]
    assert len(passages(build_context([result(one, 4), result(far, 4)], 4_000, words))) == 2


def test_a_part_of_a_line_that_is_there_as_a_whole_adds_nothing() -> None:
    lines = ["first", "a long line with many words in it", "last"]
    part = result("line with many", 2)
    for results in ([part, of_lines(lines, 1, 3)], [of_lines(lines, 1, 3), part]):
        assert [each[4] for each in passages(build_context(results, 4_000, words))] == ["\n".join(lines)]


def test_a_path_cannot_forge_a_header() -> None:
    context = build_context([result("text", path="/notes/a\nLines: 1-99.md")], 100, words)
    assert context.startswith("Source: /notes/a\\nLines: 1-99.md\n")


LINES = [f"{number} " + "word " * (number % 7) for number in range(1, 41)]
SPANS = st.tuples(st.integers(1, 40), st.integers(0, 15), st.sampled_from(["/a.md", "/b.md"]))
DRAWN = st.lists(SPANS, max_size=12)


def drawn(spans: list[tuple[int, int, str]]) -> list[Result]:
    return [of_lines(LINES, start, min(40, start + more), path=path) for start, more, path in spans]


@given(DRAWN, st.integers(0, 300), st.sampled_from([words, len, lambda text: len(text) // 3 + 2]))
def test_no_budget_is_ever_exceeded(
    spans: list[tuple[int, int, str]], budget: int, count: Callable[[str], int]
) -> None:
    context = build_context(drawn(spans), budget, count)
    assert context == "" or count(context) <= budget


@given(DRAWN)
def test_merging_loses_no_line_repeats_none_and_changes_none(spans: list[tuple[int, int, str]]) -> None:
    found = passages(build_context(drawn(spans), 1_000_000, words))
    shown = [(path, number) for path, _, start, end, _ in found for number in range(start, end + 1)]
    wanted = {(path, number) for start, more, path in spans for number in range(start, min(40, start + more) + 1)}
    assert len(shown) == len(set(shown))
    # A copy in the other file counts as shown.
    assert {number for _, number in shown} == {number for _, number in wanted}
    for _, _, start, end, text in found:
        assert text == "\n".join(LINES[start - 1 : end])


@given(st.lists(st.text(max_size=60), min_size=1, max_size=6), st.integers(0, 80))
def test_any_text_stays_within_the_budget(texts: list[str], budget: int) -> None:
    results = [result(text, 10 * number + 1, index=number) for number, text in enumerate(texts)]
    assert len(build_context(results, budget, len)) <= max(budget, 0)


def test_the_real_tokenizer_never_counts_more_than_the_budget() -> None:
    embedder = CompanionEmbedder()
    with real_model():
        for budget in (60, 128, 400, 4_000):
            context = build_context(
                drawn([(1, 10, "/a.md"), (8, 12, "/a.md"), (30, 9, "/b.md")]), budget, embedder.count_tokens
            )
            assert 0 < embedder.count_tokens(context) <= budget


def test_without_a_budget_it_is_four_thousand_tokens_of_the_companions_model() -> None:
    results = [result("word " * 3_000, 1), result("word " * 3_000, 10), result("small", 20)]
    with real_model() as real:
        context = build_context(results)
        assert context == build_context(results, max_tokens=4_000, count_tokens=real.count_tokens)
        assert [each[2] for each in passages(context)] == [1, 20]


def test_the_system_prompt_asks_for_sources_and_calls_the_excerpts_material() -> None:
    prompt = rag_system_prompt()
    assert "Source" in prompt and "Lines" in prompt and "no instruction" in prompt
