"""Small models as the table lists them, on a hub of the test's own."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import onnx
from onnx.external_data_helper import convert_model_to_external_data
from tokenizers.processors import TemplateProcessing

from sqmd.embed.catalog import CrossEncoderModel, EmbeddingModel
from squirrel_mcp_embeddings.manifest import ModelFile
from tests.scripts.hub import Hub
from tests.squirrel_mcp_embeddings.small_model import DIMENSION, small_tokenizer, small_weights


def _pair_tokenizer() -> bytes:
    """The same, which also knows how a pair of texts is put together: as BERT's."""
    tokenizer = small_tokenizer()
    special = [(name, tokenizer.token_to_id(name)) for name in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=special
    )
    return tokenizer.to_str().encode("utf-8")


COMMIT = "0123456789abcdef0123456789abcdef01234567"
REPOSITORY = "squirrels/small"
TOKENIZER = small_tokenizer().to_str().encode("utf-8")
PAIR_TOKENIZER = _pair_tokenizer()
WEIGHTS = small_weights(small_tokenizer().get_vocab_size())


def pinned(path: str, content: bytes) -> ModelFile:
    return ModelFile(path, len(content), hashlib.sha256(content).digest())


def embedding_model(**others: Any) -> EmbeddingModel:
    fields: dict[str, Any] = {
        "name": REPOSITORY,
        "repository": REPOSITORY,
        "commit": COMMIT,
        "dimension": DIMENSION,
        "pooling": "mean",
        "max_tokens": 512,
        "weights": pinned("onnx/model.onnx", WEIGHTS),
        "tokenizer": pinned("tokenizer.json", TOKENIZER),
    }
    return EmbeddingModel(**{**fields, **others})


def cross_encoder(weights: bytes) -> CrossEncoderModel:
    return CrossEncoderModel(
        name=REPOSITORY,
        repository=REPOSITORY,
        commit=COMMIT,
        max_tokens=64,
        weights=pinned("onnx/model.onnx", weights),
        tokenizer=pinned("tokenizer.json", PAIR_TOKENIZER),
    )


def publish(
    hub: Hub, weights: bytes = WEIGHTS, beside: dict[str, bytes] | None = None, tokenizer: bytes = TOKENIZER
) -> None:
    """Have the hub hand them out at the pinned commit."""
    files = {"onnx/model.onnx": weights, "tokenizer.json": tokenizer}
    files |= {f"onnx/{name}": content for name, content in (beside or {}).items()}
    hub.files |= {f"/{REPOSITORY}/resolve/{COMMIT}/{path}": content for path, content in files.items()}


def in_two_files(folder: Path) -> tuple[bytes, bytes]:
    """The small model as a graph and the file with its weights, which the graph calls model.onnx_data."""
    model = onnx.load_from_string(WEIGHTS)
    convert_model_to_external_data(model, location="model.onnx_data", size_threshold=1024)
    onnx.save(model, folder / "model.onnx")
    return (folder / "model.onnx").read_bytes(), (folder / "model.onnx_data").read_bytes()
