"""What the fronts call: one object over one configuration, which indexes, searches and tells what there is."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sqmd import original
from sqmd.config import Config
from sqmd.embed import Embedder, choose
from sqmd.errors import EmbedderDown, IndexBusy, InvalidInput, NotIndexed, NotInIndex, SqmdError
from sqmd.ingest import identity
from sqmd.rag import DEFAULT_TOKENS, build_context
from sqmd.search.results import Answer, Mode

if TYPE_CHECKING:
    from sqmd.indexer import Progress, Summary
    from sqmd.search.searcher import Reranker, Searcher
    from sqmd.store.database import Database
    from sqmd.store.schema import FileRow, Stamp

_GIVING_WAY_SECONDS = 0.02  # between two looks at whether the others are done
_TURN_SECONDS = 1.0  # between two looks at whether another process still indexes
_MOST_JOBS = 100  # that are remembered

JobStatus = Literal["queued", "running", "done", "failed"]


@dataclass(slots=True)
class Job:
    """One run of the index in the background. Times in seconds since 1970; `failure` is a sentence."""

    job_id: str
    paths: tuple[Path, ...]
    force: bool
    status: JobStatus = "queued"
    summary: Summary | None = None
    started_at: float | None = None
    completed_at: float | None = None
    failure: str = ""
    progress: tuple[str, int, int] = ("text", 0, 0)  # what is being made, how many of how many


@dataclass(frozen=True, slots=True)
class Status:
    """What `sqmd status` tells."""

    db_path: str
    indexed: bool
    files: int = 0
    chunks: int = 0
    vectors: int = 0
    errors: list[tuple[str, str]] = field(default_factory=list)  # (path, reason)
    last_index: float | None = None
    watch_dirs: tuple[Path, ...] = ()
    watching: bool = False
    embedder: str = ""


class Service:
    """Thread-safe. Its parts are made when they are first needed."""

    def __init__(
        self,
        config: Config,
        *,
        embedder: Embedder | None = None,
        reranker: Reranker | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.config = config
        self._clock = clock
        self._embedder = embedder
        self._reranker = reranker
        self._database: Database | None = None
        self._making = threading.RLock()
        self._jobs: dict[str, Job] = {}
        self._running = threading.Lock()  # one job after the other
        self._hurried = 0  # runs that wait for their turn, or have it, and take the text alone
        self._stopped = threading.Event()
        self.watching = False
        self.started_at = clock()

    @property
    def embedder(self) -> Embedder:
        with self._making:
            if self._embedder is None:
                self._embedder = choose.make(self.config)
            return self._embedder

    def close(self) -> None:
        """Stop what runs in the background, soon."""
        self._stopped.set()
        with self._running:  # a job ends at its next look
            pass
        if self._embedder is not None:
            self._embedder.close()

    # Searching.

    def search(
        self,
        query: str,
        *,
        top_k: int | None = None,
        mode: Mode = "hybrid",
        path: str = "",
        rerank: bool | None = None,
    ) -> Answer:
        """NotIndexed, InvalidInput, ModelMismatch, EmbedderDown; what is left out comes from the configuration."""
        settings = self.config.search
        return self._searcher().search(
            query,
            top_k=settings.default_top_k if top_k is None else top_k,
            mode=mode,
            path=path,
            rerank=settings.rerank if rerank is None else rerank,
        )

    def context(self, query: str, *, max_tokens: int = DEFAULT_TOKENS, top_k: int = 20, path: str = "") -> str:
        """The text of the best chunks for a prompt, within `max_tokens`."""
        answer = self.search(query, top_k=top_k, path=path)
        return self.assemble(answer, max_tokens)

    def assemble(self, answer: Answer, max_tokens: int = DEFAULT_TOKENS) -> str:
        """The results of an answer as the context of a prompt."""
        return build_context(answer.results, max_tokens, self.embedder.count_tokens)

    # What is there.

    def files(self, prefix: str = "") -> list[FileRow]:
        """The files of the index whose path begins with `prefix`, by path."""
        rows = self._opened().files()
        return [rows[path] for path in sorted(rows) if path.startswith(prefix)]

    def document(self, file_id: str) -> tuple[FileRow, list[dict[str, Any]]]:
        """A file's row and its chunks in order. NotInIndex."""
        database = self._opened()
        row = database.file(file_id)
        if row is None:
            raise NotInIndex("There is no such document in the index.")
        return row, database.chunks_of(file_id)

    def document_at(self, path: str) -> tuple[FileRow, list[dict[str, Any]]]:
        """The same by its path."""
        return self.document(identity.file_id(Path(path)))

    def raw(self, file_id: str) -> str:
        """The text of a file of the index as it is on disk now. NotInIndex, Unreadable."""
        row = self._opened().file(file_id)
        if row is None:
            raise NotInIndex("There is no such document in the index.")
        return original.text_of(row, self.config.paths.watch_dirs)

    def status(self) -> Status:
        """Never raises NotIndexed: that is what it tells."""
        config = self.config
        about = {"watch_dirs": config.paths.watch_dirs, "watching": self.watching}
        try:
            database = self._opened()
        except NotIndexed:
            return Status(config.paths.db_path, False, embedder=config.embeddings.model, **about)  # type: ignore[arg-type]
        rows = database.files().values()
        files, chunks, vectors = database.counts()
        return Status(
            db_path=config.paths.db_path,
            indexed=True,
            files=files,
            chunks=chunks,
            vectors=vectors,
            errors=[(row.file_path, row.error_msg) for row in rows if row.status == "error"],
            last_index=max((row.indexed_at for row in rows), default=None),
            embedder=database.stamp.model,
            **about,  # type: ignore[arg-type]
        )

    # Indexing.

    def index(
        self,
        paths: Sequence[Path],
        *,
        force: bool = False,
        progress: Progress | None = None,
        stop: Callable[[], bool] | None = None,
        vectors: bool = True,
    ) -> Summary:
        """Bring these folders or files up to date, now. IndexBusy, NoSuchPath, ModelMismatch, EmbedderDown.

        force: everything is read and embedded again; an index of another model or format is made anew. vectors: False
        takes the text alone, and goes before vectors that another thread computes, which may take hours.
        """
        from sqmd.indexer import Indexer, writer_lock
        from sqmd.store.database import Database

        stop = stop or self._stopped.is_set
        cut = False

        def pause() -> bool:
            nonlocal cut
            cut = cut or self._hurried > 0
            return cut

        with self._turn(hurried=not vectors):
            location = self.config.paths.db_path
            if force:
                with writer_lock(location):
                    self._drop_another_models(location)
            database = Database.create(location, self._stamp())
            indexer = Indexer(database, self.embedder, self.config.chunking, self.config.watcher, clock=self._clock)
            summary = indexer.run(paths, force=force, progress=progress, stop=stop, pause=pause, vectors=vectors)
        while cut and not stop():  # somebody's text went first; the vectors that are left
            cut = False
            while self._hurried and not stop():
                self._stopped.wait(_GIVING_WAY_SECONDS)
            with self._turn():
                indexer.run((), progress=progress, stop=stop, pause=pause)
        return summary

    @contextmanager
    def _turn(self, *, hurried: bool = False) -> Iterator[None]:
        """One run after the other; one that is hurried has whoever computes vectors give way."""
        with self._making:
            self._hurried += hurried
        try:
            with self._running:
                yield
        finally:
            with self._making:
                self._hurried -= hurried

    def trigger(self, paths: Sequence[Path] | None = None, *, force: bool = False) -> Job:
        """Index in the background. InvalidInput for a path outside the folders of `watch_dirs`."""
        allowed = self.config.paths.watch_dirs
        for path in paths or ():
            if ".." in path.parts or not original.is_inside(path, allowed):
                raise InvalidInput("paths", f"{path} is in none of the folders of watch_dirs.")
        job = Job(uuid.uuid4().hex, tuple(paths or allowed), force)
        with self._making:
            self._jobs[job.job_id] = job
            for old in list(self._jobs)[:-_MOST_JOBS]:
                if self._jobs[old].status in ("done", "failed"):
                    del self._jobs[old]
        threading.Thread(target=self._work, args=(job,), name="indexing", daemon=True).start()
        return job

    def job(self, job_id: str) -> Job:
        """NotInIndex for an unknown one."""
        with self._making:
            if job_id not in self._jobs:
                raise NotInIndex("There is no such job.")
            return self._jobs[job_id]

    def jobs(self) -> list[Job]:
        """Those that are remembered, the latest first."""
        with self._making:
            return list(reversed(self._jobs.values()))

    def current_job(self) -> Job | None:
        """The one that is running, or waiting to."""
        with self._making:
            return next((job for job in self._jobs.values() if job.status in ("queued", "running")), None)

    def latest_job(self) -> Job | None:
        """The one that was triggered last, whatever became of it."""
        with self._making:
            return next(reversed(self._jobs.values()), None)

    def _work(self, job: Job) -> None:
        job.started_at = self._clock()
        job.status = "running"
        try:
            job.summary = self._index_in_turn(job)
            job.status = "done"
        except SqmdError as error:
            job.failure, job.status = str(error), "failed"
        finally:
            if job.status == "running":  # whoever asks about it is not to wait for ever
                job.failure, job.status = "It ended by a mistake in sqmd; the log has it.", "failed"
            job.completed_at = self._clock()

    def _index_in_turn(self, job: Job) -> Summary:
        """As soon as no other process is indexing."""
        while True:
            try:
                return self.index(job.paths, force=job.force, progress=_JobProgress(job))
            except IndexBusy:
                job.status = "queued"
                if self._stopped.wait(_TURN_SECONDS):
                    raise
                job.status = "running"

    def _drop_another_models(self, location: str) -> None:
        from sqmd.errors import DatabaseDamaged, ModelMismatch, NewerFormat
        from sqmd.store.database import Database

        try:
            Database.open(location).check(self._stamp())
        except NotIndexed:
            return
        except (DatabaseDamaged, ModelMismatch, NewerFormat):
            Database.drop(location)
            self._database = None

    def _stamp(self) -> Stamp:
        from sqmd.store.schema import Stamp

        return Stamp(self.embedder.name, self.embedder.dimension)

    def _opened(self) -> Database:
        from sqmd.store.database import Database

        with self._making:
            if self._database is None:
                self._database = Database.open(self.config.paths.db_path)
            return self._database

    def _searcher(self) -> Searcher:
        from sqmd.search.searcher import Searcher

        database = self._opened()
        with suppress(EmbedderDown):  # then words are searched, and the answer says so
            database.check_model(self.embedder.name)
        settings = self.config.search
        return Searcher(
            database, self.embedder, rrf_k=settings.rrf_k, rerank_top_n=settings.rerank_top_n, reranker=self._rerank
        )

    def _rerank(self) -> Reranker:
        from sqmd.search import rerank

        with self._making:
            if self._reranker is None:
                self._reranker = rerank.make(self.config)
            return self._reranker


class _JobProgress:
    """Progress of a job, for whoever asks about it."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def text(self, done: int, total: int) -> None:
        self._job.progress = ("text", done, total)

    def vectors(self, done: int, total: int) -> None:
        self._job.progress = ("vectors", done, total)

    def failed(self, path: str, reason: str) -> None: ...
