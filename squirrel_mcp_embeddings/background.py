"""What goes on behind the answers: loading the model, and making vectors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from squirrel_mcp.edition import Say
from squirrel_mcp.memory import Memory
from squirrel_mcp_embeddings.errors import EmbeddingFailed, ModelUnavailable
from squirrel_mcp_embeddings.keeper import Keeper
from squirrel_mcp_embeddings.manifest import Model
from squirrel_mcp_embeddings.memory_text import text_of
from squirrel_mcp_embeddings.script import reads
from squirrel_mcp_embeddings.vector_file import VectorFile

if TYPE_CHECKING:
    from squirrel_mcp_embeddings.embedder import Embedder
    from squirrel_mcp_embeddings.hybrid import HybridRanker

_BATCH = 128  # memories: under half a second of embedding, after which what was made is kept


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

        `open_file` and `drop`: see `Keeper`.
        """
        self._ranker, self._load, self._say, self._announce = ranker, load, say, announce
        self.keeper = Keeper(ranker, open_file, drop, say)
        self._thread = Thread(target=self._run, name="embedding", daemon=True)
        self._begun = self._ended = False

    def begin(self) -> None:
        """Start, unless that was done."""
        if not self._begun:
            self._begun = True
            self._thread.start()

    def end(self) -> None:
        """Stop soon. The thread is out of the runtime's code then, around which no interpreter may end."""
        self._ended = True
        self.keeper.close()  # before the wait, which those who end a process may cut short
        if self._begun:
            self._thread.join()

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
        except BaseException:  # noqa: BLE001 - a border: libraries that break while they are imported raise anything
            self._cannot_load("runtime")
            return
        try:
            self.keeper.open(embedder.model)
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
        self.keeper.do_without()
        self._ranker.give_up(reason)
        self._say(f"memory: local embeddings were not loaded ({reason}); memory search is lexical only")

    def _embed_all(self, embedder: Embedder) -> None:
        while not self._ended:
            memories = self._ranker.next_to_embed(_BATCH)
            if not memories:
                return
            vectors = embedder.embed([_read_of(memory) for memory in memories], stop=lambda: self._ended)
            if self._ended:
                return
            self.keeper.keep(memories, vectors)


def _read_of(memory: Memory) -> str:
    """What is embedded of a memory; nothing where the model does not read its script."""
    text = text_of(memory)
    return text if reads(text) else ""
