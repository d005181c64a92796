"""What the fronts call: one object over one configuration, which indexes, searches and tells what there is."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqmd import original
from sqmd.config import Config
from sqmd.config_values import without_login
from sqmd.embed import Embedder, choose
from sqmd.errors import EmbedderDown, IndexBusy, InvalidInput, ModelMismatch, NotIndexed, NotInIndex
from sqmd.ingest import identity
from sqmd.jobs import Job, Jobs, Then
from sqmd.rag import DEFAULT_TOKENS, build_context
from sqmd.search.results import Answer, Mode

if TYPE_CHECKING:
    from sqmd.indexer import Progress, Summary
    from sqmd.search.searcher import Reranker, Searcher
    from sqmd.store.database import Database
    from sqmd.store.schema import FileRow, Stamp

_GIVING_WAY_SECONDS = 0.02  # between two looks at whether the others are done
_UNREAD = "it was not read again since the model changed"
_TURN_SECONDS = 1.0  # between two looks at whether another process still indexes


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
        self._running = threading.Lock()  # one run after the other
        self._hurried = 0  # runs that wait for their turn, or have it, and take the text alone
        self._stopped = threading.Event()
        self.jobs = Jobs(self.index, self._stopped, clock)
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
        for model in (self._embedder, self._reranker):
            if model is not None:
                model.close()

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

    def paths(self, prefix: str = "") -> list[str]:
        """The paths of the files of the index that begin with `prefix`, in order."""
        return self._opened().paths(prefix)

    def files_at(self, paths: Sequence[str]) -> list[FileRow]:
        """The files of these paths, in their order; without those that went meanwhile."""
        rows = self._opened().files_at(paths)
        return [rows[path] for path in paths if path in rows]

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

    def is_indexed(self) -> bool:
        """Whether there is an index; DatabaseDamaged and the like for one that cannot be used."""
        try:
            self._opened()
        except NotIndexed:
            return False
        return True

    def pending(self) -> int:
        """How many chunks no model has seen yet."""
        return self._opened().pending()

    def status(self) -> Status:
        """Never raises NotIndexed: that is what it tells."""
        config = self.config
        about = {"watch_dirs": config.paths.watch_dirs, "watching": self.watching}
        try:
            database = self._opened()
        except NotIndexed:
            return Status(without_login(config.paths.db_path), False, embedder=config.embeddings.model, **about)  # type: ignore[arg-type]
        files, chunks, vectors = database.counts()
        return Status(
            db_path=without_login(config.paths.db_path),
            indexed=True,
            files=files,
            chunks=chunks,
            vectors=vectors,
            errors=[(row.file_path, row.error_msg) for row in database.failed().values()],
            last_index=database.last_indexed(),
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

        force: everything is read and embedded again; where the index is another model's, all that it holds is. vectors:
        False takes the text alone, and goes before vectors that another thread computes, which may take hours.
        """
        from sqmd.indexer import Indexer

        stop = stop or self._stopped.is_set
        cut = False

        def pause() -> bool:
            nonlocal cut
            cut = cut or self._hurried > 0
            return cut

        with self._turn(hurried=not vectors):
            database, others = self._prepared(force)
            roots = [original.placed(path, self.config.paths.watch_dirs) for path in paths]
            indexer = Indexer(
                database, self.embedder, self.config.chunking, self.config.watcher, clock=self._clock,
                batch_size=self.config.embeddings.batch_size, anchors=self.config.paths.watch_dirs,
            )  # fmt: skip
            summary = indexer.run(
                [*roots, *others], force=force, progress=progress, stop=stop, pause=pause, vectors=vectors
            )
        while cut and not stop():  # somebody's text went first; the vectors that are left
            cut = False
            while self._hurried and not stop():
                self._stopped.wait(_GIVING_WAY_SECONDS)
            try:
                with self._turn():
                    indexer.run((), progress=progress, stop=stop, pause=pause)
            except IndexBusy:  # another process, whose run computes them or leaves them
                cut = True
                self._stopped.wait(_TURN_SECONDS)
        return summary

    def _prepared(self, force: bool) -> tuple[Database, list[Path]]:
        """The database to write, and what it held while it was another model's and was not read again since."""
        from sqmd.store.database import Database
        from sqmd.store.lock import writer_lock
        from sqmd.store.schema import FileRow

        location = self.config.paths.db_path
        with writer_lock(location):
            try:
                database = Database.open(location)
                self._check(database)
            except NotIndexed:
                return Database.create(location, self._stamp()), []
            except ModelMismatch:
                if not force:
                    raise
                stamp = self._stamp()  # before anything is dropped: a model that cannot be had drops nothing
                held = database.paths()
                Database.drop(location)
                database = Database.create(location, stamp)
                # So that a kill leaves it to the next run.
                database.touch(
                    [FileRow(identity.file_id(Path(path)), path, "", 0, 0, 0, 0.0, "error", _UNREAD) for path in held]
                )
            unread = (path for path, row in database.failed().items() if row.error_msg == _UNREAD)
            return database, [Path(path) for path in unread if os.path.isfile(path)]

    def _check(self, database: Database) -> None:
        """ModelMismatch. Of a model that is away, whose dimension it alone knows, the name has to do."""
        try:
            stamp = self._stamp()
        except EmbedderDown:
            database.check_model(self.embedder.name)
        else:
            database.check(stamp)

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

    def trigger(
        self, paths: Sequence[Path] | None = None, *, force: bool = False, then: Then = lambda job: None
    ) -> Job:
        """Index in the background, after the jobs before it; one that waits already is that job.

        then: called with the job when it has ended. InvalidInput for a path outside the folders of `watch_dirs`,
        IndexBusy where too many wait.
        """
        allowed = self.config.paths.watch_dirs
        for path in paths or ():
            if ".." in path.parts or not original.is_inside(path, allowed):
                raise InvalidInput("paths", f"{path} is in none of the folders of watch_dirs.")
        return self.jobs.add(tuple(paths or allowed), force, then)

    def _stamp(self) -> Stamp:
        from sqmd.store.schema import Stamp

        return Stamp(self.embedder.name, self.embedder.dimension)

    def _opened(self) -> Database:
        from sqmd.store.database import Database

        with self._making:
            if self._database is None or not self._database.is_current():
                self._database = None
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
