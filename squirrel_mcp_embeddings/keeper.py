"""What of the vectors is kept in the file, and that nothing of a forgotten memory is."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from squirrel_mcp.edition import Say
from squirrel_mcp.errors import SquirrelError
from squirrel_mcp.memory import Memory
from squirrel_mcp_embeddings.manifest import Model
from squirrel_mcp_embeddings.vector_file import Rows, VectorFile

if TYPE_CHECKING:
    from squirrel_mcp_embeddings.embedder import Vector
    from squirrel_mcp_embeddings.hybrid import HybridRanker

_FEW = 1_000  # dead rows that a file may hold in any case

Found = tuple[str, int, NDArray[np.floating]]


class Keeper:
    """The vectors of one ranker on disk. Thread-safe; its lock is taken before the ranker's own, never inside it."""

    def __init__(
        self,
        ranker: HybridRanker,
        open_file: Callable[[Model], VectorFile],
        drop: Callable[[Path | None], None],
        say: Say,
    ) -> None:
        """`drop` deletes what any model has made of these memories: all files but the one it is given."""
        self._ranker, self._open_file, self._drop, self._say = ranker, open_file, drop, say
        self._lock = Lock()
        self._file: VectorFile | None = None
        self._dimension = 0
        self._reads = True  # whether there is, or will be, a model whose file is read
        self._owed = False  # something was forgotten that may still be in a file

    def open(self, model: Model) -> None:
        """Take in what was kept. What the file still holds of memories that are no more is erased."""
        with self._lock:
            self._dimension, self._file = model.dimension, self._open_file(model)
            if self._owed or self._adopt(self._file.load()):
                self._erase()

    def do_without(self) -> None:
        """There is no model, so no file is read: what is to be forgotten goes with all of them."""
        with self._lock:
            self._reads = False
            if self._owed:
                self._erase()

    def close(self) -> None:
        """Do what is owed: nobody may come after."""
        with self._lock:
            if self._owed:
                self._erase()

    def forget(self) -> None:
        """Something was forgotten: write the file without it, now."""
        with self._lock:
            self._owed = True
            if self._file is not None or not self._reads:
                self._erase()  # otherwise the file is about to be read, and that erases what is not here

    def keep(self, memories: Sequence[Memory], vectors: Sequence[Vector | None]) -> None:
        """Hand the ranker what was just made, and add it to the file, or write that anew if too much in it is dead."""
        with self._lock:
            placed = self._ranker.settle(memories, vectors)
            if self._file is None or not placed:
                return
            if self._owed:
                self._erase()
            # Asked for again: one of them may have been forgotten since, and its row must not come after that.
            rows = self._ranker.vectors_of(placed)
            try:
                if not os.path.lexists(self._file.path):
                    self._file.rewrite(self._current())  # somebody dropped it: the base, when it forgot something
                    return
                # Not known here does not mean forgotten: another process may have seen what this one is yet to see.
                self._adopt(self._file.append(_packed(rows, self._dimension)))
                live = self._ranker.embedded
                if self._file.rows - live > max(_FEW, live):
                    self._file.rewrite(self._current())
            except SquirrelError as error:
                self._say(f"memory: vectors cannot be kept for the next start: {error}")

    def _erase(self) -> None:
        """Write the file as it has to be, and delete what other models made; without a file, delete all."""
        file = self._file
        self._drop(None if file is None else file.path)
        if file is None:
            self._owed = False
            return
        try:
            self._adopt(file.append(Rows.none(self._dimension)))  # of others, so that it is not lost
            file.rewrite(self._current())
        except SquirrelError as error:
            self._drop(None)  # which takes no space
            if os.path.lexists(file.path):
                self._owed = True
                self._say(f"memory: what is kept of a forgotten memory cannot be erased yet: {error}")
                return
        self._owed = False

    def _current(self) -> Rows:
        return _packed(self._ranker.current(), self._dimension)

    def _adopt(self, rows: Rows) -> int:
        """Take in rows from the file; how many are of memories that are not here."""
        return self._ranker.adopt(self._dimension, _unpacked(rows)) if rows.size else 0


def _packed(rows: Collection[Found], dimension: int) -> Rows:
    ids = np.frombuffer(b"".join(bytes.fromhex(memory_id) for memory_id, _, _ in rows), np.uint8).reshape(-1, 16)
    revisions = np.array([revision for _, revision, _ in rows], np.uint64)
    vectors = np.array([vector for _, _, vector in rows], np.float16).reshape(-1, dimension)
    return Rows(ids, revisions, vectors)


def _unpacked(rows: Rows) -> Iterator[Found]:
    digits = rows.ids.tobytes().hex()
    for number, revision in enumerate(rows.revisions.tolist()):
        yield digits[32 * number : 32 * number + 32], revision, rows.vectors[number]
