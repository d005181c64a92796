"""Rows, keys and handles for the tests of the vector file; small vectors, real files."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from squirrel_mcp.crypto.key_set import KeyRing, RetiredKey
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp_embeddings.vector_file import Rows, VectorFile
from tests.vectors.making.seeded import Seeded

ACCOUNT, MODEL, SHA256, TEXT_FORMAT = b"a" * 16, "gte-small", bytes(range(32)), 1
DIMENSION = 3  # a row has 30 bytes: no multiple of it is a power of two, as is none of 792

Row = tuple[bytes, int, tuple[float, ...]]


def key(name: str) -> Dek:
    return Dek(Seeded(f"vector file {name}")(32))


def ring(*names: str) -> KeyRing:
    """The key named last is the current one."""
    *retired, current = [key(name) for name in names]
    return KeyRing(tuple(RetiredKey(dek, 1, bytes(32)) for dek in retired), current)


def rows(count: int, seed: int = 1, dimension: int = DIMENSION) -> Rows:
    """Made-up rows, the same for the same arguments."""
    random = np.random.default_rng(seed)
    return Rows(
        random.integers(0, 256, (count, 16), np.uint8),
        random.integers(0, 2**64, count, np.uint64),
        random.standard_normal((count, dimension)).astype(np.float16),
    )


def listed(*found: Rows) -> list[Row]:
    """Rows as plain values, for comparing."""
    return [
        (identity.tobytes(), int(revision), tuple(vector.tolist()))
        for each in found
        for identity, revision, vector in zip(*each, strict=True)
    ]


@dataclass
class Scene:
    """A cache directory, and handles on its file as other processes would have them."""

    cache_dir: Path
    ring: KeyRing = field(default_factory=lambda: ring("first"))

    def handle(
        self,
        *,
        keys: Callable[[], KeyRing] | None = None,
        account_id: bytes = ACCOUNT,
        model_id: str = MODEL,
        model_sha256: bytes = SHA256,
        dimension: int = DIMENSION,
        text_format: int = TEXT_FORMAT,
    ) -> VectorFile:
        keys = keys or (lambda: self.ring)
        return VectorFile(self.cache_dir, account_id, keys, model_id, model_sha256, dimension, text_format)

    @property
    def path(self) -> Path:
        return self.handle().path

    def files(self) -> list[str]:
        return sorted(path.name for path in self.path.parent.iterdir() if path.suffix != ".lock")
