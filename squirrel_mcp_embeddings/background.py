"""What goes on behind the answers: loading the model, making vectors, keeping them in the file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from squirrel_mcp.edition import Say
from squirrel_mcp.errors import SquirrelError
from squirrel_mcp.memory import Memory
from squirrel_mcp_embeddings.errors import EmbeddingFailed, ModelUnavailable
from squirrel_mcp_embeddings.manifest import Model
from squirrel_mcp_embeddings.memory_text import text_of
from squirrel_mcp_embeddings.script import reads
from squirrel_mcp_embeddings.vector_file import Rows, VectorFile

if TYPE_CHECKING:
    from squirrel_mcp_embeddings.embedder import Embedder
    from squirrel_mcp_embeddings.hybrid import HybridRanker

_BATCH = 128  # memories: under half a second of embedding, after which what was made is kept
_FEW = 1_000  # dead rows that a file may hold in any case

Found = tuple[str, int, NDArray[np.floating]]


class Background:
    """One thread for one ranker. Whatever goes wrong is said once, and search goes on with what there is."""

    def __init__(
        self,
        ranker: HybridRanker,
        load: Callable[[], Embedder],
        open_file: Callable[[Model], VectorFile],
        say: Say,
        *,
        announce: bool = True,
        drop: Callable[[Path | None], None] = lambda keep: None,
    ) -> None:
        """`announce`: whether a model that was loaded is said too, and not only one that was not.

        `drop` deletes what other models have made of these memories, or all that any model has: all files but `keep`.
        """
        self._ranker, self._load, self._open_file, self._say, self._announce = ranker, load, open_file, say, announce
        self._drop = drop
        self._thread = Thread(target=self._run, name="embedding", daemon=True)
        self._begun = self._ended = False
        self._given_up = self._owed = False  # owed: something was forgotten before the file was read
        self._writing = Lock()  # taken before the ranker's own, never inside it
        self._file: VectorFile | None = None
        self._dimension = 0
        self._rows = 0  # in the file, dead ones too
        self._kept: set[str] = set()  # the ids among them

    def begin(self) -> None:
        """Start, unless that was done."""
        if not self._begun:
            self._begun = True
            self._thread.start()

    def end(self) -> None:
        """Stop soon. The thread is out of the runtime's code then, around which no interpreter may end."""
        self._ended = True
        # Before the wait, which those who end a process may cut short.
        self._settle_what_is_owed()
        if self._begun:
            self._thread.join()

    def forget(self, memory_ids: Collection[str]) -> None:
        """Write the file without these memories, now. Of files that are not read, none may hold them any more."""
        with self._writing:
            if self._file is not None:
                self._drop(self._file.path)
                if not self._kept.isdisjoint(memory_ids):
                    self._write_anew()
            elif self._given_up:
                self._drop(None)
            else:
                self._owed = True  # reading the file, which is about to begin, erases what is not here

    def broken(self, error: EmbeddingFailed) -> None:
        """The runtime failed: no more of it in this process."""
        self._ranker.give_up("runtime")
        self._say(f"memory: local embeddings broke down ({error.code}); memory search is lexical only from now on")

    def _run(self) -> None:
        try:
            embedder = self._load()
        except ModelUnavailable as error:
            self._cannot_load(error.reason)
            return
        except Exception:  # noqa: BLE001 - a border: libraries that break while they are imported raise anything
            self._cannot_load("runtime")
            return
        try:
            self._take_up(embedder.model)
            self._ranker.join(embedder)
            if self._announce:
                self._say(f"memory: local embeddings ready ({embedder.model.id})")
            self._embed_all(embedder)
        except EmbeddingFailed as error:
            self.broken(error)
        except Exception as error:  # noqa: BLE001 - a border: what else went wrong must not keep searches waiting
            self.broken(EmbeddingFailed(type(error).__name__))
        finally:
            if self._ended:
                embedder.close()

    def _cannot_load(self, reason: str) -> None:
        self._given_up = True
        self._settle_what_is_owed()
        self._ranker.give_up(reason)
        self._say(f"memory: local embeddings were not loaded ({reason}); memory search is lexical only")

    def _settle_what_is_owed(self) -> None:
        with self._writing:
            if self._owed:
                self._owed = False
                self._drop(None)

    def _take_up(self, model: Model) -> None:
        """Read the file; what it still holds of forgotten memories is erased."""
        with self._writing:
            self._dimension = model.dimension
            self._file = self._open_file(model)
            if self._owed:
                self._owed = False
                self._drop(self._file.path)
            if self._adopt(self._file.load()):
                self._write_anew()

    def _embed_all(self, embedder: Embedder) -> None:
        while not self._ended:
            memories = self._ranker.next_to_embed(_BATCH)
            if not memories:
                return
            vectors = embedder.embed([_read_of(memory) for memory in memories], stop=lambda: self._ended)
            if self._ended:
                return
            with self._writing:
                self._keep(self._ranker.settle(memories, vectors))

    def _keep(self, memories: Collection[Memory]) -> None:
        """Add the vectors that were just made to the file, or write it anew where it holds too much that is dead."""
        if self._file is None or not memories:
            return
        # Asked for again: one of them may have been forgotten since, and its row must not come after that.
        rows = self._ranker.vectors_of(memories)
        try:
            others = self._file.append(_packed(rows, self._dimension))
        except SquirrelError as error:
            self._cannot_keep(error)
            return
        self._note(rows)
        # Not known here does not mean forgotten: the other process may have seen a memory that this one is yet to see.
        self._adopt(others)
        if self._rows - self._ranker.embedded > max(_FEW, self._ranker.embedded):
            self._write_anew()

    def _adopt(self, rows: Rows) -> int:
        """Take in rows from the file; how many are of memories that are not here."""
        found = list(_unpacked(rows))
        self._note(found)
        return self._ranker.adopt(self._dimension, found)

    def _note(self, rows: Collection[Found]) -> None:
        self._rows += len(rows)
        self._kept.update(memory_id for memory_id, _, _ in rows)

    def _write_anew(self) -> None:
        if self._file is None:
            return
        rows = self._ranker.current()
        try:
            self._file.rewrite(_packed(rows, self._dimension))
        except SquirrelError as error:
            self._cannot_keep(error)
        else:
            self._rows, self._kept = 0, set()
            self._note(rows)

    def _cannot_keep(self, error: SquirrelError) -> None:
        self._say(f"memory: vectors cannot be kept for the next start: {error}")


def _read_of(memory: Memory) -> str:
    """What is embedded of a memory; nothing where the model does not read its script."""
    text = text_of(memory)
    return text if reads(text) else ""


def _packed(rows: Collection[Found], dimension: int) -> Rows:
    ids = np.frombuffer(b"".join(bytes.fromhex(memory_id) for memory_id, _, _ in rows), np.uint8).reshape(-1, 16)
    revisions = np.array([revision for _, revision, _ in rows], np.uint64)
    vectors = np.array([vector for _, _, vector in rows], np.float16).reshape(-1, dimension)
    return Rows(ids, revisions, vectors)


def _unpacked(rows: Rows) -> Iterator[Found]:
    digits = rows.ids.tobytes().hex()
    for number, revision in enumerate(rows.revisions.tolist()):
        yield digits[32 * number : 32 * number + 32], revision, rows.vectors[number]
