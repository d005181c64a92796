"""From texts to vectors, with the small model: what is read, what is not, in which order, beside whom."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Event, current_thread

import numpy as np
import onnx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import numpy_helper

from squirrel_mcp_embeddings.embedder import Embedder, load, pool
from squirrel_mcp_embeddings.errors import EmbeddingFailed, ModelUnavailable
from squirrel_mcp_embeddings.model_files import LoadedFiles
from squirrel_mcp_embeddings.runtime import Session
from tests.squirrel_mcp_embeddings.small_model import DIMENSION, MAX_TOKENS, small_tokenizer, small_weights

# Words of the small tokenizer, and letters, each of which is a token to it.
TEXTS = [
    "the router is in the attic",
    "oat milk",
    "x",
    "the window seat " * 40,
    "a long word: pneumonoultramicroscopicsilicovolcanoconiosis",
    "milk",
    "the attic " * 9,
]


class Gated(Session):
    """A session whose calls from worker threads wait until `gate` is set."""

    def __init__(self, weights: bytes) -> None:
        super().__init__(weights, 1)
        self.gate, self.reached = Event(), Event()

    def run(self, ids: NDArray[np.int64], mask: NDArray[np.int64]) -> NDArray[np.float32]:
        if current_thread().name.startswith("embed"):
            self.reached.set()
            assert self.gate.wait(60)
        return super().run(ids, mask)


@pytest.fixture
def gated(small: LoadedFiles) -> Iterator[tuple[Embedder, Gated]]:
    session = Gated(small.weights)
    embedder = Embedder(small.model, small_tokenizer(), session)
    yield embedder, session
    session.gate.set()
    embedder.close()


def close_to(found: object, expected: object) -> None:
    assert (found is None) == (expected is None)
    if found is not None:
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_every_text_gets_a_vector_of_the_models_length_and_of_norm_one(embedder: Embedder) -> None:
    vectors = embedder.embed(TEXTS)
    assert len(vectors) == len(TEXTS)
    for vector in vectors:
        assert vector is not None
        assert (vector.shape, vector.dtype) == ((DIMENSION,), np.float32)
        assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)


def test_nothing_to_embed_is_no_work(embedder: Embedder) -> None:
    assert embedder.embed([]) == []


def test_vectors_come_in_the_order_of_the_texts_whatever_their_length(embedder: Embedder) -> None:
    alone = [embedder.embed([text])[0] for text in TEXTS]
    for texts, expected in ((TEXTS, alone), (TEXTS[::-1], alone[::-1])):
        for found, wanted in zip(embedder.embed(texts), expected, strict=True):
            close_to(found, wanted)


def test_a_vector_is_the_mean_over_its_own_tokens_only(small: LoadedFiles, embedder: Embedder) -> None:
    tokens = small_tokenizer()
    tokens.no_padding()
    ids = np.array([tokens.encode("oat milk").ids])
    hidden = Session(small.weights, 1).run(ids, np.ones_like(ids))[0]
    mean = hidden.mean(axis=0)
    close_to(embedder.embed(["oat milk", "the attic " * 30])[0], mean / np.linalg.norm(mean))


@given(st.lists(st.sampled_from([*TEXTS, "", "🥐"]), max_size=30))
def test_the_company_makes_no_difference(embedder: Embedder, texts: list[str]) -> None:
    alone = {text: embedder.embed([text])[0] for text in set(texts)}
    for text, vector in zip(texts, embedder.embed(texts), strict=True):
        close_to(vector, alone[text])


def test_more_texts_than_are_sorted_at_a_time_all_get_theirs(embedder: Embedder) -> None:
    texts = [TEXTS[number % 3] + " " + "is " * (number % 7) for number in range(700)]
    vectors = embedder.embed(texts)
    for number in (0, 255, 256, 257, 511, 512, 699):
        close_to(vectors[number], embedder.embed([texts[number]])[0])


@pytest.mark.parametrize(
    "text", ["", " \n\t", "🥐", "!?... -- ()", "\0", "\ufffd", "\ud800", "ᚠᚢᚦ", "☃ 🥐 ᚠ", "é" * 101]
)
def test_a_text_without_a_letter_or_digit_that_the_model_knows_has_no_vector(embedder: Embedder, text: str) -> None:
    assert embedder.embed([text]) == [None]
    first, second = embedder.embed([text, "oat milk"])
    assert first is None
    close_to(second, embedder.embed(["oat milk"])[0])


def test_one_letter_that_is_known_is_enough(embedder: Embedder) -> None:
    assert embedder.embed(["🥐 ᚠ 7"])[0] is not None


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("oat milk\0", "oat milk"),
        ("oat\0 milk", "oat milk"),
        ("oat \ud83e milk", "oat milk"),
        ("\udfff\ud800oat milk", "oat milk"),
        ("  OAT\n\tMílk ", "oat milk"),
    ],
)
def test_what_no_tokenizer_takes_is_cleaned_away_before(embedder: Embedder, text: str, same: str) -> None:
    close_to(embedder.embed([text])[0], embedder.embed([same])[0])


@example(["0ING"])  # the last piece of the vocabulary
@given(st.lists(st.text(st.characters(), max_size=30), max_size=6))
def test_any_text_is_fine_and_none_harms_another(embedder: Embedder, texts: list[str]) -> None:
    vectors = embedder.embed([*texts, "oat milk", *texts])
    close_to(vectors[len(texts)], embedder.embed(["oat milk"])[0])
    for first, second in zip(vectors, vectors[len(texts) + 1 :], strict=False):
        close_to(first, second)


@pytest.mark.parametrize("name", ["SEP", "CLS", "MASK", "PAD", "UNK"])
def test_special_tokens_in_a_text_are_text(embedder: Embedder, name: str) -> None:
    written, spelled = embedder.embed([f"oat [{name}] milk", f"oat [ {name} ] milk"])
    close_to(written, spelled)
    assert embedder.count_tokens(f"[{name}]") > 3


def test_of_a_long_text_the_first_tokens_count(embedder: Embedder) -> None:
    whole = "milk " * (MAX_TOKENS - 2)
    fits, longer = embedder.embed([whole, whole + "the router is in the attic"])
    close_to(fits, longer)
    almost = "milk " * (MAX_TOKENS - 3)
    assert not np.allclose(*embedder.embed([almost, almost + "router"]), atol=1e-5)


def test_a_text_of_millions_of_characters_is_cut_before_it_is_tokenised(embedder: Embedder) -> None:
    text = "the router is in the attic " * 400_000
    close_to(embedder.embed([text])[0], embedder.embed([text[:4_000]])[0])


def test_where_a_long_text_is_cut_there_is_nothing_that_could_have_been_read(embedder: Embedder) -> None:
    """The longest words there are, all unknown, and one letter as the last token that is read."""
    words = ("ᚠ" * 100 + " ") * (MAX_TOKENS - 3)
    last = words + "x"
    assert embedder.embed([last])[0] is not None
    assert embedder.embed([words + "ᚠ x"]) == [None]


def test_tokens_are_counted_with_the_two_around_them_and_beyond_what_is_read(embedder: Embedder) -> None:
    assert embedder.count_tokens("") == 2
    assert embedder.count_tokens("oat milk\0 \ud800") == 4
    assert embedder.count_tokens("milk " * 100_000) == 100_002


def test_it_ends_between_batches_when_it_is_told_to(embedder: Embedder) -> None:
    texts = ["the router is in the attic " * 30] * 40
    calls = iter([False] * 50 + [True] * 100)
    vectors = embedder.embed(texts, stop=lambda: next(calls))
    reached = [vector for vector in vectors if vector is not None]
    assert 0 < len(reached) < len(texts)
    for vector in reached:
        close_to(vector, embedder.embed(texts[:1])[0])
    assert embedder.embed(texts, stop=lambda: True) == [None] * len(texts)


def test_what_was_reached_can_be_told_from_what_cannot_be_read(embedder: Embedder) -> None:
    texts = ["🥐", *["the router is in the attic " * 30] * 40]
    reached: dict[int, object] = {}
    for place, vector in embedder.each(texts, stop=lambda: len(reached) > 3):
        reached[place] = vector
    assert reached[0] is None
    assert len(reached) < len(texts)
    assert all(reached[place] is not None for place in reached if place)


def test_a_query_is_answered_while_a_large_batch_is_under_way(gated: tuple[Embedder, Gated]) -> None:
    embedder, session = gated
    with ThreadPoolExecutor() as pool:
        batch = pool.submit(embedder.embed, ["the router is in the attic " * 30] * 100)
        assert session.reached.wait(60)
        assert embedder.embed(["where is the router"])[0] is not None
        assert not batch.done()
        session.gate.set()
        assert all(vector is not None for vector in batch.result())


def test_several_threads_at_once_get_what_each_would_get_alone(embedder: Embedder) -> None:
    lists = [[f"{text} {number}" for text in TEXTS * 8] for number in range(6)]
    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(embedder.embed, lists))
    for texts, vectors in zip(lists, found, strict=True):
        for vector, alone in zip(vectors, embedder.embed(texts), strict=True):
            close_to(vector, alone)


def test_after_closing_it_says_so(small: LoadedFiles) -> None:
    embedder = load(small)
    running = embedder.each(["the router is in the attic " * 30] * 100)
    next(running)
    embedder.close()
    embedder.close()
    with pytest.raises(EmbeddingFailed):
        list(running)
    for texts in (["oat milk"], ["the attic " * 200] * 10):
        with pytest.raises(EmbeddingFailed):
            embedder.embed(texts)


def test_a_failing_runtime_is_a_typed_error_that_quotes_no_text(small: LoadedFiles) -> None:
    embedder = Embedder(small.model, small_tokenizer(), Session(small_weights(vocabulary=6), 1))
    for texts in (["secret milk"], ["secret milk " * 100] * 10):
        with pytest.raises(EmbeddingFailed) as caught:
            embedder.embed(texts)
        assert caught.value.code == "embedding_failed"
        assert "secret" not in str(caught.value)
        assert caught.value.__context__ is None
    embedder.close()


def test_what_is_no_number_becomes_no_vector(small: LoadedFiles) -> None:
    model = onnx.load_from_string(small.weights)
    for tensor in model.graph.initializer:
        if tensor.name == "words":
            broken = np.full(numpy_helper.to_array(tensor).shape, np.nan, np.float32)
            tensor.CopyFrom(numpy_helper.from_array(broken, tensor.name))
    embedder = load(replace(small, weights=model.SerializeToString()))
    with pytest.raises(EmbeddingFailed):
        embedder.embed(["oat milk"])
    embedder.close()


def test_a_tokenizer_that_is_none_means_no_model(small: LoadedFiles) -> None:
    with pytest.raises(ModelUnavailable) as caught:
        load(replace(small, tokenizer=b"{}"))
    assert caught.value.reason == "runtime"


def test_padding_has_no_weight_in_the_mean() -> None:
    hidden = np.array([[[3, 0], [0, 4], [100, 100]]], np.float32)
    np.testing.assert_allclose(pool(hidden, np.array([[1, 1, 0]])), [[0.6, 0.8]], rtol=1e-6)
