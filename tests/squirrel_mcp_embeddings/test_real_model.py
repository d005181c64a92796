"""The real model, against what sentence-transformers makes of the same texts (scripts/reference_vectors.py)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from squirrel_mcp_embeddings import manifest
from squirrel_mcp_embeddings.embedder import Embedder, load
from squirrel_mcp_embeddings.model_files import LoadedFiles, own_home

REFERENCE = json.loads(Path(__file__).with_name("reference_vectors.json").read_text(encoding="utf-8"))
ENTRIES = {entry["name"]: entry for entry in REFERENCE["vectors"]}


def text_of(entry: dict[str, Any]) -> str:
    return str(entry["text"]) if "text" in entry else entry["repeat"] * entry["times"]


@pytest.fixture(scope="module")
def referenced(real: Embedder) -> Iterator[Embedder]:
    """The model that the reference was made with, if it is in `model/`, whether or not another comes before it."""
    if real.model.id == REFERENCE["model"]:
        yield real
        return
    model = next(
        each for each in manifest.parse((own_home() / manifest.NAME).read_bytes()) if each.id == REFERENCE["model"]
    )
    paths = [own_home() / "model" / model.id / file.path for file in model.files]
    if not all(path.exists() for path in paths):
        pytest.skip(f"the reference vectors are those of {model.id}, and model/ holds {real.model.id} alone")
    embedder = load(LoadedFiles(model, *(path.read_bytes() for path in paths)))
    yield embedder
    embedder.close()


@pytest.mark.parametrize("name", ENTRIES)
def test_a_vector_is_the_one_that_sentence_transformers_makes(referenced: Embedder, name: str) -> None:
    assert referenced.model.max_tokens == REFERENCE["max_tokens"]
    (vector,) = referenced.embed([text_of(ENTRIES[name])])
    np.testing.assert_allclose(vector, ENTRIES[name]["vector"], atol=1e-5)


def test_so_it_is_in_one_batch_of_all_lengths(referenced: Embedder) -> None:
    for vector, entry in zip(
        referenced.embed([text_of(each) for each in ENTRIES.values()]), ENTRIES.values(), strict=True
    ):
        np.testing.assert_allclose(vector, entry["vector"], atol=1e-5, err_msg=entry["name"])


def test_what_means_the_same_is_near_and_what_does_not_is_far(real: Embedder) -> None:
    memory, question, other = real.embed(
        ["Ana takes oat milk in her coffee.", "What does Ana put into her drink?", "The router stands in the attic."]
    )
    assert memory is not None and question is not None and other is not None
    assert memory @ question > real.model.min_similarity > memory @ other


@pytest.mark.parametrize("text", ["", "🥐", "...", "ᚠᚢᚦ", "\ud800"])
def test_the_real_vocabulary_reads_nothing_there_either(real: Embedder, text: str) -> None:
    assert real.embed([text, "milk"])[0] is None
