"""What the service says as values, and what becomes of it on the wire."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import jsonschema
import pytest

from squirrel_mcp.errors import InvalidInput, RollbackDetected, StoreUnavailable, WrongPassphrase
from squirrel_mcp.mcp_server import presentation, schemas
from squirrel_mcp.memory import Memory
from squirrel_mcp.search.results import Hit, Ranking
from squirrel_mcp.service import Context, Found, Freshness, Page, SearchAnswer, Status
from squirrel_mcp.vault import Outcome

MOMENT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
MEMORY = Memory("0" * 31 + "1", "The router is 10.0.7.1", MOMENT, MOMENT)
STALE = Freshness(True, MOMENT, "The store is busy.")


def hit(**changes: Any) -> Hit:
    return replace(Hit(MEMORY, 1.23456789, 1 / 3), **changes)


def answer(*hits: Hit, **changes: Any) -> SearchAnswer:
    ranking = replace(Ranking("lexical", len(hits), 7, hits), **changes)
    return SearchAnswer("router", ranking, Freshness())


def strict(schema: Any) -> Any:
    """The schema without room for keys that it does not declare, which clients must be ready to ignore."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: strict(value) for name, value in schema.items()}
    if isinstance(properties := schema.get("properties"), dict):
        # A number or null, which some clients' schemas cannot say: its description does.
        more = {"semanticScore": {}} if "lexicalScore" in properties else {}
        closed |= {"properties": {**strict(properties), **more}, "additionalProperties": False}
    return closed


def checked(reply: Any, schema: Any) -> Any:
    jsonschema.validate(reply, schema)
    jsonschema.validate(reply, strict(schema))
    return reply


@pytest.mark.parametrize("semantic", [None, 0.87654321])
def test_a_cosine_is_a_number_or_null_and_the_schema_takes_both(semantic: float | None) -> None:
    (shown,) = checked(presentation.search(answer(hit(semantic_score=semantic))), schemas.SEARCH)["hits"]
    assert shown["semanticScore"] == (semantic and 0.876543)
    assert (shown["score"], shown["lexicalScore"]) == (1.234568, 0.333333)
    assert "nearMiss" not in shown


def test_a_near_miss_is_marked_and_notes_are_passed_on() -> None:
    near = hit(score=0.0, lexical_score=0.0, semantic_score=0.8, near_miss=True)
    reply = checked(
        presentation.search(answer(near, ranking="hybrid", note="Two memories have no vector yet.")), schemas.SEARCH
    )
    assert (reply["ranking"], reply["note"]) == ("hybrid", "Two memories have no vector yet.")
    assert reply["hits"][0]["nearMiss"] is True


@pytest.mark.parametrize(
    ("reply", "schema"),
    [
        (presentation.search(replace(answer(hit()), freshness=STALE)), schemas.SEARCH),
        (presentation.context(Context(date(2026, 3, 1), [("fact", [MEMORY])], {}, 1, STALE)), schemas.CONTEXT),
        (presentation.page(Page([MEMORY], 1, None, STALE))[0], schemas.PAGE),
        (presentation.found(Found(MEMORY, [], STALE)), schemas.FOUND),
    ],
)
def test_an_old_answer_says_so_and_from_when_it_is(reply: Any, schema: Any) -> None:
    checked(reply, schema)
    assert (reply["stale"], reply["asOf"], reply["note"]) == (True, "2026-03-01T09:30:00.000Z", "The store is busy.")


def test_a_fresh_answer_says_nothing_of_it() -> None:
    assert not {"stale", "asOf", "note", "truncated"} & presentation.search(answer(hit())).keys()


def test_the_status_names_the_model_of_a_companion() -> None:
    status = Status(True, "local vault", ranking="hybrid", model="gte-small")
    reply = checked(presentation.status(status), schemas.STATUS)
    assert (reply["ranking"], reply["model"]) == ("hybrid", "gte-small")


def test_a_status_that_is_locked_or_only_readable_says_what_to_do() -> None:
    wrong = Status(False, "local vault", problem=("wrong_passphrase", str(WrongPassphrase())))
    reply = checked(presentation.status(wrong), schemas.STATUS)
    assert reply["problem"].keys() == {"code", "message", "whatToDo"}
    assert "total" not in reply
    damaged = Status(True, "local vault", problem=("log_damaged", "The log is damaged at entry 7: x."), total=6)
    reply = checked(presentation.status(damaged), schemas.STATUS)
    assert (reply["unlocked"], reply["total"]) == (True, 6)
    assert "backup" in reply["problem"]["whatToDo"]


def test_a_conflict_shows_the_current_memory_and_other_outcomes_do_not() -> None:
    conflict = checked(presentation.changed(Outcome("conflict", MEMORY), MEMORY.id), schemas.UPDATED)
    assert conflict["current"]["text"] == MEMORY.text
    assert "current" not in checked(presentation.changed(Outcome("updated", MEMORY), MEMORY.id), schemas.UPDATED)
    kept = checked(presentation.changed(Outcome("conflict", MEMORY), MEMORY.id), schemas.FORGOTTEN)
    assert kept["revision"] == MEMORY.revision
    gone = checked(presentation.changed(Outcome("not_found", None), "\x1b" * 1_000), schemas.FORGOTTEN)
    assert gone == {"status": "not_found", "id": "\\u{1b}" * 64}


def test_an_error_is_a_sentence_what_to_do_and_the_code() -> None:
    assert presentation.error_text(InvalidInput("tags", "tags must be a list of strings")) == (
        "tags must be a list of strings. (invalid_input)"
    )
    assert presentation.error_text(StoreUnavailable("Try again.")) == "Try again. (store_unavailable)"
    assert "Put the right passphrase" in presentation.error_text(WrongPassphrase())
    assert presentation.error_text(RollbackDetected("Run `squirrel-mcp accept-rollback`.")).endswith(
        "(rollback_detected)"
    )
