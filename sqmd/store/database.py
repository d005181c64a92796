"""The two tables: opened, written by one writer, read by anybody at any time."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sqmd.errors import DatabaseDamaged, DatabaseUnavailable, ModelMismatch, NewerFormat, NotIndexed
from sqmd.store import schema
from sqmd.store.quoting import contains, literal, one_of
from sqmd.store.schema import ChunkRow, FileRow, Stamp

# Before the import, which reads it: its notes on what it does are nobody's business on stderr.
os.putenv("LANCEDB_LOG", "error")
import lancedb
from lancedb.index import FTS, IvfFlat

_FLAT_ROWS = 10_000  # up to here comparing with every vector is quicker than an index, and finds all
_KEPT = timedelta(minutes=10)  # what a reader may still be reading
_OF_RESULTS = [name for name in ChunkRow._fields if name not in ("file_hash", "file_mtime", "parent_headings", "depth")]


class Database:
    """Not for several threads at once, but for any number of processes: each read sees what was last written."""

    def __init__(self, location: str, chunks: Any, files: Any, stamp: Stamp) -> None:
        self.location, self.stamp = location, stamp
        self._chunks, self._files = chunks, files

    @classmethod
    def open(cls, location: str) -> Database:
        """NotIndexed where there is none yet, DatabaseDamaged where there is one that cannot be read."""
        if "://" not in location and not Path(location).is_dir():
            raise NotIndexed
        with _told(location):
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
        """Open or make it. ModelMismatch for one whose vectors another model made."""
        try:
            database = cls.open(location)
        except NotIndexed:
            if "://" not in location:
                Path(location).mkdir(parents=True, exist_ok=True)
            with _told(location):
                connection = _connect(location)
                chunks = connection.create_table("chunks", schema=schema.chunks(stamp), exist_ok=True)
                files = connection.create_table("files", schema=schema.files(stamp), exist_ok=True)
                chunks.create_index("text", config=_FULL_TEXT)
            return cls(location, chunks, files, stamp)
        database.check(stamp)
        return database

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
        """Delete both tables, whatever they hold."""
        with _told(location):
            connection = _connect(location)
            for name in ("files", "chunks"):
                if name in _table_names(connection):
                    connection.drop_table(name)

    # What is there.

    def files(self) -> dict[str, FileRow]:
        """Every file by its path."""
        rows = self._all(self._files, list(FileRow._fields))
        return {row["file_path"]: FileRow(**row) for row in rows}

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
        with _told(self.location):
            indexed = self._files.count_rows("status = 'indexed'")
            return indexed, self._chunks.count_rows(), self._chunks.count_rows("vector IS NOT NULL")

    def orphans(self) -> set[str]:
        """Ids of files that have chunks and no row: an indexing that was killed left them."""
        owners = {row["file_id"] for row in self._all(self._chunks, ["file_id"])}
        return owners - {row["file_id"] for row in self._all(self._files, ["file_id"])}

    # What a search asks.

    def by_words(self, query: str, limit: int, path: str = "") -> list[tuple[str, float]]:
        """(chunk id, BM25), the best first; ties by id. Any query will do."""
        with _told(self.location):
            found = self._chunks.search(query, query_type="fts", fts_columns="text")
            return _ranked(self._narrowed(found, path), "_score", limit, lambda score: score)

    def by_meaning(self, vector: NDArray[np.float32], limit: int, path: str = "") -> list[tuple[str, float]]:
        """(chunk id, cosine), the nearest first; ties by id. ModelMismatch for a vector of another dimension."""
        if vector.shape != (self.stamp.dimension,):
            raise ModelMismatch(self.stamp.model, f"{self.stamp.model} with {vector.size} dimensions")
        with _told(self.location):
            found = self._chunks.search(vector, vector_column_name="vector").distance_type("cosine")
            return _ranked(self._narrowed(found, path), "_distance", limit, lambda distance: 1 - distance)

    # What one writer does.

    def replace(self, files: Sequence[FileRow], chunks: Sequence[ChunkRow], vectors: Mapping[str, bytes]) -> None:
        """Put these files in place of what is there of them; their rows last, so that a half is seen as one.

        vectors: float32 bytes by chunk id, of chunks whose text was embedded before.
        """
        owners = one_of("file_id", [row.file_id for row in files])
        with _told(self.location):
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
        with _told(self.location):
            self._files.merge_insert("file_id").when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def remove(self, file_ids: Collection[str]) -> None:
        """Let go of files and their chunks; the files' rows first, so that what is left is seen as orphans."""
        if file_ids:
            with _told(self.location):
                self._files.delete(one_of("file_id", file_ids))
                self._chunks.delete(one_of("file_id", file_ids))

    def vectors_of(self, file_ids: Collection[str]) -> dict[str, bytes]:
        """The vectors of these files by the text they are of, as float32 bytes."""
        condition = f"vector IS NOT NULL AND {one_of('file_id', file_ids)}"
        if not file_ids:
            return {}
        with _told(self.location):
            found = self._chunks.search().where(condition).select(["text", "vector"]).limit(None).to_arrow()
        values = found["vector"].combine_chunks()
        width = 4 * self.stamp.dimension
        raw = values.flatten().to_numpy(zero_copy_only=False).astype(np.float32).tobytes()
        return {text: raw[i * width : (i + 1) * width] for i, text in enumerate(found["text"].to_pylist())}

    def without_vector(self) -> list[str]:
        """Ids of the chunks that have none, in the order they were written."""
        with _told(self.location):
            found = self._chunks.search().where("vector IS NULL").select(["chunk_id"]).limit(None).to_arrow()
        ids: list[str] = found["chunk_id"].to_pylist()
        return ids

    def texts(self, chunk_ids: Collection[str]) -> dict[str, str]:
        """What is embedded of each chunk, by id."""
        rows = self._where(self._chunks, one_of("chunk_id", chunk_ids), ["chunk_id", "text"], None)
        return {row["chunk_id"]: row["text"] for row in rows}

    def fill(self, vectors: Mapping[str, NDArray[np.float32]]) -> None:
        """Set the vectors of chunks by id."""
        if not vectors:
            return
        flat = pa.array(np.concatenate(list(vectors.values())).astype(np.float32))
        column = pa.FixedSizeListArray.from_arrays(flat, self.stamp.dimension)
        table = pa.table({"chunk_id": list(vectors), "vector": column})
        with _told(self.location):
            self._chunks.merge_insert("chunk_id").when_matched_update_all().execute(table)

    def tidy(self) -> None:
        """Bring both indexes up to date, and let go of old versions."""
        with _told(self.location), warnings.catch_warnings():
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
        columns["vector"] = [
            np.frombuffer(vectors[row.chunk_id], np.float32) if row.chunk_id in vectors else None for row in chunks
        ]
        return pa.table(columns, schema=target)

    def _narrowed(self, found: Any, path: str) -> Any:
        return found.where(contains("file_path", path), prefilter=True) if path else found

    def _all(self, table: Any, columns: list[str]) -> list[dict[str, Any]]:
        return self._where(table, None, columns, None)

    def _where(self, table: Any, condition: str | None, columns: list[str], limit: int | None) -> list[dict[str, Any]]:
        with _told(self.location):
            found = table.search()
            if condition is not None:
                found = found.where(condition)
            rows: list[dict[str, Any]] = found.select(columns).limit(limit).to_arrow().to_pylist()
            return rows


# Positions for phrases in quotes, stop words for queries made of them, ICU for scripts without spaces.
_FULL_TEXT = FTS(base_tokenizer="icu", with_position=True, remove_stop_words=False)


def _connect(location: str) -> Any:
    # Another process's writes are seen by the next read.
    return lancedb.connect(location, read_consistency_interval=timedelta(0))


def _table_names(connection: Any) -> list[str]:
    return list(connection.list_tables().tables)


def _ranked(found: Any, column: str, limit: int, score: Callable[[float], float]) -> list[tuple[str, float]]:
    rows = found.select(["chunk_id", column]).limit(limit).to_arrow().to_pylist()
    return sorted(((row["chunk_id"], score(row[column])) for row in rows), key=lambda hit: (-hit[1], hit[0]))


@contextmanager
def _told(location: str) -> Iterator[None]:
    """The engine's errors, which are of many kinds and have the engine's own words, as one of ours."""
    try:
        yield
    except (RuntimeError, ValueError, OSError, pa.ArrowInvalid) as error:
        said = str(error)
        for sign, sentence in _PASSING.items():
            if sign in said:
                raise DatabaseUnavailable(f"{location} cannot be used: {sentence}.") from error
        raise DatabaseDamaged(location) from error


# What the engine's messages hold where the index itself is well.
_PASSING = {
    "No space left": "there is no space left",
    "Permission denied": "it may not be read or written",
    "Read-only file system": "its disk is read-only",
    "onnect": "it does not answer",
}
