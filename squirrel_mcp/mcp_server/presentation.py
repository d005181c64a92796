"""What the service answers, as the JSON objects that the tools give: named as the schemas say, escaped, bounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

from squirrel_mcp.advice import NO_RECOVERY_CODE, explained, what_to_do
from squirrel_mcp.errors import SquirrelError
from squirrel_mcp.escaping import escape
from squirrel_mcp.mcp_server.bounds import REPLY_BYTES, WHOLE_BYTES, Json, cut, cut_name, fit, size
from squirrel_mcp.memory import Memory, format_time, named_fields

if TYPE_CHECKING:
    from squirrel_mcp.search.results import Hit
    from squirrel_mcp.service import Context, Found, Freshness, Page, Saved, SearchAnswer, Status
    from squirrel_mcp.vault import Outcome

_ECHO_BYTES = 1_000  # of a query
_SIMILAR_BYTES = 1_200  # of a text that looks like the one saved
_CATEGORIES = 40  # counted one by one
_NAME_BYTES = 258  # of a category's name: 64 characters of any script and the quotes
_COUNTS_BYTES = 8_000  # of all names that are counted, and their numbers
_OTHERS = "(others)"
_DAMAGED = 20  # ids
_CUT = "Long texts are cut; get_memory gives them whole."
_DIGITS = 6  # of scores; they are compared before they are rounded


def memory_fields(memory: Memory) -> Json:
    """A memory as any output shows it."""
    return named_fields(memory, escape)


def context(answer: Context, note: str = "") -> Json:
    reply: Json = {"today": answer.today.isoformat(), "groups": [], "omitted": {}, "total": answer.total}
    _add_notes(reply, answer.freshness, note)
    memories = [memory_fields(memory) for _, group in answer.groups for memory in group]
    excess, room = 0, REPLY_BYTES - size(reply)
    while True:
        shown, short = fit(memories, room - excess)
        reply["groups"] = _groups(shown)
        reply["omitted"] = _counts(answer.omitted, Counter(item["category"] for item in memories[len(shown) :]))
        # How much the names take is known only once it is known which memories go in.
        if size(reply) <= REPLY_BYTES or len(shown) < 2:
            return _mark(reply, short)
        excess += size(reply) - REPLY_BYTES


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
    reply: Json = {"unlocked": answer.unlocked, "vault": escape(answer.place)}
    if answer.problem is not None:
        reply["problem"] = problem(*answer.problem)
    if answer.unlocked:
        reply |= {
            "total": answer.total,
            "counts": _counts(answer.counts),
            "damaged": answer.damaged[:_DAMAGED],
            "ranking": answer.ranking,
            "model": answer.model,
            "recoveryCode": answer.recovery_code,
            "fingerprint": answer.fingerprint,
        }
        if answer.last_sync is not None:
            reply["lastSync"] = format_time(answer.last_sync)
        if answer.last_export is not None:
            reply["lastExport"] = format_time(answer.last_export)
        if not answer.recovery_code:
            reply["note"] = NO_RECOVERY_CODE
    return {**reply, "embedded": answer.embedded, "version": answer.version}


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
    return escape(f"{explained(error.code, str(error))} ({error.code})")


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


def _groups(shown: list[Json]) -> list[Json]:
    groups: list[Json] = []
    for item in shown:
        name = _category(item["category"])
        if not groups or groups[-1]["category"] != name:
            groups.append({"category": name, "memories": []})
        groups[-1]["memories"].append(item)
    return groups


def _counts(*counts: Mapping[str, int]) -> Json:
    """The largest; categories are names of the user's own, and there may be any number of them.

    Names that differ may be shown as the same one, whose number is theirs added up.
    """
    totals: Counter[str] = Counter()
    for each in counts:
        for name, count in each.items():
            totals[_category(escape(name))] += count
    shown: Counter[str] = Counter()
    room = _COUNTS_BYTES
    for name, count in sorted(totals.items(), key=lambda item: (-item[1], item[0])):
        room -= size({name: count})
        shown[name if room >= 0 and len(shown) < _CATEGORIES else _OTHERS] += count
    return dict(shown)


def _category(name: str) -> str:
    return cut_name(name, _NAME_BYTES)
