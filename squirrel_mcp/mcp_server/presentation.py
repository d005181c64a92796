"""What the service answers, as the JSON objects that the tools give: named as the schemas say, escaped, bounded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from squirrel_mcp.errors import SquirrelError
from squirrel_mcp.mcp_server.advice import NO_RECOVERY_CODE, what_to_do
from squirrel_mcp.mcp_server.bounds import REPLY_BYTES, WHOLE_BYTES, Json, cut, fit, size
from squirrel_mcp.mcp_server.escaping import escape
from squirrel_mcp.memory import Memory, format_time

if TYPE_CHECKING:
    from squirrel_mcp.search.results import Hit
    from squirrel_mcp.service import Context, Found, Freshness, Page, Saved, SearchAnswer, Status
    from squirrel_mcp.vault import Outcome

_ECHO_BYTES = 1_000  # of a query
_SIMILAR_BYTES = 1_200  # of a text that looks like the one saved
_CATEGORIES = 40  # counted one by one
_DAMAGED = 20  # ids
_CUT = "Long texts are cut; get_memory gives them whole."
_DIGITS = 6  # of scores; they are compared before they are rounded


def memory_fields(memory: Memory) -> Json:
    """A memory as any output shows it."""
    return {
        "id": memory.id,
        "text": escape(memory.text),
        "entity": escape(memory.entity),
        "category": escape(memory.category),
        "tags": [escape(tag) for tag in memory.tags],
        "keywords": [escape(keyword) for keyword in memory.keywords],
        "source": escape(memory.source),
        "createdAt": format_time(memory.created_at),
        "updatedAt": format_time(memory.updated_at),
        "revision": memory.revision,
    }


def context(answer: Context, note: str = "") -> Json:
    reply: Json = {"today": answer.today.isoformat(), "groups": [], "omitted": {}, "total": answer.total}
    _add_notes(reply, answer.freshness, answer.note, note)
    omitted = dict(answer.omitted)
    memories = [memory_fields(memory) for _, group in answer.groups for memory in group]
    names = [*omitted, *(name for name, _ in answer.groups)]
    shown, short = fit(memories, REPLY_BYTES - size(reply) - _size_of_names(names))
    for item in memories[len(shown) :]:
        omitted[item["category"]] = omitted.get(item["category"], 0) + 1
    for item in shown:
        if not reply["groups"] or reply["groups"][-1]["category"] != item["category"]:
            reply["groups"].append({"category": item["category"], "memories": []})
        reply["groups"][-1]["memories"].append(item)
    reply["omitted"] = _counts(omitted)
    return _mark(reply, short)


def search(answer: SearchAnswer, note: str = "") -> Json:
    ranking = answer.ranking
    reply: Json = {
        "query": cut(escape(answer.query), _ECHO_BYTES),
        "ranking": ranking.ranking,
        "total": ranking.total,
        "searched": ranking.searched,
        "hits": [],
    }
    _add_notes(reply, answer.freshness, ranking.note, note)
    reply["hits"], short = fit([_hit(hit) for hit in ranking.hits], REPLY_BYTES - size(reply))
    return _mark(reply, short)


def saved(answer: Saved) -> Json:
    memory = _present(answer.outcome)
    return {
        "status": answer.outcome.status,
        "id": memory.id,
        "revision": memory.revision,
        "similar": [
            {
                "id": hit.memory.id,
                "text": cut(escape(hit.memory.text), _SIMILAR_BYTES),
                "score": round(hit.score, _DIGITS),
            }
            for hit in answer.similar
        ],
    }


def changed(outcome: Outcome, memory_id: str) -> Json:
    """Of update_memory and forget_memory."""
    reply: Json = {"status": outcome.status, "id": escape(memory_id[:64])}
    if outcome.memory is not None:
        reply["revision"] = outcome.memory.revision
        if outcome.status == "conflict":
            (reply["current"],), _ = fit([memory_fields(outcome.memory)], REPLY_BYTES - size(reply))
    return reply


def found(answer: Found) -> Json:
    reply = _with_reason(answer.memory)
    _add_notes(reply, answer.freshness)
    short = size(reply) > WHOLE_BYTES
    if short:
        reply["text"] = cut(reply["text"], WHOLE_BYTES - size({**reply, "text": ""}))
    if answer.history is not None:
        room = max(REPLY_BYTES - size(reply), REPLY_BYTES // 4)
        history = [_with_reason(memory) for memory in answer.history]
        reply["history"], cut_short = fit(history, room) if history else ([], False)
        short = short or cut_short
    return _mark(reply, short)


def page(answer: Page, note: str = "") -> tuple[Json, int]:
    """The reply, and how many of the memories went into it: fewer than there are need a page of that size."""
    reply: Json = {"memories": [], "total": answer.total}
    if answer.next_cursor is not None:
        reply["nextCursor"] = answer.next_cursor
    _add_notes(reply, answer.freshness, note)
    memories = [memory_fields(memory) for memory in answer.memories]
    shown, short = fit(memories, REPLY_BYTES - size(reply)) if memories else ([], False)
    reply["memories"] = shown
    return _mark(reply, short), len(shown)


def status(answer: Status) -> Json:
    hybrid = answer.ranking != "words"
    reply: Json = {"unlocked": answer.unlocked, "vault": escape(answer.place)}
    if answer.problem is not None:
        reply["problem"] = problem(*answer.problem)
    if answer.unlocked:
        reply |= {
            "total": answer.total,
            "counts": _counts(answer.counts),
            "damaged": answer.damaged[:_DAMAGED],
            "ranking": "hybrid" if hybrid else "lexical",
            "model": answer.ranking if hybrid else "",
            "recoveryCode": answer.recovery_code,
            "fingerprint": answer.fingerprint,
        }
        if answer.last_sync is not None:
            reply["lastSync"] = format_time(answer.last_sync)
        if answer.last_export is not None:
            reply["lastExport"] = format_time(answer.last_export)
        if not answer.recovery_code:
            reply["note"] = NO_RECOVERY_CODE
    # Vectors belong to the companion, whose status counts them.
    return {**reply, "embedded": 0, "version": answer.version}


def locked(error: SquirrelError, version: str) -> Json:
    """The status where not even the settings can be used."""
    return {
        "unlocked": False,
        "problem": problem(error.code, str(error)),
        "embedded": 0,
        "version": version,
    }


def problem(code: str, message: str) -> Json:
    reply = {"code": code, "message": escape(message)}
    return {**reply, "whatToDo": advice} if (advice := what_to_do(code)) else reply


def error_text(error: SquirrelError) -> str:
    """One or two sentences and the stable code."""
    return escape(" ".join(filter(None, (_sentence(str(error)), what_to_do(error.code), f"({error.code})"))))


def _sentence(message: str) -> str:
    return message if message.endswith((".", "!", "?")) else f"{message}."


def _hit(hit: Hit) -> Json:
    semantic = hit.semantic_score
    item = {
        **memory_fields(hit.memory),
        "score": round(hit.score, _DIGITS),
        "lexicalScore": round(hit.lexical_score, _DIGITS),
        "semanticScore": None if semantic is None else round(semantic, _DIGITS),
    }
    return {**item, "nearMiss": True} if hit.near_miss else item


def _with_reason(memory: Memory) -> Json:
    item = memory_fields(memory)
    return {**item, "reason": escape(memory.reason)} if memory.reason else item


def _present(outcome: Outcome) -> Memory:
    assert outcome.memory is not None  # a saved memory is there
    return outcome.memory


def _add_notes(reply: Json, freshness: Freshness, *notes: str) -> None:
    """`stale`, `asOf` and `note`, where there is something to say."""
    if freshness.stale:
        reply["stale"] = True
        if freshness.as_of is not None:
            reply["asOf"] = format_time(freshness.as_of)
    said = " ".join(filter(None, (freshness.note, *notes)))
    if said:
        reply["note"] = escape(said)


def _mark(reply: Json, short: bool) -> Json:
    if short:
        reply["truncated"] = True
        reply["note"] = f"{reply['note']} {_CUT}" if "note" in reply else _CUT
    return reply


def _counts(counts: dict[str, int]) -> Json:
    """The largest; categories are names of the user's own, and there may be any number of them."""
    largest = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    shown = {escape(name): count for name, count in largest[:_CATEGORIES]}
    rest = sum(count for _, count in largest[_CATEGORIES:])
    return {**shown, "(others)": rest} if rest else shown


def _size_of_names(names: Iterable[str]) -> int:
    """Bytes that the names of the groups and of what is omitted take in the end, at most."""
    sizes = sorted((size(escape(name)) + 30 for name in names), reverse=True)
    return sum(sizes[: 2 * _CATEGORIES])
