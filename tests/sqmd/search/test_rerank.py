"""A cross-encoder that is made here: its scores can be worked out by hand."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from sqmd.config import Config, Paths, Search
from sqmd.embed.hub import HubFiles
from sqmd.errors import ConfigError, EmbedderDown
from sqmd.search import rerank
from sqmd.search.rerank import CrossEncoder
from tests.scripts.hub import Hub
from tests.sqmd.embed.hub_models import PAIR_TOKENIZER, cross_encoder, publish
from tests.squirrel_mcp_embeddings.small_model import small_tokenizer

TOKENIZER = small_tokenizer()
VOCABULARY = TOKENIZER.get_vocab()
MAX_TOKENS = 64


def weights(outputs: int = 1) -> bytes:
    """Scores a pair by 100 for each token of the text (type 1) that is `milk`, 1 for any other, -0.01 for the query's.

    Padding would weigh as much as a million tokens.
    """
    of_text, of_query = (np.ones((len(VOCABULARY), outputs), np.float32) for _ in range(2))
    of_text[VOCABULARY["milk"]] = 100
    of_query *= np.float32(-0.01)
    of_text[VOCABULARY["[PAD]"]] = of_query[VOCABULARY["[PAD]"]] = 1e6
    nodes = [
        helper.make_node("Gather", ["of_text", "input_ids"], ["texts"]),
        helper.make_node("Gather", ["of_query", "input_ids"], ["queries"]),
        helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["types", "last"], ["is_text"]),
        helper.make_node("Unsqueeze", ["mask", "last"], ["is_there"]),
        helper.make_node("Sub", ["one", "is_text"], ["is_query"]),
        helper.make_node("Mul", ["texts", "is_text"], ["a"]),
        helper.make_node("Mul", ["queries", "is_query"], ["b"]),
        helper.make_node("Add", ["a", "b"], ["both"]),
        helper.make_node("Mul", ["both", "is_there"], ["kept"]),
        helper.make_node("ReduceSum", ["kept", "axis"], ["logits"], keepdims=0),
    ]
    constants = {
        "of_text": of_text,
        "of_query": of_query,
        "one": np.float32(1),
        "last": np.array([-1]),
        "axis": np.array([1]),
    }
    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["pairs", "tokens"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    output = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["pairs", outputs])
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "pairs", inputs, [output], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    return model.SerializeToString()


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CrossEncoder]:
    with Hub().running() as hub, pytest.MonkeyPatch.context() as patch:
        patch.setenv("NO_PROXY", "127.0.0.1")
        publish(hub, weights(), tokenizer=PAIR_TOKENIZER)
        encoder = made(hub, tmp_path_factory.mktemp("models"))
        encoder.scores("oat", ["milk"])
        yield encoder
    encoder.close()


def made(hub: Hub, folder: Path, content: bytes | None = None) -> CrossEncoder:
    return CrossEncoder(
        HubFiles(cross_encoder(weights() if content is None else content), folder, hub.base), MAX_TOKENS
    )


def expected(query: str, text: str) -> float:
    """What that model gives: the query counts with the two tokens around it, the text with the one behind it."""
    tokenizer = small_tokenizer()
    tokenizer.no_padding()
    tokenizer.no_truncation()
    asked, read = (tokenizer.encode(each, add_special_tokens=False).tokens for each in (query, text))
    while len(asked) + len(read) + 3 > MAX_TOKENS:
        (read if len(read) >= len(asked) else asked).pop()
    return sum(100 if token == "milk" else 1 for token in read) + 1 - 0.01 * (len(asked) + 2)


TEXTS = ["oat milk", "the window seat", "milk milk milk", "", "milk in the attic is in the router", "x"]


def test_each_text_is_scored_with_the_query_in_the_order_given(encoder: CrossEncoder) -> None:
    scores = encoder.scores("oat milk", TEXTS)
    np.testing.assert_allclose(scores, [expected("oat milk", text) for text in TEXTS], atol=1e-3)


def test_nothing_to_score_is_no_work(encoder: CrossEncoder) -> None:
    assert encoder.scores("oat", []) == []


@given(st.lists(st.sampled_from([*TEXTS, "the attic " * 12, "milk " * 70]), max_size=25))
def test_the_company_makes_no_difference(encoder: CrossEncoder, texts: list[str]) -> None:
    alone = [encoder.scores("oat", [text])[0] for text in texts]
    np.testing.assert_allclose(encoder.scores("oat", texts), alone, atol=1e-2)


@pytest.mark.parametrize(
    ("query", "text"),
    [("oat", "the attic " * 60), ("oat " * 100, "milk"), ("oat " * 100, "milk " * 100), ("oat " * 40, "milk " * 100)],
)
def test_the_longer_of_the_two_loses_its_end(encoder: CrossEncoder, query: str, text: str) -> None:
    np.testing.assert_allclose(encoder.scores(query, [text, "x"])[0], expected(query, text), atol=101)


def test_what_stands_behind_the_end_does_not_count(encoder: CrossEncoder) -> None:
    text = "the attic " * 60
    assert encoder.scores("oat", [text]) == encoder.scores("oat", [text + "milk " * 50])


@pytest.mark.parametrize("odd", ["\ud83e", "\0", "[SEP] [PAD]", "日本語", "🥐" * 50, "x" * 200_000])
def test_any_text_and_any_query_will_do(encoder: CrossEncoder, odd: str) -> None:
    assert len(encoder.scores(odd, [odd, "milk"])) == 2
    assert encoder.scores("oat", [odd, "milk"])[1] == pytest.approx(expected("oat", "milk"), abs=1e-3)


def test_special_tokens_in_a_text_are_text(encoder: CrossEncoder) -> None:
    assert encoder.scores("oat", ["[SEP] milk"])[0] == pytest.approx(expected("oat", "[ sep ] milk"), abs=1e-3)


def test_several_threads_may_ask_at_once(encoder: CrossEncoder) -> None:
    with ThreadPoolExecutor(4) as workers:
        found = list(workers.map(lambda _: encoder.scores("oat", TEXTS * 5), range(12)))
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize("content", [weights(outputs=2), b"no model"], ids=["two classes", "no model"])
def test_a_model_of_another_kind_is_one_sentence(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with Hub().running() as hub:
        publish(hub, content, tokenizer=PAIR_TOKENIZER)
        encoder = made(hub, tmp_path, content)
        with pytest.raises(EmbedderDown):
            encoder.scores("oat", TEXTS)
        encoder.close()


def test_a_hub_that_is_not_there_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    hub = Hub()
    hub.base = "http://127.0.0.1:1"
    with pytest.raises(EmbedderDown, match="The hub cannot be reached"):
        made(hub, tmp_path).scores("oat", TEXTS)


def test_the_configured_model_is_made_without_being_loaded(tmp_path: Path) -> None:
    config = Config(paths=dataclasses.replace(Paths(), model_cache_dir=tmp_path))
    assert isinstance(rerank.make(config, "http://127.0.0.1:1"), CrossEncoder)
    assert not list(tmp_path.iterdir())


def test_a_model_that_is_not_known_is_one_line_with_the_one_that_is() -> None:
    config = Config(search=dataclasses.replace(Search(), rerank_model="gpt"))
    with pytest.raises(ConfigError) as caught:
        rerank.make(config)
    assert str(caught.value) == (
        "search.rerank_model is gpt, which is not known here; known is cross-encoder/ms-marco-MiniLM-L-6-v2."
    )
