"""An embedder that is quick: one direction for each word, some words sharing one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from hashlib import sha256

import numpy as np
from numpy.typing import NDArray

from sqmd.errors import EmbedderDown

_SAME = {"automobile": "car", "vehicle": "car", "espresso": "coffee", "caffeine": "coffee"}


class FakeEmbedder:
    """Notes what it embeds; `down` makes it unavailable."""

    def __init__(self, name: str = "fake", dimension: int = 128) -> None:
        self.name, self.dimension = name, dimension
        self.max_tokens = 512
        self.embedded: list[str] = []
        self.down = False

    def embed_documents(self, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        self.embedded += texts
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> NDArray[np.float32] | None:
        return self._vector(text)

    def count_tokens(self, text: str) -> int:
        return len(text.split()) + 2

    def close(self) -> None:
        pass

    def _vector(self, text: str) -> NDArray[np.float32] | None:
        if self.down:
            raise EmbedderDown("The embedding server does not answer.")
        letters = [char for char in text if char.isalpha()]
        if sum(map(str.isascii, letters)) < 0.7 * len(letters):
            return None  # a script that it does not read
        words = ["".join(filter(str.isalnum, word)).lower() for word in text.split()]
        found = np.zeros(self.dimension, np.float32)
        for word in filter(str.isascii, filter(None, words)):
            found[int.from_bytes(sha256(_SAME.get(word, word).encode()).digest()[:4]) % self.dimension] += 1
        length = float(np.linalg.norm(found))
        return found / np.float32(length) if length else None


class Hanging(FakeEmbedder):
    """Computes no vector of a query until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Semaphore(0)
        self.go = threading.Event()

    def embed_query(self, text: str) -> NDArray[np.float32] | None:
        self.asked.release()
        assert self.go.wait(60)
        return super().embed_query(text)
