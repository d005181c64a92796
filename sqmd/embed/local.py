"""The companion's embedder for sqmd: loaded when it is first needed, and its tokenizer before and without it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqmd.errors import EmbedderDown
from sqmd.ingest.token_counts import WordCounts
from squirrel_mcp_embeddings import model_files, script
from squirrel_mcp_embeddings.errors import EmbeddingFailed, ModelUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from squirrel_mcp_embeddings.embedder import Embedder as Loaded
    from squirrel_mcp_embeddings.manifest import Model
    from squirrel_mcp_embeddings.model_files import LoadedFiles


class Source(Protocol):
    """Where a model comes from. All of it raises ModelUnavailable or EmbedderDown."""

    @property
    def model(self) -> Model: ...

    def tokenizer(self) -> bytes:
        """The content of tokenizer.json, checked."""

    def files(self) -> LoadedFiles:
        """All of it, checked."""


class Companion:
    """The model that the companion brings along, or the one in `folder`, which holds one folder for each."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @property
    def model(self) -> Model:
        return model_files.find(self._folder)

    def tokenizer(self) -> bytes:
        return model_files.read_tokenizer(self._folder)

    def files(self) -> LoadedFiles:
        return model_files.read(self._folder)


class OnnxEmbedder:
    """A model that runs here. Thread-safe; `count_tokens`, `name` and `dimension` do not load the weights."""

    def __init__(
        self, source: Source, *, latin_only: bool = True, document_prefix: str = "", query_prefix: str = ""
    ) -> None:
        """latin_only: text in another script gets no vector, since the model would make noise of it."""
        self._source, self._latin_only = source, latin_only
        self._document_prefix, self._query_prefix = document_prefix, query_prefix
        self._loading, self._counting = threading.Lock(), threading.Lock()
        self._model: Model | None = None
        self._count: Callable[[str], int] | None = None
        self._embedder: Loaded | None = None
        self._closed = False

    @property
    def name(self) -> str:
        return self._about().id

    @property
    def dimension(self) -> int:
        return self._about().dimension

    @property
    def max_tokens(self) -> int:
        prefix = self.count_tokens(self._document_prefix) - self.count_tokens("") if self._document_prefix else 0
        return self._about().max_tokens - prefix

    def embed_documents(self, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        return self._embed(texts, self._document_prefix)

    def embed_query(self, text: str) -> NDArray[np.float32] | None:
        return self._embed([text], self._query_prefix)[0]

    def count_tokens(self, text: str) -> int:
        if self._count is None:
            with self._counting, told():  # not kept waiting by weights that are on their way
                from squirrel_mcp_embeddings.token_counter import TokenCounter, read_tokenizer

                counter = TokenCounter(read_tokenizer(self._source.tokenizer()))
                self._count = WordCounts(counter.count_tokens) if counter.parts_at_blanks else counter.count_tokens
        return self._count(text)

    def close(self) -> None:
        """Let go of the model. What is under way ends with EmbedderDown, or with its result."""
        with self._loading:
            self._closed = True
            if self._embedder is not None:
                self._embedder.close()

    def _embed(self, texts: Sequence[str], prefix: str) -> list[NDArray[np.float32] | None]:
        vectors: list[NDArray[np.float32] | None] = [None] * len(texts)
        places = [place for place, text in enumerate(texts) if self._reads(text, prefix)]
        if not places:
            return vectors
        embedder = self._loaded()
        with told():
            found = embedder.embed([prefix + texts[place] for place in places])
        for place, vector in zip(places, found, strict=True):
            if vector is not None and vector.shape != (self.dimension,):
                raise EmbedderDown(f"{self.name} computes {vector.size} numbers where {self.dimension} are expected.")
            vectors[place] = vector
        return vectors

    def _reads(self, text: str, prefix: str) -> bool:
        if self._latin_only and not script.reads(text):
            return False
        # The prefix holds letters: with it before them a few dashes would be something to read.
        return not prefix or any(map(str.isalnum, text))

    def _about(self) -> Model:
        if self._model is None:
            with told():
                self._model = self._source.model
        return self._model

    def _loaded(self) -> Loaded:
        with self._loading:
            if self._closed:
                raise EmbedderDown("The model was let go of.")
            if self._embedder is None:
                with told():
                    from squirrel_mcp_embeddings.embedder import load

                    self._embedder = load(self._source.files())
            return self._embedder


class CompanionEmbedder(OnnxEmbedder):
    """The model that is there after an install: nothing to download."""

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__(Companion(folder))


@contextmanager
def told() -> Iterator[None]:
    """The companion's errors as one of ours."""
    try:
        yield
    except ModelUnavailable as error:
        raise EmbedderDown(_sentence(error.reason)) from error
    except EmbeddingFailed as error:
        raise EmbedderDown(str(error)) from error


def _sentence(reason: str) -> str:
    if reason == "runtime":
        return "The model cannot be run on this machine: ONNX Runtime is missing here, or refuses it."
    return f"The model cannot be loaded ({reason}): install sqmd again, or run scripts/fetch_model.py in a checkout."
