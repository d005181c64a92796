"""The companion's model: loaded late, its tokenizer without it, and quiet about what it does not read."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from sqmd.embed.local import CompanionEmbedder
from sqmd.errors import EmbedderDown
from squirrel_mcp_embeddings import model_files
from tests.real_model import real_model

# In a process of its own: what is imported is a matter of the whole process.
_COUNT = """
import sys
from sqmd.embed.local import CompanionEmbedder
embedder = CompanionEmbedder()
print(embedder.name, embedder.dimension, embedder.count_tokens("the milk"))
print({"onnxruntime", "numpy"} & set(sys.modules))
"""


@pytest.fixture
def model_dir(tmp_path: Path) -> Path:
    """A copy of the folder of models, with links in place of copies where that is possible."""
    try:
        model = model_files.find(None)
    except model_files.ModelUnavailable as error:
        pytest.skip(str(error))
    source = model_files.own_home() / "model" / model.id
    for file in model.files:
        target = tmp_path / model.id / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / file.path, target)
    return tmp_path


def test_the_name_and_the_dimension_are_the_manifests(model_dir: Path) -> None:
    model = model_files.find(model_dir)
    embedder = CompanionEmbedder(model_dir)
    assert (embedder.name, embedder.dimension) == (model.id, model.dimension)


def test_tokens_are_counted_without_the_runtime() -> None:
    with real_model():
        result = subprocess.run([sys.executable, "-c", _COUNT], capture_output=True, text=True, check=True)
    lines = result.stdout.splitlines()
    assert lines[0].endswith(" 384 4")
    assert lines[1] == "set()"


def test_tokens_are_counted_without_the_weights(model_dir: Path) -> None:
    model = model_files.find(model_dir)
    (model_dir / model.id / model.weights.path).write_bytes(b"damaged")
    embedder = CompanionEmbedder(model_dir)
    assert embedder.count_tokens("the milk") == 4
    assert embedder.dimension == model.dimension
    with pytest.raises(EmbedderDown, match=r"cannot be loaded \(integrity: model\.onnx\): install sqmd again"):
        embedder.embed_query("oat milk")


def test_the_whole_text_is_counted_however_long(model_dir: Path) -> None:
    assert CompanionEmbedder(model_dir).count_tokens("milk " * 3_000) == 3_002


def test_a_model_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    embedder = CompanionEmbedder(tmp_path)
    for ask in (lambda: embedder.name, lambda: embedder.count_tokens("x"), lambda: embedder.embed_query("x")):
        with pytest.raises(EmbedderDown, match=r"cannot be loaded \(missing: "):
            ask()


def test_vectors_are_those_of_the_companion_for_documents_as_for_queries() -> None:
    texts = ["Section: Backup\n\nThe disk stands in the attic.", "", "oat milk", "日本語の文書です", "🥐"]
    embedder = CompanionEmbedder()
    with real_model() as real:
        found, expected = embedder.embed_documents(texts), real.embed(texts)
    assert [each is None for each in found] == [False, True, False, True, True]
    for place in (0, 2):
        np.testing.assert_allclose(found[place], expected[place], atol=1e-5)
    np.testing.assert_allclose(embedder.embed_query("oat milk"), expected[2], atol=1e-5)
    assert embedder.embed_query("日本語") is None
    embedder.close()


def test_a_query_with_signs_is_embedded_as_it_was_typed() -> None:
    embedder = CompanionEmbedder()
    with real_model() as real:
        np.testing.assert_allclose(embedder.embed_query("C++ naïve"), real.embed(["C++ naïve"])[0], atol=1e-5)
    embedder.close()


def test_closing_what_was_never_loaded_is_fine(tmp_path: Path) -> None:
    embedder = CompanionEmbedder(tmp_path)
    embedder.close()
    with pytest.raises(EmbedderDown, match="let go of"):
        embedder.embed_query("oat milk")
