"""A model that is quick and clear: a text's vector is the sum of one direction for each of its words.

Words that share a meaning share a direction, so that a question can find what it has no word in common with.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from squirrel_mcp.crypto.key_set import KeyRing
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.memory import Memory
from squirrel_mcp_embeddings.background import Background
from squirrel_mcp_embeddings.errors import EmbeddingFailed
from squirrel_mcp_embeddings.hybrid import HybridRanker
from squirrel_mcp_embeddings.manifest import Model, ModelFile
from squirrel_mcp_embeddings.memory_text import TEXT_FORMAT
from squirrel_mcp_embeddings.vector_file import VectorFile

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DIMENSION = 256
MODEL = Model(
    id="fake",
    repository="nobody/fake",
    commit="0" * 40,
    licence="MIT",
    pooling="mean",
    dimension=DIMENSION,
    max_tokens=512,
    min_similarity=0.35,
    semantic_from=0.2,
    semantic_span=0.8,
    weights=ModelFile("model.onnx", 1, bytes(32)),
    tokenizer=ModelFile("tokenizer.json", 1, bytes(32)),
    package=None,
)
_MEANINGS = {"coffee": "drink", "espresso": "drink", "tea": "drink", "car": "vehicle", "automobile": "vehicle"}


class FakeEmbedder:
    """Notes what it embeds. It waits while a text is in `held`, and breaks down while `fail` is set."""

    model = MODEL

    def __init__(self) -> None:
        self.embedded: list[str] = []
        self.held: set[str] = set()
        self.fail = False
        self.closed = False

    def embed(self, texts: Sequence[str], stop: Callable[[], bool] = lambda: False) -> list[NDArray[np.float32] | None]:
        while self.held.intersection(texts):
            if stop():
                return [None] * len(texts)
            time.sleep(0.005)
        if self.fail:
            raise EmbeddingFailed("The model's runtime failed (Fake).")
        self.embedded += texts
        return [vector(text) for text in texts]

    def close(self) -> None:
        self.closed = True


def vector(text: str) -> NDArray[np.float32] | None:
    words = ["".join(filter(str.isalnum, word)).lower() for word in text.split()]
    directions = [_direction(_MEANINGS.get(word, word)) for word in words if word]
    if not directions:
        return None
    total = np.sum(directions, axis=0)
    return (total / np.linalg.norm(total)).astype(np.float32)


def _direction(word: str) -> NDArray[np.float64]:
    return np.eye(DIMENSION)[int.from_bytes(sha256(word.encode()).digest()[:4]) % DIMENSION]


class Bench:
    """A ranker with its background on a real vector file below `cache_dir`."""

    def __init__(self, cache_dir: object, embedder: FakeEmbedder | None = None, **options: bool) -> None:
        self.embedder = embedder or FakeEmbedder()
        self.said: list[str] = []
        self.ranker = HybridRanker(**options)
        self.file = vector_file(cache_dir)
        self.ranker.background = Background(
            self.ranker,
            lambda: self.embedder,  # type: ignore[arg-type, return-value]  # a fake of all that is used
            lambda model: self.file,
            self.said.append,
        )

    def with_memories(self, memories: Iterable[Memory]) -> Bench:
        self.ranker.put_many(memories)
        self.settle()
        return self

    def settle(self) -> None:
        """Until every memory has its vector, and the file has it too."""
        assert self.ranker.wait(30)
        with self.ranker.background.keeper._lock:  # type: ignore[union-attr]
            pass

    def kept(self) -> dict[str, int]:
        """Revision by id, as another process reads them from the file."""
        rows = vector_file(self.file.path.parent.parent).load()
        ids = rows.ids.tobytes().hex()
        return {ids[32 * i : 32 * i + 32]: int(revision) for i, revision in enumerate(rows.revisions)}


def vector_file(cache_dir: object) -> VectorFile:
    ring = KeyRing((), Dek(bytes(range(32))))
    return VectorFile(cache_dir, bytes(16), lambda: ring, "fake", bytes(32), DIMENSION, TEXT_FORMAT)  # type: ignore[arg-type]


def numbered(number: int) -> str:
    return f"{number:032x}"


def memory(text: str, number: int = 1, **fields: object) -> Memory:
    stamps = {"created_at": NOW, "updated_at": NOW}
    return Memory(**{"id": numbered(number), "text": text, **stamps, **fields})  # type: ignore[arg-type]
