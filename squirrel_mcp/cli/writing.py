"""`add`, `correct` and `forget`: every way a person changes memories."""

from __future__ import annotations

import sys
from typing import Any

import click

from squirrel_mcp.cli import asking
from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.cli.finding import find_id
from squirrel_mcp.cli.output import json_option, one_line, show_json
from squirrel_mcp.cli.session import open_service
from squirrel_mcp.errors import InvalidInput, NotFound, RecordDamaged
from squirrel_mcp.memory import DEFAULT_CATEGORY, MAX_TEXT, Changes, Draft, named_fields
from squirrel_mcp.service import MemoryService
from squirrel_mcp.vault import Outcome

_MAX_BYTES = 4 * MAX_TEXT + 2  # of UTF-8, and one line end
_CODES = {"not_found": Exit.NOTHING, "conflict": Exit.CONFLICT}
_revision_option = click.option(
    "--expected-revision", type=click.IntRange(1), help="Do nothing if somebody has changed it since this revision."
)


@click.command()
@click.argument("text")
@click.option("--entity", default="", help="The person or thing it is about.")
@click.option("--category", default=DEFAULT_CATEGORY, show_default=True, help="What kind of memory it is.")
@click.option("--tag", "tags", multiple=True, help="May be given more than once.")
@click.option("--keyword", "keywords", multiple=True, help="A word to find it by; may be given more than once.")
@click.option("--source", default="", help="Where it is known from.")
@json_option
def add(
    text: str,
    entity: str,
    category: str,
    tags: tuple[str, ...],
    keywords: tuple[str, ...],
    source: str,
    as_json: bool,
) -> None:
    """Save a memory. With - for TEXT it is read from stdin."""
    draft = Draft(_text(text), entity, category, tags, keywords, source)
    with open_service(may_create=True) as service:
        saved = service.save(draft)
    memory = saved.outcome.memory
    assert memory is not None  # a saved memory is there
    if as_json:
        similar = [{"id": hit.memory.id, "text": hit.memory.text, "score": hit.score} for hit in saved.similar]
        status = saved.outcome.status
        show_json({"status": status, "id": memory.id, "revision": memory.revision, "similar": similar})
        return
    click.echo(f"{saved.outcome.status.replace('_', ' ')} {memory.id}")
    for hit in saved.similar:
        asking.say(f"Similar: {hit.memory.id} {one_line(hit.memory.text)}")


@click.command()
@click.argument("memory_id", metavar="ID")
@click.argument("text", required=False)
@click.option("--entity", help="An empty value clears it, here and below.")
@click.option("--category")
@click.option("--tag", "tags", multiple=True, help="Replaces all tags; may be given more than once.")
@click.option("--no-tags", is_flag=True, help="Take all tags away.")
@click.option("--keyword", "keywords", multiple=True, help="Replaces all keywords; may be given more than once.")
@click.option("--no-keywords", is_flag=True, help="Take all keywords away.")
@click.option("--source")
@click.option("--reason", default="", help="Why it changes; kept in its history.")
@_revision_option
@json_option
def correct(
    memory_id: str,
    text: str | None,
    entity: str | None,
    category: str | None,
    tags: tuple[str, ...],
    no_tags: bool,
    keywords: tuple[str, ...],
    no_keywords: bool,
    source: str | None,
    reason: str,
    expected_revision: int | None,
    as_json: bool,
) -> int:
    """Change a memory; what it was stays in its history. With - for TEXT it is read from stdin."""
    changes = Changes(
        text=None if text is None else _text(text),
        entity=entity,
        category=category,
        tags=_labels("tag", tags, no_tags),
        keywords=_labels("keyword", keywords, no_keywords),
        source=source,
        reason=reason,
    )
    if changes == Changes(reason=reason):
        raise InvalidInput("text", "There is nothing to change: give a new text or one of the options.")
    with open_service() as service:
        found = find_id(service, memory_id)
        outcome = service.correct(found, changes, expected_revision)
    return _tell(outcome, found, as_json)


@click.command()
@click.argument("memory_ids", metavar="ID...", nargs=-1, required=True)
@click.option("--yes", is_flag=True, help="Do not ask.")
@_revision_option
@json_option
def forget(memory_ids: tuple[str, ...], yes: bool, expected_revision: int | None, as_json: bool) -> int:
    """Erase memories with all their revisions. It cannot be undone."""
    if not yes and not asking.can_ask():
        raise InvalidInput("yes", "There is nobody to ask: use --yes to forget without a question.")
    code = Exit.OK
    results: list[dict[str, Any]] = []
    with open_service() as service:
        # All ids first: a typing error in the last one must not come after the first is gone.
        found = [find_id(service, memory_id) for memory_id in memory_ids]
        for memory_id in found:
            if not yes and not asking.confirm(f"Forget {_description(service, memory_id)}?"):
                asking.say(f"Not forgotten: {memory_id}")
                code = Exit.INTERRUPTED
                continue
            outcome = service.forget(memory_id, expected_revision)
            code = max(code, _CODES.get(outcome.status, Exit.OK))
            results.append(_fields(outcome, memory_id))
            if not as_json:
                _say_outcome(outcome, memory_id)
    if as_json:
        show_json({"results": results})
    return code


def _text(given: str) -> str:
    """The argument, or stdin for "-"; one line end at its end belongs to the pipe, not to the memory."""
    if given != "-":
        return given
    raw = sys.stdin.buffer.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise InvalidInput("text", f"The text is longer than {MAX_TEXT:,} characters.")
    try:
        return raw.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        pass
    raise InvalidInput("text", "The text on stdin is not UTF-8.")


def _labels(name: str, given: tuple[str, ...], clear: bool) -> tuple[str, ...] | None:
    if given and clear:
        raise InvalidInput(name, f"Use either --{name} or --no-{name}s.")
    return () if clear else given or None


def _tell(outcome: Outcome, memory_id: str, as_json: bool) -> int:
    if as_json:
        show_json(_fields(outcome, memory_id))
    else:
        _say_outcome(outcome, memory_id)
    return _CODES.get(outcome.status, Exit.OK)


def _fields(outcome: Outcome, memory_id: str) -> dict[str, Any]:
    fields: dict[str, Any] = {"status": outcome.status, "id": memory_id}
    if outcome.memory is not None:
        fields["revision"] = outcome.memory.revision
        if outcome.status == "conflict":
            fields["current"] = named_fields(outcome.memory)
    return fields


def _say_outcome(outcome: Outcome, memory_id: str) -> None:
    if outcome.status == "not_found":
        asking.say(f"There is no memory {memory_id}.")
    elif outcome.status == "conflict" and outcome.memory is not None:
        now = outcome.memory
        asking.say(f"Somebody changed {memory_id} first; it is now revision {now.revision}: {one_line(now.text)}")
    else:
        revision = f" (revision {outcome.memory.revision})" if outcome.memory else ""
        click.echo(f"{outcome.status} {memory_id}{revision}")


def _description(service: MemoryService, memory_id: str) -> str:
    try:
        return f'"{one_line(service.get(memory_id).memory.text)}"'
    except RecordDamaged:
        return f"{memory_id}, which is damaged and cannot be shown"
    except NotFound:
        return memory_id
