"""The eight tools as an agent sees them, over a real vault."""

from __future__ import annotations

import re
from typing import Any

import pytest

from squirrel_mcp.memory import Draft
from squirrel_mcp.service import MemoryService

from ..conftest import Clock
from .conftest import Agent, text_of

pytestmark = pytest.mark.anyio

FIELDS = {
    "id", "text", "entity", "category", "tags", "keywords", "source", "createdAt", "updatedAt", "revision",
}  # fmt: skip
FULL = {
    "text": "The router in the cellar is 10.0.7.1",
    "entity": "router",
    "category": "fact",
    "tags": ["home", "network"],
    "keywords": ["gateway"],
    "source": "a conversation",
}


async def test_a_saved_memory_comes_back_everywhere_with_all_its_fields(agent: Agent) -> None:
    saved = await agent("save_memory", **FULL)
    assert saved == {"status": "saved", "id": saved["id"], "revision": 1, "similar": []}
    found = await agent("search_memory", query="router")
    (hit,) = found["hits"]
    assert hit.keys() == FIELDS | {"score", "lexicalScore", "semanticScore"}
    assert {name: hit[name] for name in FULL} == FULL
    assert (hit["lexicalScore"], hit["semanticScore"]) == (1, None)
    assert hit["createdAt"] == hit["updatedAt"] == "2026-05-04T12:00:00.000Z"
    assert {key: found[key] for key in found if key != "hits"} == {
        "query": "router", "ranking": "lexical", "total": 1, "searched": 1,
    }  # fmt: skip
    (listed,) = (await agent("list_memories"))["memories"]
    got = await agent("get_memory", id=saved["id"])
    ((group),) = (await agent("get_context"))["groups"]
    assert listed == got == group["memories"][0] == {name: hit[name] for name in FIELDS}


async def test_the_same_memory_twice_is_one(agent: Agent) -> None:
    first = await agent("save_memory", text="likes tea")
    again = await agent("save_memory", text=" likes  tea ")
    assert again["status"] == "already_present"
    assert again["id"] == first["id"]


async def test_a_changed_value_is_kept_and_the_old_one_named_as_similar(agent: Agent) -> None:
    first = await agent("save_memory", text="router is 10.0.7.1")
    second = await agent("save_memory", text="router is 10.0.9.1")
    assert second["status"] == "saved"
    assert [each["id"] for each in second["similar"]] == [first["id"]]
    assert second["similar"][0].keys() == {"id", "text", "score"}
    assert (await agent("memory_status"))["total"] == 2


async def test_a_corrected_memory_is_found_by_its_old_wording_only_in_its_history(agent: Agent) -> None:
    memory = await agent("save_memory", text="The office is in Lindenstrasse")
    changed = await agent("update_memory", id=memory["id"], text="The office is in Hafenweg", reason="they moved")
    assert changed == {"status": "updated", "id": memory["id"], "revision": 2}
    assert (await agent("search_memory", query="Lindenstrasse"))["hits"] == []
    got = await agent("get_memory", id=memory["id"], history=True)
    assert (got["text"], got["revision"], got["reason"]) == ("The office is in Hafenweg", 2, "they moved")
    assert [(old["text"], old["revision"]) for old in got["history"]] == [("The office is in Lindenstrasse", 1)]


async def test_null_keeps_a_field_and_empty_clears_it(agent: Agent) -> None:
    memory = await agent("save_memory", **FULL)
    await agent("update_memory", id=memory["id"], entity=None, tags=[], source="", keywords=None)
    got = await agent("get_memory", id=memory["id"])
    assert (got["entity"], got["tags"], got["source"], got["keywords"]) == ("router", [], "", ["gateway"])
    assert (await agent("update_memory", id=memory["id"], tags=None))["status"] == "unchanged"


async def test_a_stale_guard_is_a_conflict_that_shows_the_current_memory(agent: Agent) -> None:
    memory = await agent("save_memory", text="one")
    await agent("update_memory", id=memory["id"], text="two", expectedRevision=1)
    conflict = await agent("update_memory", id=memory["id"], text="three", expected_revision="1")
    assert (conflict["status"], conflict["revision"], conflict["current"]["text"]) == ("conflict", 2, "two")
    assert (await agent("forget_memory", id=memory["id"], expectedRevision=1))["status"] == "conflict"
    assert (await agent("forget_memory", id=memory["id"], expectedRevision=2))["status"] == "forgotten"


async def test_a_forgotten_memory_is_gone_everywhere(agent: Agent) -> None:
    memory = await agent("save_memory", text="likes tea")
    assert await agent("forget_memory", id=memory["id"]) == {"status": "forgotten", "id": memory["id"]}
    assert (await agent("search_memory", query="tea"))["hits"] == []
    assert (await agent("list_memories"))["memories"] == []
    assert (await agent("get_context"))["groups"] == []
    assert "no memory with this id" in await agent.refused("get_memory", id=memory["id"])
    assert (await agent("forget_memory", id=memory["id"]))["status"] == "not_found"
    assert (await agent("update_memory", id=memory["id"], text="x"))["status"] == "not_found"


async def test_pages_show_every_memory_once_though_others_write_meanwhile(agent: Agent, clock: Clock) -> None:
    for number in range(5):
        clock.move(minutes=1)
        await agent("save_memory", text=f"note {number}")
    seen: list[str] = []
    page = await agent("list_memories", limit=2, order="OLDEST")
    while True:
        seen += [memory["text"] for memory in page["memories"]]
        if "nextCursor" not in page:
            break
        await agent("update_memory", id=page["memories"][0]["id"], source="read")
        page = await agent("list_memories", limit=2, cursor=page["nextCursor"])
    assert seen == [f"note {number}" for number in range(5)]
    assert "cursor" in await agent.refused("list_memories", cursor="made up")


@pytest.mark.parametrize(("limit", "shown"), [(None, 10), ("5", 5), (0, 1), (-1, 1), (10**6, 50), (3.0, 3)])
async def test_limits_are_forgiven_and_clamped(agent: Agent, service: MemoryService, limit: Any, shown: int) -> None:
    for number in range(55):
        service.save(Draft(f"common word {number}"))
    found = await agent("search_memory", query="common", limit=limit)
    assert (len(found["hits"]), found["total"]) == (shown, 55)


@pytest.mark.parametrize("tags", ['["home","network"]', ["home", "network"]])
async def test_tags_may_come_as_json_and_filters_want_all_of_them(agent: Agent, tags: Any) -> None:
    await agent("save_memory", text="both", tags=tags)
    await agent("save_memory", text="both but one", tags="home")
    found = await agent("search_memory", query="both", tags=tags)
    assert [hit["text"] for hit in found["hits"]] == ["both"]
    assert found["searched"] == 1


async def test_dates_narrow_a_search(agent: Agent, clock: Clock) -> None:
    await agent("save_memory", text="early note")
    clock.move(days=10)
    await agent("save_memory", text="late note")
    late = await agent("search_memory", query="note", since="2026-05-10")
    early = await agent("search_memory", query="note", until="2026-05-10")
    assert [hit["text"] for hit in late["hits"]] == ["late note"]
    assert [hit["text"] for hit in early["hits"]] == ["early note"]


async def test_an_empty_answer_says_how_many_were_searched(agent: Agent) -> None:
    await agent("save_memory", text="likes tea")
    found = await agent("search_memory", query="xylophone", nearMisses="true")
    assert (found["hits"], found["total"], found["searched"]) == ([], 0, 1)
    assert "note" in await agent("search_memory", query="?!")
    assert "note" in await agent("search_memory", query="")


async def test_context_begins_with_instructions_and_counts_what_it_leaves_out(agent: Agent) -> None:
    for category, count in (("event", 3), ("instruction", 1), ("profile", 1), ("task", 2)):
        for number in range(count):
            await agent("save_memory", text=f"{category} {number}", category=category)
    context = await agent("get_context", limit=4)
    assert re.fullmatch(r"2026-05-0[345]", context["today"])  # the zone is this machine's
    assert [group["category"] for group in context["groups"]][:2] == ["instruction", "profile"]
    assert context["total"] == 7
    assert sum(context["omitted"].values()) == 3


async def test_the_missing_recovery_code_is_told_once_by_context_and_always_by_status(agent: Agent) -> None:
    assert "squirrel-mcp recovery new" in (await agent("get_context"))["note"]
    assert "note" not in await agent("get_context")
    status = await agent("memory_status")
    assert status["recoveryCode"] is False
    assert "squirrel-mcp recovery new" in status["note"]


async def test_with_a_recovery_code_nothing_is_said(agent: Agent, service: MemoryService) -> None:
    with service.vault() as vault:
        vault.set_recovery(bytes(20))
    assert "note" not in await agent("get_context")
    status = await agent("memory_status")
    assert status["recoveryCode"] is True and "note" not in status


async def test_status_tells_what_there_is(agent: Agent, service: MemoryService) -> None:
    await agent("save_memory", text="a", category="task")
    await agent("save_memory", text="b", category="task")
    await agent("save_memory", text="c")
    service.note_export()
    status = await agent("memory_status")
    assert (status["unlocked"], status["total"], status["counts"]) == (True, 3, {"task": 2, "fact": 1})
    assert (status["ranking"], status["model"], status["embedded"]) == ("lexical", "", 0)
    assert status["lastExport"] == status["lastSync"] == "2026-05-04T12:00:00.000Z"
    assert "vault.db" in status["vault"] and status["version"] and status["fingerprint"]


async def test_unknown_arguments_are_ignored_and_named(agent: Agent) -> None:
    saved = await agent("save_memory", text="tea", sessionId="secret-value")
    assert saved["note"] == "Ignored arguments that this tool does not have: sessionId."
    assert saved["status"] == "saved"


@pytest.mark.parametrize(
    ("tool", "arguments", "field"),
    [
        ("save_memory", {}, "text"),
        ("save_memory", {"text": None}, "text"),
        ("save_memory", {"text": "  "}, "text"),
        ("save_memory", {"text": 42}, "text"),
        ("save_memory", {"text": ["a"]}, "text"),
        ("save_memory", {"text": "a", "tags": [42]}, "tags"),
        ("save_memory", {"text": "a", "tags": ["t"] * 33}, None),  # one tag after all
        ("save_memory", {"text": "a", "tags": [f"t{n}" for n in range(33)]}, "tags"),
        ("save_memory", {"text": "a", "keywords": ["k" * 65]}, "keywords"),
        ("save_memory", {"text": "a", "entity": "e" * 201}, "entity"),
        ("save_memory", {"text": "a", "source": "s" * 201}, "source"),
        ("save_memory", {"text": "a" * 16_001}, "text"),
        ("save_memory", {"text": "\x01" * 16_000}, "text"),  # 96,000 bytes as JSON
        ("save_memory", {"text": "a" * 10_000_000}, "text"),
        ("search_memory", {}, "query"),
        ("search_memory", {"query": "a" * 10_000_000}, "query"),
        ("search_memory", {"query": "a", "limit": "many"}, "limit"),
        ("search_memory", {"query": "a", "since": "yesterday"}, "since"),
        ("search_memory", {"query": "a", "nearMisses": "perhaps"}, "nearMisses"),
        ("update_memory", {"text": "a"}, "id"),
        ("update_memory", {"id": "0" * 32, "expectedRevision": 0}, "expectedRevision"),
        ("update_memory", {"id": "0" * 32, "reason": "r" * 1_001}, "reason"),
        ("forget_memory", {"id": 7}, "id"),
        ("get_memory", {"id": ""}, "id"),
        ("list_memories", {"order": "random"}, "order"),
        ("get_context", {"topic": {"a": 1}}, "topic"),
    ],
)
async def test_bad_input_is_refused_by_the_name_of_the_field_and_stores_nothing(
    agent: Agent, tool: str, arguments: dict[str, Any], field: str | None
) -> None:
    result = await agent.raw(tool, **arguments)
    if field is None:
        assert not result.is_error
        return
    assert result.is_error
    text = text_of(result)
    assert text.startswith((f"{field} ", "the memory is")) and text.endswith("(invalid_input)")
    assert len(text) < 200
    assert (await agent("memory_status"))["total"] == 0


async def test_an_unknown_tool_is_refused(agent: Agent) -> None:
    assert "There is no tool of this name" in await agent.refused("export_everything")
