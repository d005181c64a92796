"""The columns of the two tables, and the stamp that says what their vectors were made with."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import pyarrow as pa

FORMAT = 1  # goes up when a column changes; an index of another format is made anew by the person who owns it
_KEY = b"sqmd"

Status = Literal["indexed", "error", "skipped"]


@dataclass(frozen=True, slots=True)
class Stamp:
    """Which model the vectors of a database are of. Kept in the schema of both tables."""

    model: str
    dimension: int
    format: int = FORMAT

    def metadata(self) -> dict[bytes, bytes]:
        return {_KEY: json.dumps(asdict(self), sort_keys=True).encode()}

    @classmethod
    def of(cls, schema: pa.Schema) -> Stamp | None:
        """The stamp of a table; None where there is none that can be read."""
        try:
            kept = json.loads((schema.metadata or {})[_KEY])
            return cls(kept["model"], kept["dimension"], kept["format"])  # what a later version adds is its own
        except (KeyError, TypeError, ValueError):
            return None


class FileRow(NamedTuple):
    """One file. `file_mtime` in nanoseconds, `file_size` in bytes, `indexed_at` in seconds since 1970.

    `chunking`: the settings that its chunks were made with.
    """

    file_id: str
    file_path: str
    file_hash: str
    file_mtime: int
    file_size: int
    chunk_count: int
    indexed_at: float
    status: Status
    error_msg: str = ""
    chunking: str = ""


class ChunkRow(NamedTuple):
    """One chunk, as it is stored; its vector comes later."""

    chunk_id: str
    file_id: str
    file_path: str
    file_hash: str
    file_mtime: int
    heading_path: str
    heading_level: int
    heading_text: str
    section_index: int
    chunk_index: int
    text: str
    text_raw: str
    token_count: int
    parent_headings: list[str]
    depth: int
    line_start: int
    line_end: int


_STRINGS = pa.list_(pa.string())
_CHUNK_TYPES: dict[str, Any] = {
    "file_mtime": pa.int64(),
    "heading_level": pa.int32(),
    "section_index": pa.int32(),
    "chunk_index": pa.int32(),
    "token_count": pa.int32(),
    "parent_headings": _STRINGS,
    "depth": pa.int32(),
    "line_start": pa.int32(),
    "line_end": pa.int32(),
}
_FILE_TYPES: dict[str, Any] = {
    "file_mtime": pa.int64(),
    "file_size": pa.int64(),
    "chunk_count": pa.int32(),
    "indexed_at": pa.float64(),
}


def chunks(stamp: Stamp) -> pa.Schema:
    """`vector` is null until it is filled in, and stays so where the model, which has `embedded` it, reads nothing."""
    fields = [pa.field(name, _CHUNK_TYPES.get(name, pa.string())) for name in ChunkRow._fields]
    fields.append(pa.field("embedded", pa.bool_()))
    fields.append(pa.field("vector", pa.list_(pa.float32(), stamp.dimension)))
    return pa.schema(fields, metadata=stamp.metadata())


def files(stamp: Stamp) -> pa.Schema:
    fields = [pa.field(name, _FILE_TYPES.get(name, pa.string())) for name in FileRow._fields]
    return pa.schema(fields, metadata=stamp.metadata())
