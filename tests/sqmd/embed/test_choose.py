"""From the configuration to the embedder."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sqmd.config import Config, Embeddings, Paths, load
from sqmd.embed import catalog, choose
from sqmd.embed.local import OnnxEmbedder
from sqmd.embed.ollama import OllamaEmbedder
from sqmd.errors import ConfigError
from squirrel_mcp_embeddings import model_files
from tests.real_model import real_model
from tests.scripts.hub import Hub


def config(tmp_path: Path, **embeddings: object) -> Config:
    paths = dataclasses.replace(Paths(), model_cache_dir=tmp_path / "models")
    return Config(paths=paths, embeddings=dataclasses.replace(Embeddings(), **embeddings))


def test_the_default_is_the_companions_model(tmp_path: Path) -> None:
    with real_model() as real:
        embedder = choose.make(config(tmp_path))
        assert (embedder.name, embedder.dimension) == (real.model.id, real.model.dimension)


def test_the_companions_model_by_name_is_not_downloaded(tmp_path: Path, hub: Hub) -> None:
    with real_model() as real:
        for name in (real.model.id, real.model.repository):
            embedder = choose.make(config(tmp_path, model=name), hub.base)
            assert embedder.name == real.model.id
            assert embedder.embed_query("oat milk") is not None
    assert not hub.asked


@pytest.mark.parametrize(
    ("name", "full", "dimension"),
    [
        ("nomic-ai/nomic-embed-text-v1.5", "nomic-ai/nomic-embed-text-v1.5", 768),
        ("nomic-embed-text-v1.5", "nomic-ai/nomic-embed-text-v1.5", 768),
        ("BAAI/bge-m3", "BAAI/bge-m3", 1024),
        ("bge-m3", "BAAI/bge-m3", 1024),
        ("gte-small", "gte-small", 384),
        ("thenlper/gte-small", "gte-small", 384),
        ("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2", 384),
    ],
)
def test_models_are_known_with_and_without_their_owner(
    tmp_path: Path, name: str, full: str, dimension: int, hub: Hub
) -> None:
    embedder = choose.make(config(tmp_path, model=name), hub.base)
    assert isinstance(embedder, OnnxEmbedder)
    assert (embedder.name, embedder.dimension) == (full, dimension)
    assert not hub.asked


def test_a_model_that_is_not_known_is_one_line_with_those_that_are(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        choose.make(config(tmp_path, model="text-embedding-3"))
    assert str(caught.value) == (
        "embeddings.model is text-embedding-3, which is not known here; known are companion, gte-small, "
        "all-MiniLM-L6-v2, nomic-ai/nomic-embed-text-v1.5, BAAI/bge-m3."
    )


@pytest.mark.parametrize("name", ["~/bert", "./bert", "/bert"])
def test_a_folder_is_no_model_and_is_named_as_it_was_written(tmp_path: Path, name: str) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(f"embeddings: {{model: {name}}}", "utf-8")
    with pytest.raises(ConfigError, match=f"embeddings.model is {name}, which is not known here"):
        choose.make(load(path, {}).config)


def test_ollama_is_asked_for_any_model_but_has_to_be_told_which(tmp_path: Path) -> None:
    embedder = choose.make(config(tmp_path, backend="ollama", model="whatever"))
    assert isinstance(embedder, OllamaEmbedder)
    assert embedder.name == "ollama/whatever"
    with pytest.raises(ConfigError, match=r"embeddings\.model has to name a model of Ollama"):
        choose.make(config(tmp_path, backend="ollama"))


def test_every_file_of_the_table_is_pinned_and_stays_in_its_folder() -> None:
    models = [*catalog.embedding_models(), *catalog.CROSS_ENCODERS]
    for model in models:
        assert re.fullmatch("[0-9a-f]{40}", model.commit)
        for file in (model.weights, model.tokenizer, *model.beside):
            assert len(file.sha256) == 32
            assert not file.path.startswith("/") and ".." not in file.path
    names = [name for model in models for name in set(model.names)]
    assert len(names) == len(set(names))


def test_the_table_agrees_with_the_companions_manifest() -> None:
    listed = {model.id: model for model in model_files.listed()}
    minilm = catalog.embedding_model("all-MiniLM-L6-v2")
    assert minilm is not None
    own = listed["all-MiniLM-L6-v2"]
    assert (minilm.dimension, minilm.pooling, minilm.max_tokens) == (own.dimension, own.pooling, own.max_tokens)
    assert minilm.tokenizer == own.tokenizer


def test_nomic_has_its_prefixes_and_bge_reads_every_script() -> None:
    nomic, bge = catalog.embedding_model("nomic-embed-text-v1.5"), catalog.embedding_model("bge-m3")
    assert nomic is not None and bge is not None
    assert (nomic.document_prefix, nomic.query_prefix) == ("search_document: ", "search_query: ")
    assert (bge.document_prefix, bge.query_prefix, bge.pooling, bge.latin_only) == ("", "", "cls", False)


def test_choosing_imports_nothing_heavy() -> None:
    program = (
        "import sys; from sqmd.config import Config; from sqmd.embed import choose;"
        "import sqmd.search.rerank, sqmd.rag;"
        "choose.make(Config());"
        "print({'numpy', 'onnxruntime', 'tokenizers', 'httpx', 'rich', 'filelock'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"
