"""From a folder to the index: what is new, changed, moved or gone; text first, vectors behind.

Each file is replaced as a whole and its row is written last, so that an end at any moment leaves nothing that the
next run does not put right.
"""

from __future__ import annotations

import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import astuple, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from sqmd.config import Chunking, Watcher
from sqmd.embed import Embedder
from sqmd.errors import Unreadable
from sqmd.ingest import identity
from sqmd.ingest.chunk import Chunk, ChunkOptions, chunk
from sqmd.ingest.parse import parse
from sqmd.ingest.read import decode, read_bytes
from sqmd.ingest.scan import Found, scan
from sqmd.store.database import Database
from sqmd.store.lock import writer_lock
from sqmd.store.schema import ChunkRow, FileRow, Status

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

COMMIT_SECONDS = 2.0
COMMIT_CHUNKS = 2_000


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
    """One run or many over one database. The writer lock is held by `run`, so others may write in between.

    batch_size: chunks embedded at a time. anchors: folders that the ignore rules are anchored at for whatever lies in
    one; for what does not they are at each root itself.
    """

    def __init__(
        self,
        database: Database,
        embedder: Embedder,
        chunking: Chunking,
        watcher: Watcher,
        *,
        batch_size: int = 64,
        anchors: Sequence[Path] = (),
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._database, self._embedder, self._watcher, self._clock = database, embedder, watcher, clock
        self._batch_size, self._anchors = batch_size, anchors
        self._options = ChunkOptions(
            # What the model does not read of a chunk would be in no vector.
            max_tokens=min(chunking.max_tokens, embedder.max_tokens),
            min_chars=chunking.min_chars,
            include_breadcrumb=chunking.include_breadcrumb,
            overlap_tokens=chunking.overlap_tokens,
        )
        self._chunking = json.dumps(astuple(self._options))

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
        ModelMismatch, NotIndexed where the database is not the one that was opened any more.
        """
        told = progress or Silent()
        folders = list(dict.fromkeys(Path(os.path.abspath(root)) for root in roots))
        with writer_lock(self._database.location):
            # Another process may have made it anew since, and a handle follows whatever is there.
            Database.open(self._database.location).check(self._database.stamp)
            summary = self._text(folders, force, told, stop)
            self._database.tidy()
            if vectors:
                self._vectors(told, lambda: stop() or pause())
        return summary

    def _text(self, roots: Sequence[Path], force: bool, told: Progress, stop: Callable[[], bool]) -> Summary:
        summary = Summary()
        if not roots:
            return summary
        told.text(0, 0)
        known = self._database.files_at([str(root) for root in roots if os.path.isfile(root)])
        folders = [str(root) for root in roots if not os.path.isfile(root)]
        if folders:  # one changed file is not to cost what the whole index does
            known |= self._database.files_below(folders)
            self._database.remove(self._database.orphans())
        found = list(self._scan(roots, known, summary, told))
        seen = {str(each.path) for each in found}
        unreadable = [path for path, _ in summary.failed]
        gone = [
            row
            for path, row in known.items()
            if path not in seen and not any(_is_in(path, folder) for folder in unreadable)
        ]
        # By content: a file that went and one that came with the same bytes are one that moved.
        left: dict[str, list[FileRow]] = defaultdict(list)
        for row in gone:
            if row.status == "indexed":
                left[row.file_hash].append(row)
        batch = _Batch(self._database, summary)
        for number, each in enumerate(found):
            if stop():
                break
            told.text(number, len(found))
            before = known.get(str(each.path))
            if not force and before is not None and self._is_same(before) and _same_stat(before, each):
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
            origins = left[read.row.file_hash]
            origin = origins.pop() if origins and before is None else None
            summary.moved += origin is not None
            summary.indexed += origin is None and read.row.status == "indexed"
            summary.chunks += len(read.chunks)
            batch.add(read, None if force else (origin or before))
        else:
            told.text(len(found), len(found))
        batch.write()
        if not stop():
            self._database.remove([row.file_id for row in gone])
            summary.removed = len(gone) - summary.moved
        return summary

    def _scan(self, roots: Sequence[Path], known: Collection[str], summary: Summary, told: Progress) -> Iterator[Found]:
        def skipped(path: Path, reason: str) -> None:
            summary.failed.append((str(path), reason))
            told.failed(str(path), reason)

        seen: set[Path] = set()
        settings = self._watcher
        for root in roots:
            if str(root) in known and not os.path.exists(root) and os.path.exists(root.parent):
                continue  # a file that was deleted, named to have it forgotten
            for start, anchor in self._starts(root):
                for each in scan(start, settings.extensions, settings.ignore_patterns, skipped, anchor=anchor):
                    if each.path not in seen:
                        seen.add(each.path)
                        yield each

    def _starts(self, root: Path) -> Iterator[tuple[Path, Path | None]]:
        """What is looked through for a root, and where the ignore rules are anchored.

        Of folders in one another each lets in what it does, so that runs over one or the other end in the same.
        """
        holding = [folder for folder in self._anchors if root.is_relative_to(folder)]
        yield from ((root, folder) for folder in holding or (None,))
        yield from ((folder, folder) for folder in self._anchors if root in folder.parents and os.path.exists(folder))

    def _read(self, found: Found, before: FileRow | None, force: bool) -> _Read | None:
        """The rows of a file; None if its bytes are the ones that are indexed."""
        path = found.path
        digest, reason = "", ""
        status: Status = "indexed"
        chunks: list[ChunkRow] = []
        try:
            raw = read_bytes(path)
            digest = identity.bytes_hash(raw)
            if not force and before is not None and self._is_same(before) and before.file_hash == digest:
                return None
            made = chunk(parse(decode(path, raw)), path.stem, self._embedder.count_tokens, self._options)
            chunks = [self._row(found, digest, each) for each in made]
        except Unreadable as error:
            status, reason = "error", error.reason
        if status == "indexed" and not chunks:
            status = "skipped"  # there is nothing in it
        row = FileRow(
            identity.file_id(path), str(path), digest, found.mtime_ns, found.size, len(chunks), self._clock(),
            status, reason, self._chunking,
        )  # fmt: skip
        return _Read(row, chunks)

    def _is_same(self, before: FileRow) -> bool:
        """Whether the same bytes would make the same rows."""
        return before.status != "error" and before.chunking == self._chunking

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
        done = 0
        for start in range(0, len(missing), COMMIT_CHUNKS):
            texts = self._database.texts(missing[start : start + COMMIT_CHUNKS])
            ids = list(texts)
            ready: dict[str, NDArray[np.float32] | None] = {}
            began = time.monotonic()
            for first in range(0, len(ids), self._batch_size):
                if stop():
                    break
                some = ids[first : first + self._batch_size]
                vectors = self._embedder.embed_documents([texts[chunk_id] for chunk_id in some])
                ready |= zip(some, vectors, strict=True)
                done += len(some)
                told.vectors(done, len(missing))
                if time.monotonic() - began >= COMMIT_SECONDS:
                    self._database.fill(ready)
                    ready, began = {}, time.monotonic()
            self._database.fill(ready)
            if stop():
                break
        if done:
            self._database.tidy()


class _Batch:
    """Files that wait to be written together."""

    def __init__(self, database: Database, summary: Summary) -> None:
        self._database, self._summary = database, summary
        self._reads: list[_Read] = []
        self._touched: list[FileRow] = []
        self._origins: set[str] = set()
        self._size = 0
        self._began = time.monotonic()

    def add(self, read: _Read, origin: FileRow | None, *, touch: bool = False) -> None:
        """`origin`: the file whose vectors fit where the text is the same. touch: only the file's row is new."""
        if touch:
            self._touched.append(read.row)
        else:
            self._reads.append(read)
            self._size += len(read.chunks)
            if origin is not None:
                self._origins.add(origin.file_id)
        if self._size >= COMMIT_CHUNKS or time.monotonic() - self._began >= COMMIT_SECONDS:
            self.write()

    def write(self) -> None:
        if self._reads:
            known = self._database.vectors_of(self._origins)
            chunks = [row for read in self._reads for row in read.chunks]
            vectors = {row.chunk_id: known[row.text] for row in chunks if row.text in known}
            self._database.replace([read.row for read in self._reads], chunks, vectors)
        self._database.touch(self._touched)
        self._reads, self._touched, self._origins, self._size = [], [], set(), 0
        self._began = time.monotonic()


def _same_stat(row: FileRow, found: Found) -> bool:
    return (row.file_mtime, row.file_size) == (found.mtime_ns, found.size)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip(os.sep) + os.sep)
