"""Two clients at once on one vault: nothing lost, nothing doubled, conflicts shown."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from .conftest import Start
from .server_process import ServerProcess

EACH = 50


def test_fifty_saves_each_and_a_correction_of_the_same_memory(start: Start) -> None:
    servers = {"left": start(), "right": start()}
    for server in servers.values():
        server.initialize()
    shared = servers["left"].call("save_memory", text="the shared memory")["id"]

    def work(name: str, server: ServerProcess) -> str:
        for number in range(EACH):
            assert server.call("save_memory", text=f"{name} note {number}")["status"] == "saved"
            if number == EACH // 2:
                changed = server.call("update_memory", id=shared, text=f"changed by {name}", expectedRevision=1)
        return str(changed["status"])

    with ThreadPoolExecutor(2) as threads:
        statuses = list(threads.map(work, servers.keys(), servers.values()))
    assert sorted(statuses) == ["conflict", "updated"]

    expected = {f"{name} note {number}" for name in servers for number in range(EACH)}
    winner = list(servers)[statuses.index("updated")]
    for server in servers.values():
        texts: list[str] = []
        page = server.call("list_memories", limit=50)
        while "nextCursor" in page:
            texts += [memory["text"] for memory in page["memories"]]
            page = server.call("list_memories", limit=50, cursor=page["nextCursor"])
        texts += [memory["text"] for memory in page["memories"]]
        assert sorted(texts) == sorted(expected | {f"changed by {winner}"})
        history = server.call("get_memory", id=shared, history=True)["history"]
        assert [each["text"] for each in history] == ["the shared memory"]
        assert server.call("memory_status")["damaged"] == []
    left, right = (server.call("memory_status")["fingerprint"] for server in servers.values())
    assert left == right


def test_what_one_forgets_is_gone_for_the_other_and_not_revived(start: Start) -> None:
    left, right = start(), start()
    left.initialize()
    right.initialize()
    memory = left.call("save_memory", text="likes tea")["id"]
    assert right.call("search_memory", query="tea")["total"] == 1
    assert left.call("forget_memory", id=memory)["status"] == "forgotten"
    assert right.call("update_memory", id=memory, text="likes coffee")["status"] == "not_found"
    assert right.call("search_memory", query="tea coffee")["total"] == 0
    assert right.call("get_context")["groups"] == []
    assert "no memory with this id" in right.refused("get_memory", id=memory)
    assert left.call("list_memories")["total"] == 0
