"""Runs of the index in the background: one after the other, in the order they were asked for."""

from __future__ import annotations

import threading
import uuid
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

from sqmd.errors import IndexBusy, NotInIndex, SqmdError
from sqmd.stderr import kind_and_place

if TYPE_CHECKING:
    from sqmd.indexer import Progress, Summary

_TURN_SECONDS = 1.0  # between two looks at whether another process still indexes
_MOST = 100  # that wait, and that are remembered

JobStatus = Literal["queued", "running", "done", "failed"]
Then = Callable[["Job"], None]


@dataclass(slots=True)
class Job:
    """One run. Times in seconds since 1970; `failure` is a sentence."""

    job_id: str
    paths: tuple[Path, ...]
    force: bool
    then: list[Then]
    status: JobStatus = "queued"
    summary: Summary | None = None
    started_at: float | None = None
    completed_at: float | None = None
    failure: str = ""
    progress: tuple[str, int, int] = ("text", 0, 0)  # what is being made, how many of how many


class Index(Protocol):
    """What a job does. IndexBusy where another process does so: it is tried again."""

    def __call__(self, paths: tuple[Path, ...], *, force: bool, progress: Progress) -> Summary: ...


class Jobs:
    """Thread-safe. The thread that works lives while there are jobs."""

    def __init__(self, index: Index, stopped: threading.Event, clock: Callable[[], float]) -> None:
        self._index, self._stopped, self._clock = index, stopped, clock
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}
        self._waiting: deque[Job] = deque()
        self._worker: threading.Thread | None = None

    def add(self, paths: tuple[Path, ...], force: bool, then: Then) -> Job:
        """A new job, or the one that waits already and is the same. IndexBusy where too many wait."""
        with self._lock:
            for job in self._waiting:
                if (job.paths, job.force) == (paths, force):
                    job.then.append(then)
                    return job
            if len(self._waiting) == _MOST:
                raise IndexBusy(f"{_MOST} jobs wait already; try again when some are done.")
            job = Job(uuid.uuid4().hex, paths, force, [then])
            self._jobs[job.job_id] = job
            for old in list(self._jobs)[:-_MOST]:
                if self._jobs[old].status in ("done", "failed"):
                    del self._jobs[old]
            self._waiting.append(job)
            if self._worker is None or not self._worker.is_alive():
                self._worker = threading.Thread(target=self._work, name="indexing", daemon=True)
                self._worker.start()
        return job

    def get(self, job_id: str) -> Job:
        """NotInIndex for an unknown one."""
        with self._lock:
            if job_id not in self._jobs:
                raise NotInIndex("There is no such job.")
            return self._jobs[job_id]

    def all(self) -> list[Job]:
        """Those that are remembered, the latest first."""
        with self._lock:
            return list(reversed(self._jobs.values()))

    def current(self) -> Job | None:
        """The one that is running, or waiting to."""
        with self._lock:
            return next((job for job in self._jobs.values() if job.status in ("queued", "running")), None)

    def latest(self) -> Job | None:
        """The one that was asked for last, whatever became of it."""
        with self._lock:
            return next(reversed(self._jobs.values()), None)

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._worker = None
                    return
                job = self._waiting.popleft()
            self._do(job)

    def _do(self, job: Job) -> None:
        failure = ""
        try:
            job.summary = self._in_turn(job)
            if self._stopped.is_set():
                failure = "It was stopped before its end; the next run goes on."
        except SqmdError as error:
            failure = str(error)
        # A border: the next job is not to wait for ever, nor who asks about this one. Its text may quote a document.
        except Exception as error:  # noqa: BLE001
            failure = f"It ended by a mistake in sqmd ({kind_and_place(error)}); please report it."
        job.failure = failure
        job.status = "failed" if failure else "done"
        job.completed_at = self._clock()
        for then in job.then:
            then(job)

    def _in_turn(self, job: Job) -> Summary:
        """As soon as no other process is indexing."""
        while True:
            if self._stopped.is_set():
                raise IndexBusy("It was stopped before it began; the next run goes on.")
            try:
                return self._index(job.paths, force=job.force, progress=_Shown(job, self._clock))
            except IndexBusy:
                job.status = "queued"
                self._stopped.wait(_TURN_SECONDS)


class _Shown:
    """Progress of a job, for whoever asks about it. The first that there is says that it runs."""

    def __init__(self, job: Job, clock: Callable[[], float]) -> None:
        self._job, self._clock = job, clock

    def text(self, done: int, total: int) -> None:
        self._show("text", done, total)

    def vectors(self, done: int, total: int) -> None:
        self._show("vectors", done, total)

    def failed(self, path: str, reason: str) -> None: ...

    def _show(self, what: str, done: int, total: int) -> None:
        if self._job.started_at is None:
            self._job.started_at = self._clock()
        self._job.status, self._job.progress = "running", (what, done, total)
