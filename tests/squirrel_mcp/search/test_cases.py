"""One test for each line of two files: the cases that came with the ranking rules, and more of the same kinds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from squirrel_mcp.memory import Memory
from squirrel_mcp.search import WordRanker
from squirrel_mcp.search.lexical import NOTHING_TO_SEARCH
from tests.squirrel_mcp.search.samples import NOW, memory

HERE = Path(__file__).parent
CASES = [
    json.loads(line)
    for name in ("search_words.jsonl", "more_words.jsonl")
    for line in (HERE / name).read_text("utf-8").splitlines()
]


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_words_find_what_the_rules_say(case: dict[str, Any]) -> None:
    ranker = WordRanker()
    ranker.put_many(_memory(name, fields) for name, fields in case["memories"].items())

    answer = ranker.search(case["query"], now=NOW)

    names = [hit.memory.source for hit in answer.hits]
    assert names[: len(case["expect"])] == case["expect"], case["why"]
    assert not set(case["absent"]) & set(names), case["why"]
    found = {hit.memory.source: hit.lexical_score for hit in answer.hits}
    for name, expected in (case["lexicalScore"] or {}).items():
        assert found[name] == pytest.approx(expected, abs=1e-12), case["why"]
    assert answer.searched == len(case["memories"])
    assert answer.total == len(answer.hits)
    assert (answer.note == NOTHING_TO_SEARCH) == (case["why"].endswith("note")), answer.note


def test_no_two_cases_have_the_same_name() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES) >= 52 + 60


def _memory(name: str, fields: str | dict[str, Any]) -> Memory:
    if isinstance(fields, str):
        fields = {"text": fields}
    lists = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    # `source` is not searched: it carries the name of the case's memory, in whose order the ids are.
    return memory(**{"memory_id": name.rjust(32, "0"), "source": name, **fields, **lists})
