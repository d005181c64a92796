"""A model of the table: downloaded when it is first needed, checked whenever it is read."""

from __future__ import annotations

import hashlib
import mmap
from pathlib import Path
from typing import TYPE_CHECKING

from sqmd.embed.catalog import EmbeddingModel, HubModel
from sqmd.embed.download import HUB, bring
from sqmd.errors import EmbedderDown
from squirrel_mcp_embeddings.manifest import Model
from squirrel_mcp_embeddings.model_files import LoadedFiles

if TYPE_CHECKING:
    from squirrel_mcp_embeddings.manifest import ModelFile


class HubFiles:
    """The files of one model below `cache`, at the pinned commit."""

    def __init__(self, model: HubModel, cache: Path, hub: str = HUB) -> None:
        self._pinned, self._hub = model, hub
        # By commit, so that another version of sqmd with another pin finds nothing wrong and gets its own.
        self.folder = cache / model.repository.replace("/", "--") / model.commit[:12]

    def tokenizer(self) -> bytes:
        """EmbedderDown. Brings the tokenizer alone: a megabyte is enough to index text, the weights may follow."""
        return self._read(self._pinned.tokenizer)

    def weights(self) -> bytes:
        """EmbedderDown."""
        return self._read(self._pinned.weights)

    def beside(self) -> dict[str, mmap.mmap]:
        """By the name that the weights use. EmbedderDown."""
        bring(self._pinned, self._pinned.beside, self.folder, self._hub)
        return {file.name: self._mapped(file) for file in self._pinned.beside}

    def _read(self, file: ModelFile) -> bytes:
        bring(self._pinned, [file], self.folder, self._hub)
        try:
            content = (self.folder / file.path).read_bytes()
        except OSError as error:
            raise self._unreadable(file, error.strerror) from error
        self._check(file, hashlib.sha256(content).digest())
        return content

    def _mapped(self, file: ModelFile) -> mmap.mmap:
        """Gigabytes: mapped, since the runtime makes a copy of its own and two do not fit everywhere."""
        try:
            with (self.folder / file.path).open("rb") as opened:
                content = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: it is empty
            raise self._unreadable(file, str(error)) from error
        self._check(file, hashlib.sha256(content).digest())
        return content

    def _check(self, file: ModelFile, digest: bytes) -> None:
        if digest != file.sha256:
            # Not replaced by itself: whoever changed it should not go unnoticed.
            raise EmbedderDown(
                f"{self.folder / file.path} is not the file that was downloaded: delete it to have it downloaded anew."
            )

    def _unreadable(self, file: ModelFile, reason: str | None) -> EmbedderDown:
        return EmbedderDown(f"{self.folder / file.path} cannot be read ({reason or 'it does not open'}).")


class Hub(HubFiles):
    """An embedding model, as the companion's embedder takes it."""

    def __init__(self, model: EmbeddingModel, cache: Path, hub: str = HUB) -> None:
        super().__init__(model, cache, hub)
        # The three figures that turn a cosine into a score are the memory's; here ranks alone count.
        self.model = Model(
            id=model.name,
            repository=model.repository,
            commit=model.commit,
            licence="",
            pooling=model.pooling,
            dimension=model.dimension,
            max_tokens=model.max_tokens,
            min_similarity=-1,
            semantic_from=0,
            semantic_span=1,
            weights=model.weights,
            tokenizer=model.tokenizer,
            package=None,
        )

    def files(self) -> LoadedFiles:
        """EmbedderDown."""
        return LoadedFiles(self.model, self.weights(), self.tokenizer(), self.beside())
