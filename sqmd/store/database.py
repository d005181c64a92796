"""The two tables: opened, written by one writer, read by anybody at any time."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sqmd.config_values import without_login
from sqmd.errors import (
    DatabaseDamaged,
    DatabaseUnavailable,
    InvalidInput,
    ModelMismatch,
    NewerFormat,
    NotIndexed,
    one_line,
)
from sqmd.store import schema
from sqmd.store.quoting import any_of, below, contains, literal, one_of, starts_with
from sqmd.store.schema import ChunkRow, FileRow, Stamp

# Before the import, which reads it: its notes on what it does are nobody's business on stderr.
os.putenv("LANCEDB_LOG", "error")
import lancedb
from lancedb.index import FTS, IvfFlat

_FLAT_ROWS = 10_000  # up to here comparing with every vector is quicker than an index, and finds all
_MOST_VERSIONS = 100  # that one handle reads; a run that finds something new writes four
_KEPT = timedelta(minutes=10)  # what a reader may still be reading
_OF_RESULTS = [name for name in ChunkRow._fields if name not in ("file_hash", "file_mtime", "parent_headings", "depth")]


class Database:
    """For any number of threads and processes that read, each what was last written, and one that writes."""

    def __init__(self, location: str, chunks: Any, files: Any, stamp: Stamp) -> None:
        self.location, self.stamp = location, stamp
        self._chunks, self._files = chunks, files
        self._first_version = chunks.version

    @classmethod
    def open(cls, location: str) -> Database:
        """NotIndexed where there is none yet, DatabaseDamaged where there is one that cannot be read."""
        if "://" not in location and not Path(location).is_dir():
            raise NotIndexed
        with told(location):
            connection = _connect(location)
            names = _table_names(connection)
            if "chunks" not in names or "files" not in names:
                raise NotIndexed
            chunks, files = connection.open_table("chunks"), connection.open_table("files")
            stamp = Stamp.of(chunks.schema)
            if stamp is None or Stamp.of(files.schema) != stamp:
                raise DatabaseDamaged(location)
            if stamp.format > schema.FORMAT:
                raise NewerFormat(f"{location} was made by a later version of sqmd: update this program.")
            return cls(location, chunks, files, stamp)

    @classmethod
    def create(cls, location: str, stamp: Stamp) -> Database:
        """Open or make it, under the writer's lock. ModelMismatch for one whose vectors another model made."""
        try:
            database = cls.open(location)
        except NotIndexed:
            return cls._made(location, stamp)
        database.check(stamp)
        return database

    @classmethod
    def _made(cls, location: str, stamp: Stamp) -> Database:
        cls.drop(location)  # what a killed process left of making or dropping one
        with told(location):
            if "://" not in location:
                Path(location).mkdir(parents=True, exist_ok=True)
            connection = _connect(location)
            chunks = connection.create_table("chunks", schema=schema.chunks(stamp))
            chunks.create_index("text", config=_FULL_TEXT)
            # Last, as without both there is no database: one that is there has its full-text index.
            files = connection.create_table("files", schema=schema.files(stamp))
        return cls(location, chunks, files, stamp)

    def is_current(self) -> bool:
        """Whether reading may go on: it is still there, no process made it anew, and little was written since.

        The engine keeps a file open for every version of the full-text index that it has read.
        """
        try:
            written = self._chunks.version - self._first_version
            return 0 <= written < _MOST_VERSIONS and Stamp.of(self._chunks.schema) == self.stamp
        except (RuntimeError, ValueError, OSError):
            return False

    def check(self, stamp: Stamp) -> None:
        """ModelMismatch unless its vectors are those of this model."""
        if self.stamp != stamp:
            raise ModelMismatch(self.stamp.model, stamp.model)

    def check_model(self, name: str) -> None:
        """The same by the model's name alone: its dimension may take a server that is away to tell."""
        if self.stamp.model != name:
            raise ModelMismatch(self.stamp.model, name)

    @staticmethod
    def drop(location: str) -> None:
        """Delete both tables, whatever they hold, under the writer's lock."""
        with told(location):
            connection = _connect(location)
            for name in ("files", "chunks"):
                if name in _table_names(connection):
                    connection.drop_table(name)

    # What is there.

    def files_below(self, roots: Sequence[str]) -> dict[str, FileRow]:
        """The files that are one of these absolute paths, or below one, by path."""
        return self._files_where(any_of(below("file_path", root) for root in roots))

    def files_at(self, paths: Collection[str]) -> dict[str, FileRow]:
        """The files of these paths that are there."""
        return self._files_where(one_of("file_path", paths))

    def failed(self) -> dict[str, FileRow]:
        """The files that could not be read, by path."""
        return self._files_where("status = 'error'")

    def paths(self, prefix: str = "") -> list[str]:
        """The paths of all files that begin with `prefix`, in order."""
        column = self._column(self._files, "file_path", starts_with("file_path", prefix) if prefix else None)
        paths: list[str] = column.to_pylist()
        return sorted(paths)

    def last_indexed(self) -> float | None:
        """When a file was indexed last, in seconds since 1970."""
        return max(self._column(self._files, "indexed_at").to_pylist(), default=None)

    def file(self, file_id: str) -> FileRow | None:
        rows = self._where(self._files, f"file_id = {literal(file_id)}", list(FileRow._fields), 1)
        return FileRow(**rows[0]) if rows else None

    def chunks_of(self, file_id: str) -> list[dict[str, Any]]:
        """The chunks of a file in order, as they are shown."""
        rows = self._where(self._chunks, f"file_id = {literal(file_id)}", _OF_RESULTS, None)
        return sorted(rows, key=lambda row: (row["section_index"], row["chunk_index"]))

    def chunks(self, chunk_ids: Collection[str]) -> dict[str, dict[str, Any]]:
        """Chunks by id, as they are shown."""
        rows = self._where(self._chunks, one_of("chunk_id", chunk_ids), _OF_RESULTS, None) if chunk_ids else []
        return {row["chunk_id"]: row for row in rows}

    def counts(self) -> tuple[int, int, int]:
        """(files, chunks, chunks with a vector)"""
        with told(self.location):
            indexed = self._files.count_rows("status = 'indexed'")
            return indexed, self._chunks.count_rows(), self._chunks.count_rows("vector IS NOT NULL")

    def orphans(self) -> set[str]:
        """Ids of files that have chunks and no row: an indexing that was killed left them."""
        owners: set[str] = set(self._column(self._chunks, "file_id").unique().to_pylist())
        return owners.difference(self._column(self._files, "file_id").to_pylist())

    # What a search asks.

    def by_words(self, query: str, limit: int, path: str = "") -> list[tuple[str, float]]:
        """(chunk id, BM25), the best first; ties by id. Any query will do."""
        with told(self.location):
            found = self._chunks.search(query, query_type="fts", fts_columns="text")
            return _ranked(self._narrowed(found, path), "_score", limit, lambda score: score)

    def by_meaning(self, vector: NDArray[np.float32], limit: int, path: str = "") -> list[tuple[str, float]]:
        """(chunk id, cosine), the nearest first; ties by id. ModelMismatch for a vector of another dimension."""
        if vector.shape != (self.stamp.dimension,):
            raise ModelMismatch(self.stamp.model, f"{self.stamp.model} with {vector.size} dimensions")
        with told(self.location):
            found = self._chunks.search(vector, vector_column_name="vector").distance_type("cosine")
            return _ranked(self._narrowed(found, path), "_distance", limit, lambda distance: 1 - distance)

    # What one writer does.

    def replace(self, files: Sequence[FileRow], chunks: Sequence[ChunkRow], vectors: Mapping[str, bytes]) -> None:
        """Put these files in place of what is there of them; their rows last, so that a half is seen as one.

        vectors: float32 bytes by chunk id, of chunks whose text was embedded before.
        """
        owners = one_of("file_id", [row.file_id for row in files])
        with told(self.location):
            if chunks:
                (
                    self._chunks.merge_insert("chunk_id")
                    .when_matched_update_all()
                    .when_not_matched_insert_all()
                    .when_not_matched_by_source_delete(owners)
                    .execute(self._table(chunks, vectors), on_bad_vectors="null")
                )
            else:
                self._chunks.delete(owners)
        self.touch(files)

    def touch(self, files: Sequence[FileRow]) -> None:
        """Set the rows of files whose chunks are right."""
        if not files:
            return
        rows = pa.Table.from_pylist([row._asdict() for row in files], schema=schema.files(self.stamp))
        with told(self.location):
            self._files.merge_insert("file_id").when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def remove(self, file_ids: Collection[str]) -> None:
        """Let go of files and their chunks; the files' rows first, so that what is left is seen as orphans."""
        if file_ids:
            with told(self.location):
                self._files.delete(one_of("file_id", file_ids))
                self._chunks.delete(one_of("file_id", file_ids))

    def vectors_of(self, file_ids: Collection[str]) -> dict[str, bytes]:
        """The vectors of these files by the text they are of, as float32 bytes."""
        condition = f"vector IS NOT NULL AND {one_of('file_id', file_ids)}"
        if not file_ids:
            return {}
        with told(self.location):
            found = self._chunks.search().where(condition).select(["text", "vector"]).limit(None).to_arrow()
        values = found["vector"].combine_chunks()
        width = 4 * self.stamp.dimension
        raw = values.flatten().to_numpy(zero_copy_only=False).astype(np.float32).tobytes()
        return {text: raw[i * width : (i + 1) * width] for i, text in enumerate(found["text"].to_pylist())}

    def without_vector(self) -> list[str]:
        """Ids of the chunks that no model has seen yet, in the order they were written."""
        ids: list[str] = self._column(self._chunks, "chunk_id", "NOT embedded").to_pylist()
        return ids

    def pending(self) -> int:
        """How many those are."""
        with told(self.location):
            count: int = self._chunks.count_rows("NOT embedded")
            return count

    def texts(self, chunk_ids: Collection[str]) -> dict[str, str]:
        """What is embedded of each chunk, by id."""
        rows = self._where(self._chunks, one_of("chunk_id", chunk_ids), ["chunk_id", "text"], None)
        return {row["chunk_id"]: row["text"] for row in rows}

    def fill(self, vectors: Mapping[str, NDArray[np.float32] | None]) -> None:
        """Set the vectors of chunks by id; None where the model reads nothing, so that it is not asked again."""
        if not vectors:
            return
        column = pa.array(list(vectors.values()), pa.list_(pa.float32(), self.stamp.dimension))
        table = pa.table({"chunk_id": list(vectors), "vector": column, "embedded": [True] * len(vectors)})
        with told(self.location):
            self._chunks.merge_insert("chunk_id").when_matched_update_all().execute(table, on_bad_vectors="null")

    def tidy(self) -> None:
        """Bring both indexes up to date, and let go of old versions."""
        with told(self.location), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._chunks.optimize(cleanup_older_than=_KEPT)
            self._files.optimize(cleanup_older_than=_KEPT)
            if self._chunks.count_rows("vector IS NOT NULL") > _FLAT_ROWS and not self._has_vector_index():
                self._chunks.create_index("vector", config=IvfFlat(distance_type="cosine"))

    def _has_vector_index(self) -> bool:
        return any(index.columns == ["vector"] for index in self._chunks.list_indices())

    def _table(self, chunks: Sequence[ChunkRow], vectors: Mapping[str, bytes]) -> pa.Table:
        target = schema.chunks(self.stamp)
        columns = {name: [getattr(row, name) for row in chunks] for name in ChunkRow._fields}
        columns["embedded"] = [row.chunk_id in vectors for row in chunks]
        columns["vector"] = [
            np.frombuffer(vectors[row.chunk_id], np.float32) if row.chunk_id in vectors else None for row in chunks
        ]
        return pa.table(columns, schema=target)

    def _narrowed(self, found: Any, path: str) -> Any:
        return found.where(contains("file_path", path), prefilter=True) if path else found

    def _files_where(self, condition: str) -> dict[str, FileRow]:
        rows = self._where(self._files, condition, list(FileRow._fields), None)
        return {row["file_path"]: FileRow(**row) for row in rows}

    def _column(self, table: Any, name: str, condition: str | None = None) -> pa.ChunkedArray:
        with told(self.location):
            found = table.search()
            if condition is not None:
                found = found.where(condition)
            return found.select([name]).limit(None).to_arrow()[name]

    def _where(self, table: Any, condition: str | None, columns: list[str], limit: int | None) -> list[dict[str, Any]]:
        with told(self.location):
            found = table.search()
            if condition is not None:
                found = found.where(condition)
            rows: list[dict[str, Any]] = found.select(columns).limit(limit).to_arrow().to_pylist()
            return rows


# Positions for phrases in quotes, stop words for queries made of them, ICU for scripts without spaces.
# Words of any length, as hashes and identifiers are longer than the 40 characters that are kept otherwise.
_FULL_TEXT = FTS(base_tokenizer="icu", with_position=True, remove_stop_words=False, max_token_length=None)


def _connect(location: str) -> Any:
    # Another process's writes are seen by the next read.
    return lancedb.connect(location, read_consistency_interval=timedelta(0))


def _table_names(connection: Any) -> list[str]:
    return list(connection.list_tables().tables)


def _ranked(found: Any, column: str, limit: int, score: Callable[[float], float]) -> list[tuple[str, float]]:
    rows = found.select(["chunk_id", column]).limit(limit).to_arrow().to_pylist()
    return sorted(((row["chunk_id"], score(row[column])) for row in rows), key=lambda hit: (-hit[1], hit[0]))


@contextmanager
def told(location: str) -> Iterator[None]:
    """The engine's errors, which are of many kinds and have the engine's own words, as one of ours."""
    try:
        yield
    except UnicodeError:
        raise InvalidInput("path", "A path holds bytes that are no text.") from None
    except (RuntimeError, ValueError, OSError, pa.ArrowInvalid) as error:
        said = str(error)
        location = without_login(location)
        if any(sign in said for sign in _DAMAGE):
            raise DatabaseDamaged(location) from error
        reason = next((reason for sign, reason in _PASSING.items() if sign in said), None)
        # Of what is not known the engine's words, without the places in its source that they end with.
        reason = reason or one_line(_ORIGIN.sub("", said).split("\n")[0].split(", /")[0][:200]).rstrip(".")
        raise DatabaseUnavailable(f"The database at {location} cannot be used: {reason}.") from error


_ORIGIN = re.compile(r"^lance error: (?:LanceError\(\w+\): )?")
# What the engine's messages hold where files of an index are gone or cut off, or hold something else.
_DAMAGE = (
    "Not found:", "corrupt file", "Invalid range", "range was invalid", "not appear to be a Lance file",
    "file size is too small", "failed to fill whole buffer",
)  # fmt: skip
# And where the index itself is well.
_PASSING = {
    "No space left": "there is no space left",
    "Permission denied": "it may not be read or written",
    "Read-only file system": "its disk is read-only",
    "commit conflict": "another process wrote at the same moment; try again",
    "error sending request": "it does not answer",
}
