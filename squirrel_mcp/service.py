"""What the fronts call: one object that opens the vault when needed, keeps it in step, and answers.

Thread-safe; its calls block. Every read and every write first takes in what others wrote.
"""

from __future__ import annotations

import base64
import heapq
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Literal, NamedTuple

from squirrel_mcp import opening, private_files
from squirrel_mcp._version import __version__
from squirrel_mcp.crypto import kdf
from squirrel_mcp.edition import BASE, Edition, MakeRanker, Say
from squirrel_mcp.errors import InvalidInput, KeysChanged, MemoryNotFound, SquirrelError, StoreUnavailable
from squirrel_mcp.memory import Changes, Draft, Memory, format_time, parse_time
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.search.results import Filters, Hit, Ranker, Ranking
from squirrel_mcp.settings import Settings
from squirrel_mcp.vault import Clock, Outcome, Vault, utc_now

DEADLINE = 45.0  # seconds a call waits for unlocking and the first sync
MAX_LIMIT = 50
CONTEXT_FIRST = ("instruction", "profile")
CONTEXT_IN_TURN = ("preference", "project", "task")
_MAX_EXPORT_NOTE = 64

Order = Literal["newest", "oldest"]
_ORDERS: dict[str, Order] = {"newest": "newest", "oldest": "oldest"}


class Freshness(NamedTuple):
    """Whether the answer may lack what others wrote lately, why, and how old it is then."""

    stale: bool = False
    as_of: datetime | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    query: str
    ranking: Ranking
    freshness: Freshness


@dataclass(frozen=True, slots=True)
class Context:
    """`groups` holds (category, memories) in the order to read them; `omitted` counts what is not shown."""

    today: date
    groups: list[tuple[str, list[Memory]]]
    omitted: dict[str, int]
    total: int
    freshness: Freshness


@dataclass(frozen=True, slots=True)
class Saved:
    outcome: Outcome
    similar: tuple[Hit, ...] = ()


@dataclass(frozen=True, slots=True)
class Found:
    """One memory in full; `history` holds its earlier revisions, latest first, if they were asked for."""

    memory: Memory
    history: list[Memory] | None
    freshness: Freshness


@dataclass(frozen=True, slots=True)
class Page:
    memories: list[Memory]
    total: int
    next_cursor: str | None
    freshness: Freshness


@dataclass(frozen=True, slots=True)
class Status:
    """What `memory_status` tells. `problem` is (code, sentence) where the vault cannot be used, or only read."""

    unlocked: bool
    place: str
    problem: tuple[str, str] | None = None
    counts: dict[str, int] = field(default_factory=dict)
    total: int = 0
    damaged: list[str] = field(default_factory=list)
    fingerprint: str = ""
    last_sync: datetime | None = None
    ranking: Literal["lexical", "hybrid"] = "lexical"
    model: str = ""  # what ranks by meaning, once it is in use
    embedded: int = 0  # memories that have a vector
    recovery_code: bool = False
    last_export: datetime | None = None
    version: str = __version__


class MemoryService:
    """One vault, opened at first use and again after a failure, so that it works as soon as what was wrong is right."""

    def __init__(
        self,
        settings: Settings,
        *,
        unlock: Unlocker | None = None,
        edition: Edition = BASE,
        ranker: MakeRanker | None = None,
        say: Say = lambda line: None,
        clock: Clock = utc_now,
        parameters: kdf.Parameters = kdf.DEFAULT,
    ) -> None:
        self._settings = settings
        self._unlock = unlock or opening.from_settings(settings)
        self._edition, self._make_ranker, self._say = edition, ranker or edition.ranker, say
        self._clock, self._parameters = clock, parameters
        self._lock = threading.RLock()
        self._vault: Vault | None = None
        self._ranker: Ranker | None = None
        self._last_sync: datetime | None = None
        self._closed = False

    def open(self) -> None:
        """Unlock and sync now; the same errors as any other call."""
        with self._session():
            pass

    def warm(self) -> None:
        """Index the memories now, so that the first search does not have to."""
        with self._session() as (vault, _):
            self._ranked(vault)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._ranker is not None:
                self._ranker.close()
            if self._vault is not None:
                self._vault.close()
            self._vault = self._ranker = None

    def search(
        self, query: str, *, limit: int = 10, filters: Filters | None = None, near_misses: bool = False
    ) -> SearchAnswer:
        """Ranked hits; `limit` is clamped to 1..50."""
        with self._session() as (vault, freshness):
            ranking = self._ranked(vault).search(
                query,
                now=self._clock(),
                limit=_clamp(limit),
                filters=filters or Filters(),
                near_misses=near_misses,
            )
            return SearchAnswer(query, ranking, freshness)

    def context(self, topic: str = "", *, limit: int = 20) -> Context:
        """What an agent should know when work begins.

        Standing instructions and profile come first; then what matches `topic`, if given; then preferences, projects,
        tasks and what changed last take turns until `limit` (1..50) is reached.
        """
        with self._session() as (vault, freshness):
            chosen = self._choose(vault, topic, _clamp(limit))
            groups: dict[str, list[Memory]] = {}
            for memory in chosen.values():
                groups.setdefault(memory.category, []).append(memory)
            first = [*CONTEXT_FIRST, *CONTEXT_IN_TURN]
            ordered = sorted(groups, key=lambda name: (first.index(name) if name in first else len(first), name))
            counts = vault.memories.counts()
            omitted = {name: counts[name] - len(groups.get(name, ())) for name in counts}
            return Context(
                today=self._clock().astimezone().date(),
                groups=[(name, groups[name]) for name in ordered],
                omitted={name: count for name, count in omitted.items() if count},
                total=len(vault.memories),
                freshness=freshness,
            )

    def save(self, draft: Draft) -> Saved:
        """Store a memory, and name up to three that look like it."""
        with self._session(writing=True) as (vault, _):
            similar = self._ranked(vault).similar(draft.text, limit=4)
            outcome = vault.save(draft)
            own = outcome.memory.id if outcome.memory else ""
            return Saved(outcome, tuple(hit for hit in similar if hit.memory.id != own)[:3])

    def correct(self, memory_id: str, changes: Changes, expected_revision: int | None = None) -> Outcome:
        with self._session(writing=True) as (vault, _):
            return vault.correct(memory_id, changes, expected_revision)

    def forget(self, memory_id: str, expected_revision: int | None = None) -> Outcome:
        with self._session(writing=True) as (vault, _):
            outcome = vault.forget(memory_id, expected_revision)
            if outcome.status == "forgotten" and self._ranker is None:
                self._edition.forgotten(self._settings, vault)
            return outcome

    def get(self, memory_id: str, *, history: bool = False) -> Found:
        """MemoryNotFound for an unknown or forgotten id, RecordDamaged for a memory that does not open."""
        with self._session() as (vault, freshness):
            if memory_id in vault.damaged:
                raise vault.damaged[memory_id]
            memory = vault.memories.get(memory_id)
            if memory is None:
                raise MemoryNotFound
            return Found(memory, vault.history(memory_id) if history else None, freshness)

    def list(
        self,
        *,
        limit: int = 20,
        cursor: str | None = None,
        filters: Filters | None = None,
        order: Order = "newest",
    ) -> Page:
        """A page in order of creation: corrections and new memories do not shift what comes after a cursor."""
        after = None
        if cursor:
            order, after = _read_cursor(cursor)
        filters, limit = filters or Filters(), _clamp(limit)
        with self._session() as (vault, freshness):
            unfiltered = filters == Filters()
            total = len(vault.memories) if unfiltered else sum(map(filters.matches, vault.memories))
            memories: list[Memory] = []
            for memory in vault.memories.by_creation(newest_first=order == "newest", after=after):
                if unfiltered or filters.matches(memory):
                    memories.append(memory)
                    if len(memories) > limit:
                        break
            more = len(memories) > limit
            memories = memories[:limit]
            return Page(memories, total, _write_cursor(order, memories[-1]) if more else None, freshness)

    def status(self) -> Status:
        """Never raises for a vault that cannot be opened: that is what it tells."""
        place = opening.place(self._settings)
        try:
            with self._session() as (vault, freshness):
                problem = (vault.verdict.code, str(vault.verdict)) if vault.verdict else None
                model = self._ranker.model if self._ranker else ""
                if freshness.stale and problem is None:
                    problem = ("stale", freshness.note)
                return Status(
                    unlocked=True,
                    place=place,
                    problem=problem,
                    counts=vault.memories.counts(),
                    total=len(vault.memories),
                    damaged=sorted(vault.damaged),
                    fingerprint=vault.fingerprint(),
                    last_sync=self._last_sync,
                    ranking="hybrid" if model else "lexical",
                    model=model,
                    embedded=self._ranker.embedded if self._ranker else 0,
                    recovery_code=vault.key_set.recovery is not None,
                    last_export=self._read_last_export(),
                )
        except SquirrelError as error:
            return Status(unlocked=False, place=place, problem=(error.code, str(error)))

    @contextmanager
    def vault(self, *, writing: bool = True) -> Iterator[Vault]:
        """The unlocked vault, for commands that a person gives; held until the block ends.

        writing: whether it has to be in step with the store; otherwise what this device has seen will do.
        """
        with self._session(writing=writing) as (vault, _):
            yield vault

    def note_export(self) -> None:
        """Remember that everything was exported just now; status tells it."""
        private_files.replace(self._settings.data_dir / "last-export", format_time(self._clock()).encode())

    def _choose(self, vault: Vault, topic: str, limit: int) -> dict[str, Memory]:
        chosen: dict[str, Memory] = {}

        def take(memories: Iterator[Memory], most: int) -> None:
            while most > 0 and len(chosen) < limit:
                memory = next(memories, None)
                if memory is None:
                    return
                if memory.id not in chosen:
                    chosen[memory.id] = memory
                    most -= 1

        for category in CONTEXT_FIRST:
            take(vault.memories.latest(category), limit)
        if topic.strip():
            ranking = self._ranked(vault).search(
                topic, now=self._clock(), limit=limit, filters=Filters(), near_misses=False
            )
            take((hit.memory for hit in ranking.hits), limit)
        others = [name for name in vault.memories.counts() if name not in (*CONTEXT_FIRST, *CONTEXT_IN_TURN)]
        streams = [vault.memories.latest(name) for name in CONTEXT_IN_TURN]
        streams.append(heapq.merge(*map(vault.memories.latest, others), key=_changed, reverse=True))
        while len(chosen) < limit:
            before = len(chosen)
            for stream in streams:
                take(stream, 1)
            if len(chosen) == before:
                break
        return chosen

    @contextmanager
    def _session(self, *, writing: bool = False) -> Iterator[tuple[Vault, Freshness]]:
        if not self._lock.acquire(timeout=DEADLINE):
            raise StoreUnavailable("The memories are still being unlocked; try again in a moment.")
        try:
            if self._closed:
                raise StoreUnavailable("The memory server is shutting down.")
            if self._vault is None:
                vault = opening.open_vault(self._settings, self._unlock, clock=self._clock, parameters=self._parameters)
                self._vault = vault
                self._last_sync = vault.last_seen if vault.offline else self._clock()
                freshness = self._sync(vault, writing) if vault.offline or vault.verdict else Freshness()
            else:
                vault = self._vault
                freshness = self._sync(vault, writing)
            yield vault, freshness
        finally:
            self._lock.release()

    def _ranked(self, vault: Vault) -> Ranker:
        """The ranker, which learns of all memories when it is first needed."""
        if self._ranker is None:
            ranker = self._make_ranker(self._settings, vault, self._say)
            vault.add_listener(ranker)
            self._ranker = ranker
        return self._ranker

    def _sync(self, vault: Vault, writing: bool) -> Freshness:
        if vault.verdict is not None:
            return Freshness(True, self._last_sync, str(vault.verdict))
        try:
            vault.sync()
        except (StoreUnavailable, KeysChanged) as error:
            if writing:
                raise type(error)(f"{error} Nothing was stored.") from None
            return Freshness(True, self._last_sync, str(error))
        self._last_sync = self._clock()
        return Freshness()

    def _read_last_export(self) -> datetime | None:
        try:
            raw = private_files.read(self._settings.data_dir / "last-export", _MAX_EXPORT_NOTE)
            return parse_time(raw.decode()) if raw else None
        except (ValueError, SquirrelError):
            return None  # the memories can be used without the note


def _clamp(limit: int) -> int:
    return max(1, min(limit, MAX_LIMIT))


def _changed(memory: Memory) -> tuple[datetime, str]:
    return memory.updated_at, memory.id


def _write_cursor(order: Order, memory: Memory) -> str:
    return base64.urlsafe_b64encode(f"{order} {format_time(memory.created_at)} {memory.id}".encode()).decode()


def _read_cursor(cursor: str) -> tuple[Order, tuple[datetime, str]]:
    try:
        order, created, memory_id = base64.urlsafe_b64decode(cursor.encode()).decode().split(" ")
        if order in _ORDERS:
            return _ORDERS[order], (parse_time(created), memory_id)
    except ValueError:
        pass
    raise InvalidInput("cursor", "cursor is none that list_memories gave; leave it out to begin anew")
