"""`search`, `list` and `show`: memories as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from squirrel_mcp import moments
from squirrel_mcp.cli import asking
from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.cli.finding import find_id
from squirrel_mcp.cli.output import (
    Column,
    json_option,
    local_time,
    on_terminal,
    one_line,
    show_facts,
    show_json,
    show_table,
)
from squirrel_mcp.cli.session import open_service
from squirrel_mcp.errors import InvalidInput
from squirrel_mcp.memory import Memory, format_time, named_fields
from squirrel_mcp.search.results import Filters, Hit
from squirrel_mcp.service import MAX_LIMIT, Freshness, Order

_Command = Callable[..., Any]
_SHORT_ID = 8  # digits of an id on a terminal; commands take any beginning that only one memory has


def _label_filters(command: _Command) -> _Command:
    for option in (
        click.option("--tag", "tags", multiple=True, help="Only with this tag; all of them if given more than once."),
        click.option("--entity", help="Only about this person or thing."),
        click.option("--category", help="Only of this category."),
    ):
        command = option(command)
    return command


@click.command()
@click.argument("query", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(1, MAX_LIMIT), default=10, show_default=True, help="How many at most.")
@_label_filters
@click.option("--since", help="Only changed on or after this date or time, such as 2026-03-01.")
@click.option("--until", help="Only changed on or before this date or time.")
@click.option("--near-misses", is_flag=True, help="Also what does not match but comes nearest.")
@json_option
def search(
    query: tuple[str, ...],
    limit: int,
    category: str | None,
    entity: str | None,
    tags: tuple[str, ...],
    since: str | None,
    until: str | None,
    near_misses: bool,
    as_json: bool,
) -> int:
    """Find memories by words, the best match first."""
    if not "".join(query).strip():
        raise InvalidInput("query", "The query is empty; `squirrel-mcp list` shows all memories.")
    filters = Filters(category, entity, tags, moments.read("since", since), moments.read("until", until, end=True))
    with open_service() as service:
        answer = service.search(" ".join(query), limit=limit, filters=filters, near_misses=near_misses)
    ranking = answer.ranking
    if as_json:
        show_json(
            {
                "query": answer.query,
                "ranking": ranking.ranking,
                "total": ranking.total,
                "searched": ranking.searched,
                "hits": [_hit_fields(hit) for hit in ranking.hits],
                "note": ranking.note,
                **_stale_fields(answer.freshness),
            }
        )
    else:
        if ranking.hits:
            columns = [Column("score", "cyan"), *_columns()]
            show_table(columns, [[f"{hit.score:.3f}", *_row(hit.memory)] for hit in ranking.hits])
        said = [] if ranking.hits else [f"Nothing found in {ranking.searched:,} memories."]
        _remark(" ".join(filter(None, [*said, ranking.note])), answer.freshness)
    return Exit.OK if ranking.hits else Exit.NOTHING


@click.command("list")
@click.option("--limit", type=click.IntRange(1), default=20, show_default=True, help="How many at most.")
@click.option("--all", "everything", is_flag=True, help="All of them.")
@click.option("--cursor", help="Go on from where another list ended (nextCursor of --json).")
@click.option(
    "--order", type=click.Choice(("newest", "oldest")), default="newest", show_default=True, help="Which first."
)
@_label_filters
@json_option
def list_memories(
    limit: int,
    everything: bool,
    cursor: str | None,
    order: Order,
    category: str | None,
    entity: str | None,
    tags: tuple[str, ...],
    as_json: bool,
) -> int:
    """List memories in the order they were made."""
    filters = Filters(category, entity, tags)
    memories: list[Memory] = []
    with open_service() as service:
        while True:
            wanted = MAX_LIMIT if everything else min(limit - len(memories), MAX_LIMIT)
            page = service.list(limit=wanted, cursor=cursor, filters=filters, order=order)
            memories += page.memories
            cursor = page.next_cursor
            if cursor is None or (not everything and len(memories) >= limit):
                break
    if as_json:
        show_json(
            {
                "memories": [named_fields(memory) for memory in memories],
                "total": page.total,
                "nextCursor": cursor,
                **_stale_fields(page.freshness),
            }
        )
    else:
        if memories:
            show_table(_columns(), [_row(memory) for memory in memories])
        more = f"{len(memories)} of {page.total}; --all shows all." if cursor else ""
        _remark(more if memories else "There are no such memories.", page.freshness)
    return Exit.OK if memories else Exit.NOTHING


@click.command()
@click.argument("memory_id", metavar="ID")
@click.option("--history", is_flag=True, help="Also its earlier revisions, and why they were changed.")
@json_option
def show(memory_id: str, history: bool, as_json: bool) -> None:
    """Show one memory in full. Any beginning of its id will do that only this one has."""
    with open_service() as service:
        found = service.get(find_id(service, memory_id), history=history)
    if as_json:
        fields = _full_fields(found.memory)
        if found.history is not None:
            fields["history"] = [_full_fields(memory) for memory in found.history]
        show_json({**fields, **_stale_fields(found.freshness)})
        return
    show_facts(_facts(found.memory))
    for memory in found.history or ():
        show_table(
            (Column("", "bold"), Column("", "dim", long=True)),
            [fact for fact in _facts(memory)[1:] if fact[1]],
            title=f"Revision {memory.revision}",
        )
    _remark("", found.freshness)


def _columns() -> list[Column]:
    return [Column("id", "green"), Column("changed", "dim"), Column("category", "magenta"), Column("text", long=True)]


def _row(memory: Memory) -> list[str]:
    if on_terminal():
        text = f"{memory.entity}: {memory.text}" if memory.entity else memory.text
        return [memory.id[:_SHORT_ID], local_time(memory.updated_at), memory.category, one_line(text)]
    return [memory.id, format_time(memory.updated_at), memory.category, memory.text]


def _facts(memory: Memory) -> list[tuple[str, str]]:
    return [
        ("id", memory.id),
        ("revision", str(memory.revision)),
        ("text", memory.text),
        ("about", memory.entity),
        ("category", memory.category),
        ("tags", ", ".join(memory.tags)),
        ("keywords", ", ".join(memory.keywords)),
        ("source", memory.source),
        ("made", local_time(memory.created_at)),
        ("changed", local_time(memory.updated_at) if memory.revision > 1 else ""),
        ("why", memory.reason),
    ]


def _full_fields(memory: Memory) -> dict[str, Any]:
    return {**named_fields(memory), "reason": memory.reason}


def _hit_fields(hit: Hit) -> dict[str, Any]:
    return {
        **named_fields(hit.memory),
        "score": hit.score,
        "lexicalScore": hit.lexical_score,
        "semanticScore": hit.semantic_score,
        "nearMiss": hit.near_miss,
    }


def _stale_fields(freshness: Freshness) -> dict[str, Any]:
    as_of = format_time(freshness.as_of) if freshness.as_of else None
    return {"stale": True, "asOf": as_of, "staleBecause": freshness.note} if freshness.stale else {"stale": False}


def _remark(text: str, freshness: Freshness) -> None:
    for said in (text, f"This may be out of date. {freshness.note}" if freshness.stale else ""):
        if said:
            asking.say(said)
