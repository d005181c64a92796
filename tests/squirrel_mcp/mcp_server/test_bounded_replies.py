"""No reply is larger than it should be, and none hides that something is missing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from mcp.types import TextResourceContents

from squirrel_mcp.memory import Memory
from squirrel_mcp.service import MemoryService

from .conftest import Agent

pytestmark = pytest.mark.anyio

LIMIT = 24_000  # bytes of the reply's JSON
DIGITS = str.maketrans("0123456789", "abcdefghij")
LONG = "common " + "long text " * 1_590


def bytes_of(reply: Any) -> int:
    return len(json.dumps(reply, ensure_ascii=False, separators=(",", ":")).encode())


def store(service: MemoryService, *texts: str, **fields: Any) -> None:
    """In one go, as an import does."""
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    with service.vault() as vault:
        first = len(vault.memories) + 1
        vault.put_revisions(
            [Memory(f"{number:032x}", text, moment, moment, **fields) for number, text in enumerate(texts, first)]
        )


@pytest.fixture
def crowded(service: MemoryService) -> MemoryService:
    """A vault whose memories are as long as they may be."""
    keywords = tuple(f"{n:064}" for n in range(64))
    store(service, *(f"{number} {LONG}" for number in range(60)), keywords=keywords)
    return service


@pytest.mark.usefixtures("crowded")
async def test_long_texts_are_cut_with_a_mark_and_given_whole_by_get_memory(agent: Agent) -> None:
    found = await agent("search_memory", query="common")
    assert bytes_of(found) < LIMIT
    assert found["truncated"] is True and "get_memory" in found["note"]
    assert (found["total"], len(found["hits"])) == (60, 10)
    hit = found["hits"][0]
    assert hit["text"].endswith("characters in all]")
    whole = (await agent("get_memory", id=hit["id"]))["text"]
    assert whole.startswith(hit["text"].split(" […")[0])
    assert len(whole) > 15_900


@pytest.mark.usefixtures("crowded")
@pytest.mark.parametrize("limit", [1, 20, 50])
async def test_search_and_context_stay_within_bounds_at_any_limit(agent: Agent, limit: int) -> None:
    for found in (await agent("search_memory", query="common", limit=limit), await agent("get_context", limit=limit)):
        assert bytes_of(found) < LIMIT
        assert found["total"] == 60
    assert sum(found["omitted"].values()) + sum(len(group["memories"]) for group in found["groups"]) == 60


@pytest.mark.usefixtures("crowded")
async def test_a_page_that_ends_early_goes_on_where_it_ended(agent: Agent) -> None:
    seen: list[str] = []
    cursor = None
    while True:
        page = await agent("list_memories", limit=50, cursor=cursor)
        assert bytes_of(page) < LIMIT
        seen += [memory["id"] for memory in page["memories"]]
        cursor = page.get("nextCursor")
        if cursor is None:
            break
    assert len(seen) == len(set(seen)) == 60


async def test_five_thousand_memories_with_a_common_word(agent: Agent, service: MemoryService) -> None:
    store(service, *(f"common note {number}" for number in range(5_000)))
    found = await agent("search_memory", query="common", limit=50)
    assert (found["total"], found["searched"], len(found["hits"])) == (5_000, 5_000, 50)
    assert bytes_of(found) < LIMIT
    page = await agent("list_memories", limit=50)
    assert (page["total"], len(page["memories"])) == (5_000, 50) and page["nextCursor"]
    context = await agent("get_context")
    assert context["omitted"] == {"fact": 4_980}


@pytest.mark.parametrize("letter", ["a", "é", "字", "😀", '"', "\n"])
async def test_a_text_of_any_script_comes_back_whole(agent: Agent, letter: str) -> None:
    text = f"begin{letter * 15_000}end"
    memory = await agent("save_memory", text=text)
    got = await agent("get_memory", id=memory["id"])
    assert got["text"] == text
    assert "truncated" not in got


async def test_history_of_long_revisions_is_cut_and_says_so(agent: Agent) -> None:
    memory = await agent("save_memory", text="0" * 16_000)
    for number in range(1, 10):
        await agent("update_memory", id=memory["id"], text=str(number) * 16_000)
    got = await agent("get_memory", id=memory["id"], history=True)
    assert got["text"] == "9" * 16_000
    assert got["truncated"] is True
    assert bytes_of(got) < LIMIT
    assert [old["revision"] for old in got["history"]] == [9, 8, 7, 6, 5, 4, 3, 2, 1]
    assert all(old["text"].endswith("16,000 characters in all]") for old in got["history"])


async def test_a_conflict_and_a_similar_memory_are_cut_too(agent: Agent) -> None:
    memory = await agent("save_memory", text="same words " * 1_400)
    saved = await agent("save_memory", text="same words " * 1_400 + "more")
    assert len(saved["similar"][0]["text"]) < 1_200
    await agent("update_memory", id=memory["id"], text="字" * 16_000)
    conflict = await agent("update_memory", id=memory["id"], text="x", expectedRevision=1)
    assert bytes_of(conflict) < LIMIT


async def test_any_number_of_categories_is_counted_within_bounds(agent: Agent, service: MemoryService) -> None:
    for number in range(120):
        store(service, "x", category=f"{number:03}" + "\u202e" * 60)
    for reply in (await agent("memory_status"), await agent("get_context")):
        assert bytes_of(reply) < LIMIT
        counts = reply.get("counts") or reply["omitted"]
        assert "(others)" in counts


@pytest.mark.parametrize("letter", ["\U000e0041", "\x1b", "字", "😀", '"', "a"])
@pytest.mark.parametrize("limit", [1, 20, 50])
async def test_long_names_of_categories_leave_room_for_memories(
    agent: Agent, service: MemoryService, letter: str, limit: int
) -> None:
    for number in range(60):
        store(service, f"note {number}", "another", category=f"{number:02}".translate(DIGITS) + letter * 60)
    store(service, "long " * 3_000, category="(others)")
    status, context = await agent("memory_status"), await agent("get_context", limit=limit)
    assert bytes_of(status) < LIMIT and bytes_of(context) < LIMIT
    assert sum(status["counts"].values()) == 121
    shown = sum(len(group["memories"]) for group in context["groups"])
    assert sum(context["omitted"].values()) + shown == 121 and shown >= min(limit, 8)


async def test_categories_that_look_the_same_are_counted_together(agent: Agent, service: MemoryService) -> None:
    for category in ("a\u202e", "a\\u{202e}", "\x1b" * 60 + "x", "\x1b" * 60 + "y"):
        store(service, *(f"{category} {number} {LONG}" for number in range(30)), category=category)
    status, context = await agent("memory_status"), await agent("get_context", limit=50)
    assert sorted(status["counts"].values()) == [60, 60]
    assert sum(context["omitted"].values()) + sum(len(group["memories"]) for group in context["groups"]) == 120
    assert bytes_of(context) < LIMIT


async def test_a_resource_is_as_large_as_the_reply_it_stands_for(agent: Agent, crowded: MemoryService) -> None:
    (contents,) = (await agent.client.read_resource("memory://context")).contents
    assert isinstance(contents, TextResourceContents)
    assert len(contents.text.encode()) < LIMIT
