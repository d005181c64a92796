"""How long a cross-encoder takes for twenty texts, by their length.

    python scripts/bench/reranking.py [--rounds 9]

The model has the shape of ms-marco-MiniLM-L-6 and random weights: cost depends on shapes alone.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import cast

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
import onnx
from machine import describe
from onnx import TensorProto, helper, numpy_helper
from random_bert import random_bert

from sqmd.embed.hub import HubFiles
from sqmd.search.rerank import CrossEncoder
from squirrel_mcp_embeddings import model_files
from squirrel_mcp_embeddings.embedder import WORKERS
from squirrel_mcp_embeddings.token_counter import TokenCounter, read_tokenizer

_LAYERS, _HIDDEN, _INNER, _VOCABULARY = 6, 384, 1536, 30_522
_TEXTS = 20
_QUERY = "how is the backup of the notes made"
_WORDS = "the server keeps a copy of each note on a disk that stands in another room and tells nobody its name".split()


class _Made:
    """Stands for a downloaded model."""

    def tokenizer(self) -> bytes:
        return model_files.read_tokenizer(None)

    def weights(self) -> bytes:
        return cross_encoder_weights()

    def beside(self) -> dict[str, bytes]:
        return {}


def cross_encoder_weights() -> bytes:
    """The encoder with random weights, and BERT's head on it: the first token, a layer with tanh, one number."""
    bert = random_bert(layers=_LAYERS, hidden=_HIDDEN, inner=_INNER, vocabulary=_VOCABULARY)
    model = onnx.load_from_string(import_module("scripts.export_minilm").export(bert))
    rng = np.random.default_rng(2)
    graph = model.graph
    for name, values in (
        ("first", np.array(0)),
        ("pooler", rng.standard_normal((_HIDDEN, _HIDDEN)).astype(np.float32)),
        ("head", rng.standard_normal((_HIDDEN, 1)).astype(np.float32)),
    ):
        graph.initializer.append(numpy_helper.from_array(values, name))
    graph.node.extend(
        [
            helper.make_node("Gather", ["last_hidden_state", "first"], ["cls"], axis=1),
            helper.make_node("MatMul", ["cls", "pooler"], ["pooled"]),
            helper.make_node("Tanh", ["pooled"], ["activated"]),
            helper.make_node("MatMul", ["activated", "head"], ["logits"]),
        ]
    )
    del graph.output[:]
    graph.output.append(helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["texts", 1]))
    content: bytes = model.SerializeToString()
    return content


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    print(f"{describe()}\n")
    encoder = CrossEncoder(cast(HubFiles, _Made()), 512)
    counter = TokenCounter(read_tokenizer(model_files.read_tokenizer(None)))
    started = time.perf_counter()
    encoder.scores(_QUERY, ["once"])
    print(f"{'making and loading the model, s':<44}{time.perf_counter() - started:>10.1f}")
    rng = random.Random(1)
    for length in (50, 100, 150, 250, 500):
        texts = [" ".join(rng.choices(_WORDS, k=length)) for _ in range(_TEXTS)]
        tokens = statistics.mean(counter.count_tokens(text) for text in texts)
        times, processor = [], []
        for _ in range(rounds):
            start, spent = time.perf_counter(), time.process_time()
            encoder.scores(_QUERY, texts)
            times.append((time.perf_counter() - start) * 1e3)
            processor.append((time.process_time() - spent) * 1e3)
        row = f"{_TEXTS} texts of {tokens:.0f} tokens, ms"
        halves = min(processor) / WORKERS
        print(f"{row:<44}{statistics.median(times):>10.0f}{min(times):>10.0f}{halves:>10.0f}")
    print(f"median and least of {rounds}; least processor time, divided by the {WORKERS} workers")


if __name__ == "__main__":
    main()
