"""The embedder that the configuration asks for. Nothing is loaded, downloaded or asked before it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqmd.config import COMPANION_MODEL
from sqmd.embed.download import HUB
from sqmd.errors import ConfigError

if TYPE_CHECKING:
    from sqmd.config import Config
    from sqmd.embed import Embedder


def make(config: Config, hub: str = HUB) -> Embedder:
    """ConfigError for a model that is not known."""
    from sqmd.embed import catalog
    from sqmd.embed.hub import Hub
    from sqmd.embed.local import CompanionEmbedder, OnnxEmbedder

    settings = config.embeddings
    if settings.backend == "ollama":
        if settings.model == COMPANION_MODEL:
            raise ConfigError(
                "embeddings.model has to name a model of Ollama, such as nomic-embed-text, because embeddings.backend "
                "is ollama."
            )
        from sqmd.embed.ollama import OllamaEmbedder

        return OllamaEmbedder(settings.ollama_base_url, settings.model, settings.batch_size)
    if settings.model in (COMPANION_MODEL, *_names_of_the_companion()):
        return CompanionEmbedder()
    model = catalog.embedding_model(settings.model)
    if model is None:
        known = ", ".join(dict.fromkeys([COMPANION_MODEL, *(each.name for each in catalog.embedding_models())]))
        raise ConfigError(f"embeddings.model is {settings.model}, which is not known here; known are {known}.")
    return OnnxEmbedder(
        Hub(model, config.paths.model_cache_dir, hub),
        latin_only=model.latin_only,
        document_prefix=model.document_prefix,
        query_prefix=model.query_prefix,
    )


def _names_of_the_companion() -> tuple[str, ...]:
    """What the model that the companion brings along is called; empty where it brings none."""
    from squirrel_mcp_embeddings import model_files
    from squirrel_mcp_embeddings.errors import ModelUnavailable

    try:
        model = model_files.find(None)
    except ModelUnavailable:
        return ()
    return model.id, model.repository
