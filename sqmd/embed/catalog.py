"""Which models may be asked for by name, and all that belongs to each: pinned files, and how it wants to be used.

Every file is pinned by size and SHA-256, beside the commit of the hub that it comes from. The figures are those that
other projects publish of the same files; none of them was downloaded from the hub itself while this was written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from squirrel_mcp_embeddings import model_files
from squirrel_mcp_embeddings.manifest import ModelFile
from squirrel_mcp_embeddings.model_files import ModelUnavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class HubModel:
    """Files of one commit of `repository`. `name` is what the index is stamped with, `max_tokens` what it reads."""

    name: str
    repository: str
    commit: str
    max_tokens: int
    weights: ModelFile
    tokenizer: ModelFile
    beside: tuple[ModelFile, ...] = ()
    """What the weights refer to, in their folder: an ONNX file ends at 2 GB."""

    @property
    def names(self) -> tuple[str, ...]:
        """All that it may be called by."""
        return self.name, self.repository, *(each.rpartition("/")[2] for each in (self.name, self.repository))


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingModel(HubModel):
    """`latin_only`: it learnt from English. The prefixes stand before every text, as in its training."""

    dimension: int
    pooling: Literal["mean", "cls"]
    latin_only: bool = True
    document_prefix: str = ""
    query_prefix: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossEncoderModel(HubModel):
    """Reads a query and a text together and tells how well they fit."""


def _file(path: str, size: int, sha256: str) -> ModelFile:
    return ModelFile(path, size, bytes.fromhex(sha256))


# The one of BERT, uncased, which half of all English models use.
_BERT_TOKENIZER = _file("tokenizer.json", 711_396, "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66")

_MINILM = EmbeddingModel(
    name="all-MiniLM-L6-v2",  # as the companion calls it, whose file computes the same to 1e-6
    repository="sentence-transformers/all-MiniLM-L6-v2",
    commit="c9745ed1d9f207416be6d2e6f8de32d1f16199bf",
    dimension=384,
    pooling="mean",
    max_tokens=512,
    weights=_file("onnx/model.onnx", 90_405_214, "6fd5d72fe4589f189f8ebc006442dbb529bb7ce38f8082112682524616046452"),
    tokenizer=_file("tokenizer.json", 466_247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"),
)
_NOMIC = EmbeddingModel(
    name="nomic-ai/nomic-embed-text-v1.5",
    repository="nomic-ai/nomic-embed-text-v1.5",
    commit="e9b6763023c676ca8431644204f50c2b100d9aab",
    dimension=768,
    pooling="mean",
    # What it was trained on. It reads 8,192 only if its rotary positions are rescaled, which the ONNX file does not do.
    max_tokens=2048,
    document_prefix="search_document: ",
    query_prefix="search_query: ",
    weights=_file("onnx/model.onnx", 547_310_275, "147d5aa88c2101237358e17796cf3a227cead1ec304ec34b465bb08e9d952965"),
    tokenizer=_BERT_TOKENIZER,
)
_BGE_M3 = EmbeddingModel(
    name="BAAI/bge-m3",
    repository="BAAI/bge-m3",
    commit="5617a9f61b028005a4858fdac845db406aefb181",
    dimension=1024,
    pooling="cls",
    max_tokens=8192,
    latin_only=False,
    weights=_file("onnx/model.onnx", 724_923, "f84251230831afb359ab26d9fd37d5936d4d9bb5d1d5410e66442f630f24435b"),
    tokenizer=_file("tokenizer.json", 17_098_108, "21106b6d7dab2952c1d496fb21d5dc9db75c28ed361a05f5020bbba27810dd08"),
    beside=(
        _file(
            "onnx/model.onnx_data", 2_266_820_608, "1eebfb28493f67bba03ce0ef64bfdc7fc5a3bd9d7493f818bb1d78cd798416b4"
        ),
        _file(
            "onnx/Constant_7_attr__value", 65_552, "cdf16f72c5d07b36484056e601ed9687f78477e5d85cee85a34f2406b7fb5906"
        ),
    ),
)
_MS_MARCO = CrossEncoderModel(
    name="cross-encoder/ms-marco-MiniLM-L-6-v2",
    # Where the hub has moved it to; the other name is still the known one.
    repository="cross-encoder/ms-marco-MiniLM-L6-v2",
    commit="c5ee24cb16019beea0893ab7796b1df96625c6b8",
    max_tokens=512,
    weights=_file("onnx/model.onnx", 91_011_230, "5d3e70fd0c9ff14b9b5169a51e957b7a9c74897afd0a35ce4bd318150c1d4d4a"),
    tokenizer=_BERT_TOKENIZER,
)

CROSS_ENCODERS = (_MS_MARCO,)


def embedding_models() -> tuple[EmbeddingModel, ...]:
    """The table, behind those of the companion's manifest that the hub has."""
    return (*_of_the_companion(), _MINILM, _NOMIC, _BGE_M3)


def embedding_model(name: str) -> EmbeddingModel | None:
    """The model that is called so, with or without its owner's name."""
    return next((model for model in embedding_models() if name in model.names), None)


def cross_encoder(name: str) -> CrossEncoderModel | None:
    """As above."""
    return next((model for model in CROSS_ENCODERS if name in model.names), None)


def _of_the_companion() -> Iterator[EmbeddingModel]:
    try:
        listed = model_files.listed()
    except ModelUnavailable:  # said by whatever loads the companion's own
        return
    for model in listed:
        if model.commit is not None:
            yield EmbeddingModel(
                name=model.id,
                repository=model.repository,
                commit=model.commit,
                dimension=model.dimension,
                pooling=model.pooling,
                max_tokens=model.max_tokens,
                weights=model.weights,
                tokenizer=model.tokenizer,
            )
