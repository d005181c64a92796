"""The weights of a BERT encoder of any size, drawn at random: what a model costs does not depend on what it learnt."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

POSITIONS = 512


def random_bert(*, layers: int, hidden: int, inner: int, vocabulary: int, seed: int = 1) -> bytes:
    """A safetensors file with the names and shapes that scripts/export_minilm.py reads, the same for the same seed.

    `hidden` is a multiple of the twelve heads.
    """
    random = np.random.default_rng(seed)
    tensors: dict[str, NDArray[Any]] = {}

    def matrix(name: str, rows: int, columns: int) -> None:
        tensors[name] = random.standard_normal((rows, columns), dtype=np.float32) * np.float32(0.02 * 384 / hidden)

    def linear(name: str, inputs: int, outputs: int) -> None:
        matrix(f"{name}.weight", outputs, inputs)
        tensors[f"{name}.bias"] = np.zeros(outputs, np.float32)

    def norm(name: str) -> None:
        tensors[f"{name}.weight"] = np.ones(hidden, np.float32)
        tensors[f"{name}.bias"] = np.zeros(hidden, np.float32)

    matrix("embeddings.word_embeddings.weight", vocabulary, hidden)
    matrix("embeddings.token_type_embeddings.weight", 2, hidden)
    matrix("embeddings.position_embeddings.weight", POSITIONS, hidden)
    norm("embeddings.LayerNorm")
    for layer in range(layers):
        prefix = f"encoder.layer.{layer}"
        for part in ("self.query", "self.key", "self.value", "output.dense"):
            linear(f"{prefix}.attention.{part}", hidden, hidden)
        norm(f"{prefix}.attention.output.LayerNorm")
        linear(f"{prefix}.intermediate.dense", hidden, inner)
        linear(f"{prefix}.output.dense", inner, hidden)
        norm(f"{prefix}.output.LayerNorm")
    return save(tensors)
