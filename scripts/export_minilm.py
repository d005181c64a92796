#!/usr/bin/env python3
"""Turns the safetensors file of all-MiniLM-L6-v2 into ONNX, without torch. `export_minilm.py IN.safetensors OUT.onnx`

The graph is BERT's encoder (Devlin et al., 2018) as standard operators of opset 17 in IR 8. Inputs are `input_ids` and
`attention_mask`, int64 (texts, tokens), both dimensions open; the output is `last_hidden_state`, float32 (texts,
tokens, 384). Mean pooling and L2 happen outside. No weight changes its value: matrices are transposed, and those of
query, key and value stand side by side, so that one multiplication does for three.

The same input gives the same bytes, over versions of onnx, protobuf and numpy: model-manifest.json pins them. Hence
raw_data in little endian, attributes sorted, names that are counted, versions that are stated and no producer.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper
from safetensors.numpy import load

# What the tensors' shapes do not say, from the model's config.json: num_attention_heads, layer_norm_eps.
HEADS = 12
EPSILON = 1e-12
OPSET = 17
IR_VERSION = 8

Tensors = dict[str, NDArray[Any]]


class _Graph:
    """Collects nodes and constants; every value that an operator makes is named by operator and number."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def constant(self, name: str, values: Any, kind: int = TensorProto.FLOAT) -> str:
        # Not ascontiguousarray, which makes a scalar one-dimensional.
        array = np.asarray(values, dtype="<i8" if kind == TensorProto.INT64 else "<f4", order="C")
        self.constants.append(helper.make_tensor(name, kind, array.shape, array.tobytes(), raw=True))
        return name

    def add(self, operator: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        """The name of the output; a list of names where there are several."""
        number = len(self.nodes)
        names = [f"{operator}_{number}" + (f"_{n}" if outputs > 1 else "") for n in range(outputs)]
        node = helper.make_node(operator, list(inputs), names, name=f"node_{number}")
        node.attribute.extend(helper.make_attribute(key, attributes[key]) for key in sorted(attributes))
        self.nodes.append(node)
        return names if outputs > 1 else names[0]


def export(safetensors: bytes) -> bytes:
    """The ONNX file for the bytes of a BERT encoder's safetensors file. KeyError for a file without its tensors."""
    tensors = load(safetensors)
    hidden = tensors["embeddings.word_embeddings.weight"].shape[1]
    graph = _Graph()
    mask = _mask(graph)
    shapes = {
        "heads": graph.constant("shape_heads", [0, 0, HEADS, hidden // HEADS], TensorProto.INT64),
        "hidden": graph.constant("shape_hidden", [0, 0, hidden], TensorProto.INT64),
    }
    scalars = {
        "scale": graph.constant("scale", 1 / math.sqrt(hidden // HEADS)),
        "sqrt_two": graph.constant("sqrt_two", math.sqrt(2)),
        "half": graph.constant("half", 0.5),
    }
    state = _embeddings(graph, tensors)
    layers = len({name.split(".")[2] for name in tensors if name.startswith("encoder.layer.")})
    for layer in range(layers):
        prefix = f"encoder.layer.{layer}"
        attended = _attention(graph, tensors, prefix, state, mask, {**shapes, **scalars})
        state = _norm(graph, tensors, f"{prefix}.attention.output.LayerNorm", graph.add("Add", attended, state))
        inner = _linear(graph, tensors, f"{prefix}.intermediate.dense", state)
        outer = _linear(graph, tensors, f"{prefix}.output.dense", _gelu(graph, inner, scalars))
        state = _norm(graph, tensors, f"{prefix}.output.LayerNorm", graph.add("Add", outer, state))
    graph.nodes[-1].output[0] = "last_hidden_state"
    return _serialised(graph, hidden)


def _mask(graph: _Graph) -> str:
    """(texts, 1, 1, tokens): 0 for a token, the lowest float32 for padding, to be added to the scores."""
    one = graph.constant("one", 1)
    lowest = graph.constant("lowest", np.finfo(np.float32).min)
    padding = graph.add("Sub", one, graph.add("Cast", "attention_mask", to=TensorProto.FLOAT))
    axes = graph.constant("axes_mask", [1, 2], TensorProto.INT64)
    return str(graph.add("Mul", graph.add("Unsqueeze", padding, axes), lowest))


def _embeddings(graph: _Graph, tensors: Tensors) -> str:
    """Word, type (all texts are of type 0) and position, summed and normalised."""
    words = graph.constant("words", tensors["embeddings.word_embeddings.weight"])
    kind = graph.constant("type_0", tensors["embeddings.token_type_embeddings.weight"][0])
    positions = graph.constant("positions", tensors["embeddings.position_embeddings.weight"])
    start, end = (
        graph.constant("slice_start", [0], TensorProto.INT64),
        graph.constant("slice_end", [1], TensorProto.INT64),
    )
    # Of the shape only the second number, the tokens.
    tokens = graph.add("Shape", "input_ids", start=1, end=2)
    summed = graph.add("Add", graph.add("Gather", words, "input_ids", axis=0), kind)
    summed = graph.add("Add", summed, graph.add("Slice", positions, start, tokens, start, end))
    return _norm(graph, tensors, "embeddings.LayerNorm", summed)


def _attention(graph: _Graph, tensors: Tensors, prefix: str, state: str, mask: str, known: dict[str, str]) -> str:
    parts = [f"{prefix}.attention.self.{part}" for part in ("query", "key", "value")]
    weight = np.concatenate([tensors[f"{part}.weight"].T for part in parts], axis=1)
    bias = np.concatenate([tensors[f"{part}.bias"] for part in parts])
    merged = _affine(graph, f"{prefix}.qkv", weight, bias, state)
    query, key, value = graph.add("Split", merged, outputs=3, axis=-1)
    query, key, value = (graph.add("Reshape", each, known["heads"]) for each in (query, key, value))
    query = graph.add("Mul", graph.add("Transpose", query, perm=[0, 2, 1, 3]), known["scale"])
    scores = graph.add("MatMul", query, graph.add("Transpose", key, perm=[0, 2, 3, 1]))
    weights = graph.add("Softmax", graph.add("Add", scores, mask), axis=-1)
    mixed = graph.add("MatMul", weights, graph.add("Transpose", value, perm=[0, 2, 1, 3]))
    joined = graph.add("Reshape", graph.add("Transpose", mixed, perm=[0, 2, 1, 3]), known["hidden"])
    return _linear(graph, tensors, f"{prefix}.attention.output.dense", joined)


def _gelu(graph: _Graph, inner: str, known: dict[str, str]) -> str:
    """x/2 (1 + erf(x / sqrt 2)): the exact form (Hendrycks and Gimpel, 2016), which the model was trained with."""
    erf = graph.add("Erf", graph.add("Div", inner, known["sqrt_two"]))
    return str(graph.add("Mul", graph.add("Mul", inner, graph.add("Add", erf, "one")), known["half"]))


def _linear(graph: _Graph, tensors: Tensors, name: str, state: str) -> str:
    return _affine(graph, name, tensors[f"{name}.weight"].T, tensors[f"{name}.bias"], state)


def _affine(graph: _Graph, name: str, weight: NDArray[Any], bias: NDArray[Any], state: str) -> str:
    product = graph.add("MatMul", state, graph.constant(f"{name}.weight", weight))
    return str(graph.add("Add", product, graph.constant(f"{name}.bias", bias)))


def _norm(graph: _Graph, tensors: Tensors, name: str, state: str) -> str:
    weight = graph.constant(f"{name}.weight", tensors[f"{name}.weight"])
    bias = graph.constant(f"{name}.bias", tensors[f"{name}.bias"])
    return str(graph.add("LayerNormalization", state, weight, bias, axis=-1, epsilon=EPSILON))


def _serialised(graph: _Graph, hidden: int) -> bytes:
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
        for name in ("input_ids", "attention_mask")
    ]
    output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["texts", "tokens", hidden])
    made = helper.make_graph(graph.nodes, "bert", inputs, [output], graph.constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
        model.ClearField(field)
    onnx.checker.check_model(model, full_check=True)
    return bytes(model.SerializeToString(deterministic=True))


def main(arguments: list[str]) -> int:
    if len(arguments) != 2:
        print("usage: scripts/export_minilm.py IN.safetensors OUT.onnx", file=sys.stderr)
        return 2
    source, target = map(Path, arguments)
    target.write_bytes(export(source.read_bytes()))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
