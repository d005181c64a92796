"""What diagnose makes of a file of queries and of an answer."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from squirrel_mcp.errors import InvalidInput
from squirrel_mcp.memory import Memory
from squirrel_mcp_embeddings.diagnosis import MAX_BYTES, Finding, Wish, find, fitting, parse
from squirrel_mcp_embeddings.hybrid import HybridRanker
from squirrel_mcp_embeddings.memory_text import text_of
from tests.real_model import real_model

NOW = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def memory(number: int, text: str, entity: str = "", *tags: str) -> Memory:
    return Memory(f"{number:032x}", text, NOW, NOW, entity=entity, tags=tags)


MEMORIES = (
    memory(1, "The dog is afraid of thunder and hides in the bathroom.", "Biscuit", "pets"),
    memory(2, "Invoices are sent on the last working day of a month.", "Ledger", "work"),
    memory(3, "Drinks crème de menthe after dinner.", "Zoë"),
    memory(4, "Η γάτα κοιμάται στον καναπέ."),
    memory(5, "The cat sleeps on the sofa.", "Moth", "pets"),
)


@pytest.fixture(scope="module")
def ranker() -> Iterator[HybridRanker]:
    with real_model() as model:
        found = HybridRanker()
        found.join(model)
        found.put_many(MEMORIES)
        vectors = model.embed([text_of(each) for each in MEMORIES])
        found.settle(MEMORIES, [*vectors[:3], None, vectors[4]])  # which memories get one is the background's choice
        yield found


def test_queries_are_read_in_their_order() -> None:
    raw = '\ufeff[{"query": "wer?", "expect": "Zoë"}, {"expect": "b", "query": "a"}]'.encode()
    assert parse(raw) == [Wish("wer?", "Zoë"), Wish("a", "b")]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"{}",
        b"[]",
        b"[1]",
        b'[{"query": "canary"}]',
        b'[{"query": "canary", "expect": "b", "expected": "c"}]',
        b'[{"query": "canary", "expect": " "}]',
        b'[{"query": "canary", "expect": "\xc2\xad"}]',  # a soft hyphen: nothing is left of it, and all would fit
        b'[{"query": "", "expect": "canary"}]',
        b'[{"query": 1, "expect": "canary"}]',
        b'[{"query": "canary", "expect": "b"}] canary',
        b" " * (MAX_BYTES + 1),
    ],
)
def test_a_file_of_something_else_is_refused_in_one_sentence_that_quotes_nothing(raw: bytes) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse(raw)
    sentence = str(refused.value)
    assert sentence.startswith("The file ") and sentence.endswith("...].") and "\n" not in sentence
    assert "canary" not in sentence and refused.value.__context__ is None


@pytest.mark.parametrize(
    ("expect", "numbers"),
    [
        ("THUNDER  and", [1]),
        ("creme de menthe", [3]),
        ("CRÈME", [3]),
        ("zoe", [3]),
        ("pets", [1, 5]),
        ("γατα", []),  # only Latin accents are let go
        ("ΓΆΤΑ", [4]),
        ("nothing like it", []),
    ],
)
def test_a_piece_of_text_entity_or_tag_tells_the_memory(expect: str, numbers: list[int]) -> None:
    assert [int(each.id, 16) for each in fitting(MEMORIES, expect)] == numbers


def test_a_match_a_near_miss_and_what_is_neither_are_told_apart(ranker: HybridRanker) -> None:
    match, near, far = (
        find(ranker, MEMORIES, Wish("thunder bathroom", expect), NOW) for expect in ("thunder", "sofa", "γάτα")
    )
    assert (match.rank, match.near_miss, match.by_meaning) == (1, None, 1)
    assert match.cosine is not None and match.cosine > 0.35 and match.below(0.35) is None
    assert near.rank is None and (near.near_miss, near.by_meaning) == (2, 3)
    assert near.cosine is not None and near.below(0.35) == pytest.approx(0.35 - near.cosine)
    assert (far.rank, far.near_miss, far.by_meaning, far.cosine, far.below(0.35)) == (None,) * 5


def test_a_query_that_the_model_does_not_read_is_ranked_by_words(ranker: HybridRanker) -> None:
    finding = find(ranker, MEMORIES, Wish("πού είναι η γάτα", "καναπέ"), NOW)
    assert finding == Finding("πού είναι η γάτα", 1, MEMORIES[3].id, rank=1)


@pytest.mark.parametrize(("expect", "count"), [("pets", 2), ("nobody", 0)])
def test_several_or_no_memories_that_fit_are_counted_and_not_ranked(
    ranker: HybridRanker, expect: str, count: int
) -> None:
    assert find(ranker, MEMORIES, Wish("thunder", expect), NOW) == Finding("thunder", count)
