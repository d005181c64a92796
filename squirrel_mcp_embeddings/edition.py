"""The companion as an edition of the base: another ranker, and a file that forgetting has to reach."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from squirrel_mcp.edition import BASE, Edition, Say

if TYPE_CHECKING:
    from pathlib import Path

    from squirrel_mcp.search.results import Ranker
    from squirrel_mcp.settings import Settings
    from squirrel_mcp.vault import Vault
    from squirrel_mcp_embeddings.embedder import Embedder
    from squirrel_mcp_embeddings.hybrid import HybridRanker
    from squirrel_mcp_embeddings.manifest import Model
    from squirrel_mcp_embeddings.vector_file import VectorFile

# Read by the linear algebra behind numpy when it is loaded, which is later. Its threads spin while they wait and take
# the cores from whatever else runs, our own embedding first: beside two busy processes on two cores the product of a
# query with 100,000 vectors takes 104 ms on two threads and 9 ms on one. On an idle machine two would win 2 ms.
os.putenv("OPENBLAS_NUM_THREADS", "1")


def _ranker(settings: Settings, vault: Vault, say: Say) -> Ranker:
    return hybrid_ranker(settings, vault, say)


def _patient_ranker(settings: Settings, vault: Vault, say: Say) -> Ranker:
    return hybrid_ranker(settings, vault, say, patient=True)


def hybrid_ranker(settings: Settings, vault: Vault, say: Say, *, patient: bool = False) -> HybridRanker:
    """The ranker of an open vault. patient: its searches wait for the model, and only trouble is said."""
    from squirrel_mcp import vector_files
    from squirrel_mcp_embeddings.background import Background
    from squirrel_mcp_embeddings.hybrid import HybridRanker

    ranker = HybridRanker(patient=patient)

    def load() -> Embedder:
        return load_embedder(settings)

    def open_file(model: Model) -> VectorFile:
        return vector_file(settings, vault, model)

    def drop(keep: Path | None) -> None:
        vector_files.drop(settings.cache_dir, vault.ring, keep=keep)

    ranker.background = Background(ranker, load, open_file, say, announce=not patient, drop=drop)
    return ranker


def load_embedder(settings: Settings) -> Embedder:
    """The model that the settings ask for; ModelUnavailable."""
    from squirrel_mcp_embeddings.errors import ModelUnavailable

    if not settings.embeddings:
        raise ModelUnavailable("off")
    from squirrel_mcp_embeddings import embedder, model_files

    return embedder.load(model_files.read(settings.model_dir))


def vector_file(settings: Settings, vault: Vault, model: Model) -> VectorFile:
    """The file of the vault's vectors under this model."""
    from squirrel_mcp_embeddings.memory_text import TEXT_FORMAT
    from squirrel_mcp_embeddings.vector_file import VectorFile

    return VectorFile(
        settings.cache_dir,
        vault.account_id,
        lambda: vault.ring,
        model.id,
        model.weights.sha256,
        model.dimension,
        TEXT_FORMAT,
    )


# A command that forgets makes no ranker, and without one the whole file goes, as with the base. A server that runs
# meanwhile hears of it when it next syncs, and writes the file anew.
COMPANION = Edition(
    "squirrel-mcp-embeddings", "squirrel_mcp_embeddings", True, _ranker, _patient_ranker, BASE.forgotten
)
