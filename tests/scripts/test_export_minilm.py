"""The exported graph computes what BERT is defined to compute, in standard operators, with the same bytes each time."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

from scripts import export_minilm
from squirrel_mcp_embeddings.runtime import Session
from tests.house.sources import ROOT
from tests.scripts import tiny_model

Floats = NDArray[np.float64]
PINNED = "f5617be5f33fff015b00ff9ba6026b7219627d330b4c5506c7bcb7cc391a29a4"


@pytest.fixture(scope="module")
def exported() -> bytes:
    return export_minilm.export(tiny_model.safetensors())


def bert(ids: list[int]) -> Floats:
    """The last hidden state (tokens, hidden) by the definition, in double precision and one head after the other."""
    tensors = {name: tensor.astype(np.float64) for name, tensor in tiny_model.tensors().items()}

    def linear(name: str, state: Floats) -> Floats:
        return state @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]

    def norm(name: str, state: Floats) -> Floats:
        centred = state - state.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return scaled * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

    state = np.array([tensors["embeddings.word_embeddings.weight"][each] for each in ids])
    state = state + tensors["embeddings.position_embeddings.weight"][: len(ids)]
    state = norm("embeddings.LayerNorm", state + tensors["embeddings.token_type_embeddings.weight"][0])
    size = tiny_model.HIDDEN // export_minilm.HEADS
    for layer in range(tiny_model.LAYERS):
        prefix = f"encoder.layer.{layer}"
        parts = [linear(f"{prefix}.attention.self.{part}", state) for part in ("query", "key", "value")]
        heads = []
        for start in range(0, tiny_model.HIDDEN, size):
            query, key, value = (part[:, start : start + size] for part in parts)
            weights = np.exp(query @ key.T / math.sqrt(size))
            heads.append(weights / weights.sum(-1, keepdims=True) @ value)
        attended = linear(f"{prefix}.attention.output.dense", np.concatenate(heads, -1))
        state = norm(f"{prefix}.attention.output.LayerNorm", attended + state)
        inner = linear(f"{prefix}.intermediate.dense", state)
        inner = inner * np.vectorize(lambda x: (1 + math.erf(x / math.sqrt(2))) / 2)(inner)
        state = norm(f"{prefix}.output.LayerNorm", linear(f"{prefix}.output.dense", inner) + state)
    return state


@pytest.mark.parametrize("ids", [[3], [3, 7], list(range(16)), [49] * 9])
def test_the_graph_computes_what_bert_is_defined_to_compute(exported: bytes, ids: list[int]) -> None:
    row = np.array([ids], dtype=np.int64)
    (computed,) = Session(exported, 1).run(row, np.ones_like(row))
    np.testing.assert_allclose(computed, bert(ids), atol=1e-5)


def test_padding_and_the_other_texts_of_a_batch_change_nothing(exported: bytes) -> None:
    texts = [[3, 7, 9], [4], [1, 2, 3, 4, 5, 6]]
    ids, mask = np.full((3, 6), 13, dtype=np.int64), np.zeros((3, 6), dtype=np.int64)
    for row, text in enumerate(texts):
        ids[row, : len(text)], mask[row, : len(text)] = text, 1
    computed = Session(exported, 1).run(ids, mask)
    for row, text in enumerate(texts):
        np.testing.assert_allclose(computed[row, : len(text)], bert(text), atol=1e-5)


def test_a_text_that_is_all_padding_does_not_make_the_numbers_break_down(exported: bytes) -> None:
    ids = np.ones((2, 3), dtype=np.int64)
    assert np.isfinite(Session(exported, 1).run(ids, np.zeros_like(ids))).all()


def model_of(exported: bytes) -> Any:
    return onnx.load_model_from_string(exported)


def test_it_is_opset_17_in_ir_8_by_nobody(exported: bytes) -> None:
    model = model_of(exported)
    assert (model.ir_version, [(each.domain, each.version) for each in model.opset_import]) == (8, [("", 17)])
    assert not (model.producer_name or model.producer_version or model.domain or model.doc_string)
    assert not model.metadata_props


def test_every_operator_is_a_standard_one(exported: bytes) -> None:
    assert {node.domain for node in model_of(exported).graph.node} == {""}
    onnx.checker.check_model(model_of(exported), full_check=True)


def test_query_key_and_value_are_one_multiplication_and_the_pooler_is_left_out(exported: bytes) -> None:
    graph = model_of(exported).graph
    shapes = {tensor.name: list(tensor.dims) for tensor in graph.initializer}
    assert shapes["encoder.layer.0.qkv.weight"] == [tiny_model.HIDDEN, 3 * tiny_model.HIDDEN]
    # Merged, two of attention, its output, two of the feed-forward part.
    assert [node.op_type for node in graph.node].count("MatMul") == 6 * tiny_model.LAYERS
    assert not [name for name in shapes if "pooler" in name]


def test_texts_and_tokens_are_of_any_number(exported: bytes) -> None:
    graph = model_of(exported).graph
    shapes = {
        each.name: [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim]
        for each in [*graph.input, *graph.output]
    }
    assert shapes == {
        "input_ids": ["texts", "tokens"],
        "attention_mask": ["texts", "tokens"],
        "last_hidden_state": ["texts", "tokens", tiny_model.HIDDEN],
    }


def test_the_bytes_are_the_same_in_every_process_and_version_of_onnx(exported: bytes, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(tiny_model.safetensors())
    command = [sys.executable, str(ROOT / "scripts/export_minilm.py"), str(tmp_path / "in"), str(tmp_path / "out")]
    subprocess.run(command, check=True, cwd=tmp_path)
    assert (tmp_path / "out").read_bytes() == exported
    # Changes only together with the hash of the real file in model-manifest.json.
    assert hashlib.sha256(exported).hexdigest() == PINNED
