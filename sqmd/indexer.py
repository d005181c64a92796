"""From a folder to the index: what is new, changed, moved or gone; text first, vectors behind.

Each file is replaced as a whole and its row is written last, so that an end at any moment leaves nothing that the
next run does not put right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sqmd.config import Chunking, Watcher
from sqmd.embed import Embedder
from sqmd.errors import IndexBusy, Unreadable
from sqmd.ingest import identity
from sqmd.ingest.chunk import Chunk, ChunkOptions, chunk
from sqmd.ingest.parse import parse
from sqmd.ingest.read import decode, read_bytes
from sqmd.ingest.scan import Found, scan
from sqmd.store.database import Database
from sqmd.store.schema import ChunkRow, FileRow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COMMIT_SECONDS = 2.0
COMMIT_CHUNKS = 2_000
_LOCK_SECONDS = 0.5


@dataclass(slots=True)
class Summary:
    """What a run did, in files; `failed` holds (path, reason) of those that could not be read."""

    indexed: int = 0
    skipped: int = 0
    moved: int = 0
    removed: int = 0
    chunks: int = 0
    failed: list[tuple[str, str]] = field(default_factory=list)


class Progress(Protocol):
    """Who is told how far a run is."""

    def text(self, done: int, total: int) -> None:
        """Files that were looked at."""

    def vectors(self, done: int, total: int) -> None:
        """Chunks that were embedded in this run."""

    def failed(self, path: str, reason: str) -> None:
        """A file that could not be read."""


class Silent:
    """Tells nobody."""

    def text(self, done: int, total: int) -> None: ...

    def vectors(self, done: int, total: int) -> None: ...

    def failed(self, path: str, reason: str) -> None: ...


class _Read(NamedTuple):
    row: FileRow
    chunks: list[ChunkRow]


class Indexer:
    """One run or many over one database. The writer lock is held by `run`, so others may write in between."""

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        chunking: Chunking,
        watcher: Watcher,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database, self._embedder, self._watcher, self._clock = database, embedder, watcher, clock
        self._options = ChunkOptions(
            max_tokens=chunking.max_tokens,
            min_chars=chunking.min_chars,
            include_breadcrumb=chunking.include_breadcrumb,
            overlap_tokens=chunking.overlap_tokens,
        )

    def run(
        self,
        roots: Sequence[Path],
        *,
        force: bool = False,
        progress: Progress | None = None,
        stop: Callable[[], bool] = lambda: False,
        pause: Callable[[], bool] = lambda: False,
        vectors: bool = True,
    ) -> Summary:
        """Bring what lies below `roots` up to date: text and its index, then vectors. IndexBusy, EmbedderDown.

        force: files that did not change are read and embedded again. stop: asked between files and batches. pause: the
        same, but only while vectors are computed. vectors: whether they are; a later run, even of no roots, does.
        """
        told = progress or Silent()
        with writer_lock(self._database.location):
            summary = self._text(roots, force, told, stop)
            self._database.tidy()
            if vectors:
                self._vectors(told, lambda: stop() or pause())
        return summary

    def _text(self, roots: Sequence[Path], force: bool, told: Progress, stop: Callable[[], bool]) -> Summary:
        summary = Summary()
        known = self._database.files()
        self._database.remove(self._database.orphans())
        found = list(self._scan(roots, summary, told))
        seen = {str(each.path) for each in found}
        gone = {path: row for path, row in known.items() if path not in seen and _below(path, roots)}
        unreadable = [path for path, _ in summary.failed]
        gone = {path: row for path, row in gone.items() if not any(_is_in(path, folder) for folder in unreadable)}
        # By content: a file that went and one that came with the same bytes are one that moved.
        left = {row.file_hash: row for row in gone.values() if row.status == "indexed"}
        batch = _Batch(self._database, summary)
        for number, each in enumerate(found):
            if stop():
                break
            told.text(number, len(found))
            before = known.get(str(each.path))
            if not force and before is not None and _same_stat(before, each):
                summary.skipped += 1
                continue
            read = self._read(each, before, force)
            if read is None:
                assert before is not None
                summary.skipped += 1
                batch.add(_Read(before._replace(file_mtime=each.mtime_ns, file_size=each.size), []), None, touch=True)
                continue
            if read.row.status == "error":
                summary.failed.append((read.row.file_path, read.row.error_msg))
                told.failed(read.row.file_path, read.row.error_msg)
            origin = left.pop(read.row.file_hash, None) if before is None else None
            summary.moved += origin is not None
            summary.indexed += origin is None and read.row.status == "indexed"
            summary.chunks += len(read.chunks)
            batch.add(read, None if force else (origin or before))
        else:
            told.text(len(found), len(found))
        batch.write()
        if not stop():
            self._database.remove([row.file_id for row in gone.values()])
            summary.removed = len(gone) - summary.moved
        return summary

    def _scan(self, roots: Sequence[Path], summary: Summary, told: Progress) -> Iterator[Found]:
        def skipped(path: Path, reason: str) -> None:
            summary.failed.append((str(path), reason))
            told.failed(str(path), reason)

        seen: set[Path] = set()
        for root in roots:
            for each in scan(root, self._watcher.extensions, self._watcher.ignore_patterns, skipped):
                if each.path not in seen:
                    seen.add(each.path)
                    yield each

    def _read(self, found: Found, before: FileRow | None, force: bool) -> _Read | None:
        """The rows of a file; None if its bytes are the ones that are indexed."""
        path = found.path
        digest, status, reason = "", "indexed", ""
        chunks: list[ChunkRow] = []
        try:
            raw = read_bytes(path)
            digest = identity.bytes_hash(raw)
            if not force and before is not None and before.status != "error" and before.file_hash == digest:
                return None
            made = chunk(parse(decode(path, raw)), path.stem, self._embedder.count_tokens, self._options)
            chunks = [self._row(found, digest, each) for each in made]
        except Unreadable as error:
            status, reason = "error", error.reason
        if status == "indexed" and not chunks:
            status = "skipped"  # there is nothing in it
        row = FileRow(
            identity.file_id(path), str(path), digest, found.mtime_ns, found.size, len(chunks), self._clock(),
            status, reason,  # type: ignore[arg-type]
        )  # fmt: skip
        return _Read(row, chunks)

    def _row(self, found: Found, digest: str, made: Chunk) -> ChunkRow:
        return ChunkRow(
            chunk_id=identity.chunk_id(found.path, made.section_index, made.chunk_index),
            file_id=identity.file_id(found.path),
            file_path=str(found.path),
            file_hash=digest,
            file_mtime=found.mtime_ns,
            heading_path=" > ".join(made.heading_path),
            heading_level=made.heading_level,
            heading_text=made.heading_text,
            section_index=made.section_index,
            chunk_index=made.chunk_index,
            text=made.text,
            text_raw=made.text_raw,
            token_count=made.token_count,
            parent_headings=list(made.parent_headings),
            depth=made.depth,
            line_start=made.line_start,
            line_end=made.line_end,
        )

    def _vectors(self, told: Progress, stop: Callable[[], bool]) -> None:
        missing = self._database.without_vector()
        if not missing:
            return
        filled = 0
        for start in range(0, len(missing), COMMIT_CHUNKS):
            texts = self._database.texts(missing[start : start + COMMIT_CHUNKS])
            ids = list(texts)
            ready: dict[str, NDArray[np.float32]] = {}
            began = time.monotonic()
            for first in range(0, len(ids), _EMBEDDED_AT_ONCE):
                if stop():
                    break
                some = ids[first : first + _EMBEDDED_AT_ONCE]
                vectors = self._embedder.embed_documents([texts[chunk_id] for chunk_id in some])
                ready |= {
                    chunk_id: vector for chunk_id, vector in zip(some, vectors, strict=True) if vector is not None
                }
                told.vectors(start + first + len(some), len(missing))
                if time.monotonic() - began >= COMMIT_SECONDS:
                    self._database.fill(ready)
                    filled += len(ready)
                    ready, began = {}, time.monotonic()
            self._database.fill(ready)
            filled += len(ready)
            if stop():
                break
        if filled:
            self._database.tidy()


_EMBEDDED_AT_ONCE = 128  # chunks, between two looks at `stop`


class _Batch:
    """Files that wait to be written together."""

    def __init__(self, database: Database, summary: Summary) -> None:
        self._database, self._summary = database, summary
        self._reads: list[_Read] = []
        self._touched: list[FileRow] = []
        self._origins: set[str] = set()
        self._began = time.monotonic()

    def add(self, read: _Read, origin: FileRow | None, *, touch: bool = False) -> None:
        """`origin`: the file whose vectors fit where the text is the same. touch: only the file's row is new."""
        if touch:
            self._touched.append(read.row)
        else:
            self._reads.append(read)
            if origin is not None:
                self._origins.add(origin.file_id)
        size = sum(len(each.chunks) for each in self._reads)
        if size >= COMMIT_CHUNKS or time.monotonic() - self._began >= COMMIT_SECONDS:
            self.write()

    def write(self) -> None:
        if self._reads:
            known = self._database.vectors_of(self._origins)
            chunks = [row for read in self._reads for row in read.chunks]
            vectors = {row.chunk_id: known[row.text] for row in chunks if row.text in known}
            self._database.replace([read.row for read in self._reads], chunks, vectors)
        self._database.touch(self._touched)
        self._reads, self._touched, self._origins = [], [], set()
        self._began = time.monotonic()


@contextmanager
def writer_lock(location: str) -> Iterator[None]:
    """One writer on this machine at a time; IndexBusy if there is one already."""
    if "://" in location:  # where others write is for whoever shares it to see to
        yield
        return
    import filelock

    folder = Path(location)
    folder.mkdir(parents=True, exist_ok=True)
    held = filelock.FileLock(folder / ".writer.lock", timeout=_LOCK_SECONDS)
    try:
        held.acquire()
    except filelock.Timeout:
        raise IndexBusy("Another process is indexing; try again when it is done.") from None
    try:
        yield
    finally:
        held.release()


def _same_stat(row: FileRow, found: Found) -> bool:
    return row.status != "error" and (row.file_mtime, row.file_size) == (found.mtime_ns, found.size)


def _below(path: str, roots: Iterable[Path]) -> bool:
    return any(_is_in(path, str(root.absolute())) for root in roots)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or Path(path).is_relative_to(folder)
