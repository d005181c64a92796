"""Vectors from an Ollama server, and every way in which it may not give them."""

from __future__ import annotations

import base64
import json
import math
import socket
from collections.abc import Iterator

import numpy as np
import pytest

from sqmd.embed.local import CompanionEmbedder
from sqmd.embed.ollama import OllamaEmbedder
from sqmd.errors import EmbedderDown
from tests.real_model import real_model
from tests.sqmd.embed.ollama_server import Ollama


@pytest.fixture
def ollama() -> Iterator[Ollama]:
    with Ollama().running() as running:
        yield running


@pytest.fixture
def embedder(ollama: Ollama) -> Iterator[OllamaEmbedder]:
    embedder = OllamaEmbedder(ollama.base, "small", batch_size=4)
    yield embedder
    embedder.close()


def expected(ollama: Ollama, text: str) -> np.ndarray:
    vector = np.array(ollama.vector(text))
    return vector / np.linalg.norm(vector)


def failure(embedder: OllamaEmbedder, text: str = "oat milk") -> str:
    with pytest.raises(EmbedderDown) as caught:
        embedder.embed_documents([text])
    said = str(caught.value)
    assert "\n" not in said and said.endswith(".")
    return said


def test_vectors_come_in_batches_in_order_and_of_length_one(ollama: Ollama, embedder: OllamaEmbedder) -> None:
    texts = [f"text {'x' * number}" for number in range(10)]
    vectors = embedder.embed_documents(texts)
    assert [len(each) for each in ollama.inputs] == [4, 4, 2]
    for text, vector in zip(texts, vectors, strict=True):
        assert vector is not None and vector.dtype == np.float32
        np.testing.assert_allclose(vector, expected(ollama, text), atol=1e-6)


def test_the_dimension_is_that_of_the_reply(ollama: Ollama, embedder: OllamaEmbedder) -> None:
    ollama.dimension = 13
    assert not ollama.asked
    embedder.embed_query("oat milk")
    assert embedder.dimension == 13
    assert len(ollama.asked) == 1


def test_the_dimension_can_be_asked_for_first(ollama: Ollama, embedder: OllamaEmbedder) -> None:
    assert embedder.dimension == 8
    assert embedder.dimension == 8
    assert len(ollama.asked) == 1


def test_a_query_goes_out_as_it_was_typed(ollama: Ollama, embedder: OllamaEmbedder) -> None:
    embedder.embed_query('C++ naïve 日本語 "it\'s"')
    assert ollama.asked == [{"model": "small", "input": ['C++ naïve 日本語 "it\'s"'], "truncate": True}]


def test_a_text_without_anything_is_not_sent(ollama: Ollama, embedder: OllamaEmbedder) -> None:
    assert embedder.embed_query(" \n") is None
    assert not ollama.asked
    vectors = embedder.embed_documents(["", "oat milk", "\t"])
    assert [each is None for each in vectors] == [True, False, True]
    assert ollama.inputs == [["oat milk"]]


def test_a_lone_surrogate_harms_nobody(ollama: Ollama, embedder: OllamaEmbedder) -> None:
    assert all(vector is not None for vector in embedder.embed_documents(["oat \ud83e milk", "oat milk"]))
    assert ollama.inputs == [["oat ? milk", "oat milk"]]


def test_what_is_too_long_is_halved_until_it_fits_and_its_batch_is_not_harmed(
    ollama: Ollama, embedder: OllamaEmbedder
) -> None:
    ollama.context = 100
    texts = ["a" * 10, "b" * 350, "c" * 20, "d" * 100]
    vectors = embedder.embed_documents(texts)
    for vector, read in zip(vectors, ["a" * 10, "b" * 87, "c" * 20, "d" * 100], strict=True):
        np.testing.assert_allclose(vector, expected(ollama, read), atol=1e-6)


def test_what_is_refused_at_every_length_ends_with_the_servers_reason(ollama: Ollama, embedder: OllamaEmbedder) -> None:
    ollama.context = 0
    assert failure(embedder, "x" * 1_000) == (
        f"Ollama at {ollama.base} answered 400 for small: the input length exceeds the context length."
    )
    assert len(ollama.asked) < 10


def test_a_server_that_is_down_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        base = f"http://127.0.0.1:{taken.getsockname()[1]}"
        embedder = OllamaEmbedder(base, "small", batch_size=4)
        said = failure(embedder)
    assert said.startswith(f"Ollama cannot be reached at {base} (")
    assert said.endswith("): start it, or set embeddings.backend to onnx.")
    with pytest.raises(EmbedderDown):
        _ = embedder.dimension
    embedder.close()


def test_a_login_is_sent_and_no_message_shows_it(ollama: Ollama) -> None:
    embedder = OllamaEmbedder(ollama.base.replace("://", "://me:s3cret@"), "small", batch_size=4)
    assert embedder.embed_query("oat milk") is not None
    assert ollama.headers[-1]["Authorization"] == "Basic " + base64.b64encode(b"me:s3cret").decode()
    said = []
    for reply in ((404, b""), (500, b""), (200, b"{}"), (400, b"")):
        ollama.reply = lambda _, reply=reply: reply  # type: ignore[misc]
        said.append(failure(embedder))
    embedder.close()
    said.append(failure(embedder))
    for address in ("http://me:s3cret@127.0.0.1:1", "http://me:s3cret@host:port", "ftp://me:s3cret@host"):
        embedder = OllamaEmbedder(address, "small", batch_size=4)
        said.append(failure(embedder))
        embedder.close()
    assert "s3cret" not in "".join(said) and "me:" not in "".join(said)


def test_how_much_the_model_reads_is_for_the_server_to_know() -> None:
    assert OllamaEmbedder("http://127.0.0.1:1", "small", batch_size=4).max_tokens > 1_000_000


def test_a_batch_is_as_large_as_it_is_set(ollama: Ollama) -> None:
    embedder = OllamaEmbedder(ollama.base, "small", batch_size=300)
    embedder.embed_documents(["oat milk"] * 301)
    embedder.close()
    assert [len(each) for each in ollama.inputs] == [300, 1]


def test_it_comes_back_when_the_server_does(ollama: Ollama, embedder: OllamaEmbedder) -> None:
    ollama.reply = lambda _: (503, b"busy")
    assert failure(embedder) == f"Ollama at {ollama.base} answered 503 for small."
    ollama.reply = None
    assert embedder.embed_query("oat milk") is not None


def test_a_model_that_was_not_pulled_is_named_with_the_command(ollama: Ollama) -> None:
    embedder = OllamaEmbedder(ollama.base, "big", batch_size=4)
    assert failure(embedder).endswith("has no model big: run ollama pull big.")
    embedder.close()


def test_no_proxy_of_the_environment_is_asked(
    ollama: Ollama, embedder: OllamaEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert embedder.embed_query("oat milk") is not None


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"<html>", "no list of vectors"),
        (b"[]", "no list of vectors"),
        (b"{}", "no list of vectors"),
        (b'{"embeddings": null}', "not 2 vectors of one length"),
        (b'{"embeddings": []}', "not 2 vectors of one length"),
        (b'{"embeddings": [[1, 2]]}', "not 2 vectors of one length"),
        (b'{"embeddings": [[1, 2], [1, 2], [1, 2]]}', "not 2 vectors of one length"),
        (b'{"embeddings": [[1, 2], [1]]}', "no list of vectors"),
        (b'{"embeddings": [[], []]}', "not 2 vectors of one length"),
        (b'{"embeddings": [["a", "b"], ["c", "d"]]}', "no list of vectors"),
        (b'{"embeddings": [{"a": 1}, {"b": 1}]}', "no list of vectors"),
        (b'{"embeddings": [[1, NaN], [1, 2]]}', "something in them that is no number"),
        (b'{"embeddings": [[1, null], [1, 2]]}', "something in them that is no number"),
        (b'{"embeddings": [[1, Infinity], [1, 2]]}', "something in them that is no number"),
        (b'{"embeddings": [[1e300, 1e300], [1, 2]]}', "something in them that is no number"),
    ],
)
def test_what_is_no_vector_for_each_text_is_typed(
    ollama: Ollama, embedder: OllamaEmbedder, body: bytes, said: str
) -> None:
    ollama.reply = lambda _: (200, body)
    with pytest.raises(EmbedderDown, match=said):
        embedder.embed_documents(["oat milk", "the attic"])


def test_a_dimension_that_changes_is_refused(ollama: Ollama, embedder: OllamaEmbedder) -> None:
    embedder.embed_query("oat milk")
    ollama.dimension = 9
    assert "sent vectors of 9 numbers after such of 8 for small" in failure(embedder)
    assert embedder.dimension == 8


def test_a_vector_of_zeros_is_none(ollama: Ollama, embedder: OllamaEmbedder) -> None:
    ollama.reply = lambda texts: (200, json.dumps({"embeddings": [[0, 0], [3, 4]]}).encode())
    first, second = embedder.embed_documents(["oat milk", "the attic"])
    assert first is None
    np.testing.assert_allclose(second, [0.6, 0.8], atol=1e-6)


def test_the_name_tells_it_from_the_same_model_elsewhere(embedder: OllamaEmbedder) -> None:
    assert embedder.name == "ollama/small"


def test_tokens_are_estimated_on_the_safe_side_without_the_server() -> None:
    embedder = OllamaEmbedder("http://127.0.0.1:1", "small", batch_size=4)
    with real_model():
        for text in ("", "oat milk", "a longer text with some words " * 9):
            assert embedder.count_tokens(text) == math.ceil(CompanionEmbedder().count_tokens(text) * 1.2)
    embedder.close()


def test_closed_it_says_so(ollama: Ollama) -> None:
    embedder = OllamaEmbedder(ollama.base, "small", batch_size=4)
    embedder.embed_query("oat milk")
    embedder.close()
    failure(embedder)
