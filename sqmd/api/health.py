"""How the parts are: the database, what computes vectors, the watcher."""

from __future__ import annotations

from typing import Any

from sqmd.errors import EmbedderDown, NotIndexed, SqmdError
from sqmd.search.results import Answer
from sqmd.search.searcher import NO_MEANING, NOTHING_READ, WORDS_ONLY
from sqmd.service import Service


class LastAnswer:
    """What the last search by meaning learned about the embedder.

    To ask it for the sake of this would load a model, or download one, or wait for a server that does not answer.
    """

    def __init__(self) -> None:
        self.state = "ok"

    def note(self, found: Answer | SqmdError) -> None:
        """An answer, or what was raised in its place."""
        if isinstance(found, EmbedderDown) or (isinstance(found, Answer) and WORDS_ONLY in found.note):
            self.state = EmbedderDown.code
        elif isinstance(found, Answer) and found.mode != "fts" and found.query and not _unread(found.note):
            self.state = "ok"


def _unread(note: str) -> bool:
    """Whether it was not asked: it does not read the query's script."""
    return note.startswith((NO_MEANING, NOTHING_READ))


def states(service: Service, embedder: LastAnswer) -> dict[str, Any]:
    """`Health` without the time; at once."""
    db, vectors = _database_state(service), _embedder_state(service, embedder)
    well = db in ("ok", NotIndexed.code) and vectors == "ok"
    return {"status": "ok" if well else "degraded", "db": db, "embedder": vectors, "watcher": _watcher_state(service)}


def _database_state(service: Service) -> str:
    try:
        return "ok" if service.status().indexed else NotIndexed.code
    except SqmdError as error:
        return error.code


def _embedder_state(service: Service, last: LastAnswer) -> str:
    try:
        _ = service.embedder.name  # neither loads nor asks anything; raises if the configured model is not there
    except SqmdError as error:
        return error.code
    return last.state


def _watcher_state(service: Service) -> str:
    if service.watching:
        return "running"
    return "stopped" if service.config.watcher.enabled else "disabled"
