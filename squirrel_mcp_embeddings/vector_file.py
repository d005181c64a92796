"""The vectors of one account, model and text format on disk: a cache, sealed, shared by every process that has the key.

A lock file beside it serialises writers. Readers take no lock: a file is replaced as a whole or grows at its end, and
an end that is not all there yet is not read. Whatever else is wrong with the file costs the file and is no error.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from io import FileIO
from pathlib import Path

from squirrel_mcp import private_files, vector_files
from squirrel_mcp.crypto.key_set import KeyRing
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.errors import StoreError, StoreFull, UnsafeFile
from squirrel_mcp_embeddings.vector_format import (
    HEADER_BYTES,
    LENGTH,
    MAX_FILE_BYTES,
    MAX_SEGMENT_BYTES,
    MIN_SEGMENT_BYTES,
    Layout,
    Rows,
    Seal,
)

__all__ = ["Rows", "VectorFile"]


class _Damaged(Exception):
    """Not a file that this account, model and text format has written."""


@dataclass(frozen=True, slots=True)
class _Known:
    """How far a file was read: everything before `end`, which is `segments` whole segments with `rows` rows."""

    seal: Seal
    end: int = HEADER_BYTES
    segments: int = 0
    rows: int = 0


class VectorFile:
    """`ring` is asked at each use, as a rotation may come in between. For any number of threads and processes."""

    def __init__(
        self,
        cache_dir: Path,
        account_id: bytes,
        ring: Callable[[], KeyRing],
        model_id: str,
        model_sha256: bytes,
        dimension: int,
        text_format: int,
    ) -> None:
        self._folder = cache_dir / vector_files.FOLDER
        self._account_id = account_id
        self._ring = ring
        self._layout = Layout(model_id, model_sha256, dimension, text_format)
        self._none = Rows.none(dimension)
        self._known: _Known | None = None
        self._mutex = threading.Lock()

    @property
    def path(self) -> Path:
        # Named under the account's first key: the file, and the lock on it, stay where they are through rotations.
        first = self._ring().at(0)
        assert first is not None
        return self._folder / self._layout.file_name(first, self._account_id)

    @property
    def rows(self) -> int:
        """How many rows the file held when it was last read or written, dead ones included."""
        return self._known.rows if self._known else 0

    def load(self) -> Rows:
        """Every row that can be read. A file that is wrong is deleted; whatever stands in the way, no error."""
        with self._mutex, suppress(StoreError, UnsafeFile):
            self._known = None
            path = self.path
            if not os.path.lexists(path):
                return self._none
            private_files.ensure_folder(self._folder)
            with suppress(_Damaged, UnsafeFile):
                return self._read(path)
            with self._locked(path):
                # Again, as a writer may have cut off a torn end under the eyes of the reader.
                try:
                    return self._read(path)
                except (_Damaged, UnsafeFile):
                    self._known = None
                    with private_files.explained(path):
                        path.unlink(missing_ok=True)
        return self._none

    def append(self, rows: Rows) -> Rows:
        """Add the rows, and return what other processes have written since this one last looked.

        That is every row there is where the file was not read before or was replaced in between. Without rows to add
        nothing is written. Durable when it returns. Each segment (5,295 rows at 384 dimensions) is stored whole or not
        at all. ValueError for rows of another shape or type; StoreFull, StoreUnavailable and UnsafeFile leave the file
        as it was.
        """
        self._layout.check(rows)
        with self._mutex, self._locked(self.path) as path:
            try:
                private_files.check(path)
                file = private_files.open_file(path, write=True)
                if file is not None:
                    with file, private_files.explained(path):
                        found = self._take_in(file)
                        if self._is_current():
                            self._write_behind(file, path, rows)
                            return found
                    kept = self._read(path)  # under a key that was retired
                else:
                    found = kept = self._none
            except (_Damaged, UnsafeFile):
                found = kept = self._none
            if rows.size:
                self._write_anew(path, Rows.joined(kept, rows))
            return found

    def rewrite(self, rows: Rows) -> None:
        """The whole file anew, under a new salt and the current key: these rows and no others. Errors as `append`.

        What another process appended meanwhile is not kept, as it may be what has to go.
        """
        self._layout.check(rows)
        with self._mutex, self._locked(self.path) as path:
            self._write_anew(path, rows)

    @contextmanager
    def _locked(self, path: Path) -> Iterator[Path]:
        private_files.ensure_folder(self._folder)
        with private_files.lock(path.with_suffix(".lock")):
            yield path

    def _read(self, path: Path) -> Rows:
        """Every row, from the beginning."""
        self._known = None
        if not private_files.check(path):
            return self._none
        file = private_files.open_file(path)
        if file is None:
            return self._none
        with file, private_files.explained(path):
            return self._take_in(file)

    def _take_in(self, file: FileIO) -> Rows:
        """The rows of segments not yet known; of all, if this is not the file that was known. Or _Damaged."""
        size = os.fstat(file.fileno()).st_size
        if size > MAX_FILE_BYTES:
            raise _Damaged
        header = file.read(HEADER_BYTES)
        known, self._known = self._known, None
        if known is None or known.seal.header != header or size < known.end:
            known = self._opened(header)
        file.seek(known.end)
        plaintexts = bytearray()
        while (read := self._next_segment(file, known, size)) is not None:
            known, plaintext = read
            plaintexts += plaintext
        if not known.segments:
            raise _Damaged
        self._known = known
        return self._layout.unpack(plaintexts)

    def _opened(self, header: bytes) -> _Known:
        ring = self._ring()
        deks: list[Dek] = [ring.current, *(key.dek for key in ring.retired)]
        seal = Seal.open(header, self._account_id, deks)
        if seal is None:
            raise _Damaged
        return _Known(seal)

    def _next_segment(self, file: FileIO, known: _Known, size: int) -> tuple[_Known, bytes] | None:
        """The segment after the known ones and its rows; None at the end, or where the last one is not all there."""
        prefix = file.read(LENGTH.size)
        if len(prefix) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack(prefix)
        if length > MAX_SEGMENT_BYTES or not self._layout.fits(known.segments, length - MIN_SEGMENT_BYTES):
            raise _Damaged  # also an altered length that would look like a torn segment
        end = known.end + LENGTH.size + length
        if end > size:
            return None
        body = file.read(length)
        if len(body) < length:  # cut off by a writer while we read
            return None
        plaintext = known.seal.plaintext(known.segments, body)
        if plaintext is None:
            raise _Damaged
        if known.segments == 0:
            if plaintext != self._layout.metadata:
                raise _Damaged
            plaintext = b""
        rows = known.rows + len(plaintext) // self._layout.row_bytes
        return _Known(known.seal, end, known.segments + 1, rows), plaintext

    def _is_current(self) -> bool:
        return self._known is not None and self._known.seal.kid == self._ring().current.kid

    def _write_behind(self, file: FileIO, path: Path, rows: Rows) -> None:
        known = self._known
        assert known is not None
        parts = list(self._layout.pack(rows))
        if not parts:
            return
        content = b"".join(known.seal.segment(known.segments + i, part) for i, part in enumerate(parts))
        end = known.end + len(content)
        _check_size(path, end)
        file.truncate(known.end)  # a torn segment
        file.seek(known.end)
        try:
            left = memoryview(content)
            while left:
                left = left[file.write(left) :]
            os.fsync(file.fileno())
        except BaseException:
            with suppress(OSError):
                file.truncate(known.end)
            raise
        self._known = _Known(known.seal, end, known.segments + len(parts), known.rows + rows.size)

    def _write_anew(self, path: Path, rows: Rows) -> None:
        seal = Seal.make(self._ring().current, self._account_id)
        written = _Known(seal)

        def parts() -> Iterator[bytes]:
            nonlocal written
            yield seal.header
            for plaintext in (self._layout.metadata, *self._layout.pack(rows)):
                segment = seal.segment(written.segments, plaintext)
                written = _Known(seal, written.end + len(segment), written.segments + 1, rows.size)
                _check_size(path, written.end)
                yield segment

        private_files.replace_with(path, parts())
        self._known = written


def _check_size(path: Path, size: int) -> None:
    if size > MAX_FILE_BYTES:
        raise StoreFull(f"{path} would become larger than such a file can be.")
