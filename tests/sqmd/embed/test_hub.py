"""Models by name: downloaded once, checked always, used as each wants it."""

from __future__ import annotations

import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from sqmd.embed import download
from sqmd.embed.catalog import EmbeddingModel
from sqmd.embed.hub import Hub as Source
from sqmd.embed.local import OnnxEmbedder
from sqmd.errors import EmbedderDown
from squirrel_mcp_embeddings.embedder import pool
from squirrel_mcp_embeddings.runtime import Session
from tests.scripts.hub import Hub
from tests.sqmd.embed.hub_models import (
    COMMIT,
    REPOSITORY,
    TOKENIZER,
    WEIGHTS,
    embedding_model,
    in_two_files,
    pinned,
    publish,
)
from tests.squirrel_mcp_embeddings.small_model import DIMENSION, small_tokenizer

BASE = f"/{REPOSITORY}/resolve/{COMMIT}"
ModelOf = Callable[..., OnnxEmbedder]


@pytest.fixture
def model_of(hub: Hub, tmp_path: Path) -> ModelOf:
    """An embedder of the hub's model with these differences."""

    def made(**others: object) -> OnnxEmbedder:
        model = embedding_model(**others)
        return OnnxEmbedder(
            Source(model, tmp_path / "models", hub.base),
            latin_only=model.latin_only,
            document_prefix=model.document_prefix,
            query_prefix=model.query_prefix,
        )

    return made


def files_of(model: EmbeddingModel, cache: Path, hub: Hub) -> Path:
    return Source(model, cache, hub.base).folder


def paths(hub: Hub) -> list[str]:
    return [path.removeprefix(BASE) for path, _ in hub.asked]


def hidden(text: str) -> np.ndarray:
    """The hidden states of the text's tokens, (t, dimension)."""
    tokenizer = small_tokenizer()
    tokenizer.no_padding()
    ids = np.array([tokenizer.encode(text).ids])
    return Session(WEIGHTS, 1).run(ids, np.ones_like(ids))[0]


def unit(vector: np.ndarray) -> np.ndarray:
    return vector / np.linalg.norm(vector)


def test_a_model_is_downloaded_when_it_is_first_needed_and_never_again(
    hub: Hub, model_of: ModelOf, capsys: pytest.CaptureFixture[str]
) -> None:
    publish(hub)
    embedder = model_of()
    assert (embedder.name, embedder.dimension) == (REPOSITORY, DIMENSION)
    assert not hub.asked
    first = embedder.embed_query("oat milk")
    assert sorted(paths(hub)) == ["/onnx/model.onnx", "/tokenizer.json"]
    output = capsys.readouterr()
    assert output.out == ""
    assert f"Downloading model.onnx of {REPOSITORY} to " in output.err
    hub.answer = 500
    np.testing.assert_array_equal(model_of().embed_query("oat milk"), first)
    assert len(hub.asked) == 2


def test_counting_tokens_brings_the_tokenizer_alone(hub: Hub, model_of: ModelOf) -> None:
    publish(hub)
    embedder = model_of()
    assert embedder.count_tokens("oat milk") == 4
    assert paths(hub) == ["/tokenizer.json"]


def test_counting_does_not_wait_for_weights_that_are_on_their_way(hub: Hub, model_of: ModelOf) -> None:
    publish(hub)
    embedder = model_of()
    with embedder._loading:
        assert embedder.count_tokens("oat milk") == 4


def test_redirects_to_another_host_are_followed(hub: Hub, model_of: ModelOf) -> None:
    publish(hub)
    hub.redirects = True
    assert model_of().embed_query("oat milk") is not None


def test_a_connection_that_breaks_is_taken_up_where_it_ended(hub: Hub, model_of: ModelOf) -> None:
    publish(hub)
    hub.break_after = [1_000, 50_000]
    assert model_of().embed_query("oat milk") is not None
    ranges = [asked for path, asked in hub.asked if path.endswith("model.onnx")]
    assert ranges == [None, "bytes=1000-", "bytes=51000-"]


def test_a_download_that_was_stopped_goes_on_in_another_process(hub: Hub, model_of: ModelOf, tmp_path: Path) -> None:
    publish(hub)
    part = files_of(embedding_model(), tmp_path / "models", hub) / "onnx" / "model.onnx.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(WEIGHTS[:5_000])
    assert model_of().embed_query("oat milk") is not None
    assert (f"{BASE}/onnx/model.onnx", "bytes=5000-") in hub.asked
    assert not part.exists()


@pytest.mark.parametrize("left", [b"x" * 5_000, b"x" * len(WEIGHTS), b"x" * (len(WEIGHTS) + 10)])
def test_a_part_of_something_else_is_thrown_away(hub: Hub, model_of: ModelOf, tmp_path: Path, left: bytes) -> None:
    publish(hub)
    part = files_of(embedding_model(), tmp_path / "models", hub) / "onnx" / "model.onnx.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(left)
    assert model_of().embed_query("oat milk") is not None


def test_a_server_that_ignores_ranges_is_fine(hub: Hub, model_of: ModelOf) -> None:
    publish(hub)
    hub.ranges = False
    hub.break_after = [1_000]
    assert model_of().embed_query("oat milk") is not None


@pytest.mark.parametrize(
    "sent", [b"<html>sign in</html>", WEIGHTS[:-1] + b"!", WEIGHTS + b"more", b""], ids=["page", "bit", "more", "none"]
)
def test_what_is_not_the_pinned_file_is_not_kept(hub: Hub, model_of: ModelOf, tmp_path: Path, sent: bytes) -> None:
    publish(hub, weights=sent)
    with pytest.raises(EmbedderDown, match=r"model\.onnx of squirrels/small is not the file that sqmd knows"):
        model_of().embed_query("oat milk")
    assert not list(tmp_path.rglob("model.onnx*"))
    publish(hub)
    assert model_of().embed_query("oat milk") is not None


def test_a_file_that_was_altered_on_disk_is_refused_and_named(hub: Hub, model_of: ModelOf, tmp_path: Path) -> None:
    publish(hub)
    assert model_of().embed_query("oat milk") is not None
    weights = files_of(embedding_model(), tmp_path / "models", hub) / "onnx" / "model.onnx"
    weights.write_bytes(WEIGHTS[:-1] + b"!")
    with pytest.raises(EmbedderDown, match=r"model\.onnx is not the file that was downloaded: delete it"):
        model_of().embed_query("oat milk")
    weights.unlink()
    assert model_of().embed_query("oat milk") is not None


def test_a_hub_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        base = f"http://127.0.0.1:{taken.getsockname()[1]}"
        embedder = OnnxEmbedder(Source(embedding_model(), tmp_path, base))
        with pytest.raises(EmbedderDown) as caught:
            embedder.embed_query("oat milk")
    assert str(caught.value).startswith("The hub cannot be reached to download squirrels/small (")
    assert str(caught.value).count(". ") == 0 and "\n" not in str(caught.value)


@pytest.mark.parametrize("status", [401, 404, 429, 503])
def test_a_hub_that_refuses_is_one_sentence(hub: Hub, model_of: ModelOf, status: int) -> None:
    hub.answer = status
    with pytest.raises(EmbedderDown, match=rf"The hub answered {status} for .* of squirrels/small: try again later"):
        model_of().embed_query("oat milk")


def test_redirects_without_end_are_one_sentence(hub: Hub, model_of: ModelOf) -> None:
    hub.redirects_for_ever = True
    with pytest.raises(EmbedderDown, match="The hub cannot be reached"):
        model_of().embed_query("oat milk")


def test_a_proxy_that_is_none_is_one_sentence(hub: Hub, model_of: ModelOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "carrier-pigeon://10.0.0.1")
    with pytest.raises(EmbedderDown, match="proxy"):
        model_of().embed_query("oat milk")


def test_a_folder_that_cannot_be_written_is_one_sentence(hub: Hub, tmp_path: Path) -> None:
    publish(hub)
    (tmp_path / "file").write_text("")
    embedder = OnnxEmbedder(Source(embedding_model(), tmp_path / "file", hub.base))
    with pytest.raises(EmbedderDown, match="squirrels/small cannot be kept in "):
        embedder.embed_query("oat milk")


def test_several_at_once_download_it_once(hub: Hub, model_of: ModelOf) -> None:
    publish(hub)
    embedders = [model_of() for _ in range(4)]
    with ThreadPoolExecutor(4) as workers:
        vectors = list(workers.map(lambda each: each.embed_query("oat milk"), embedders))
    assert all(vector is not None for vector in vectors)
    assert len(hub.asked) == 2


def test_another_commit_lies_in_a_folder_of_its_own(hub: Hub, tmp_path: Path) -> None:
    other = embedding_model(commit="f" * 40)
    assert files_of(other, tmp_path, hub) != files_of(embedding_model(), tmp_path, hub)


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_each_model_is_pooled_its_own_way(hub: Hub, model_of: ModelOf, pooling: str) -> None:
    publish(hub)
    states = hidden("the router is in the attic")
    expected = unit(states.mean(axis=0) if pooling == "mean" else states[0])
    # Beside a longer one, so that there is padding.
    found = model_of(pooling=pooling).embed_documents(["the router is in the attic", "oat milk " * 20])
    np.testing.assert_allclose(found[0], expected, atol=1e-5)


def test_the_first_token_is_taken_whatever_the_mask_of_the_others() -> None:
    states = np.arange(12, dtype=np.float32).reshape(1, 3, 4) + 1
    np.testing.assert_allclose(pool(states, np.array([[1, 1, 0]]), "cls")[0], unit(states[0, 0]), rtol=1e-6)


def test_queries_and_documents_get_the_prefixes_of_the_training(hub: Hub, model_of: ModelOf) -> None:
    publish(hub)
    embedder = model_of(document_prefix="window ", query_prefix="seat ")
    documents = embedder.embed_documents(["oat milk", "the attic"])
    query = embedder.embed_query("oat milk")
    np.testing.assert_allclose(documents[0], unit(hidden("window oat milk").mean(axis=0)), atol=1e-5)
    np.testing.assert_allclose(query, unit(hidden("seat oat milk").mean(axis=0)), atol=1e-5)


@pytest.mark.parametrize("text", ["", " \n", "🥐", "--- !", "日本語だけ", "только русский"])
def test_a_prefix_alone_is_no_text(hub: Hub, model_of: ModelOf, text: str) -> None:
    publish(hub)
    embedder = model_of(document_prefix="window ", query_prefix="seat ")
    assert embedder.embed_documents([text, "oat milk"])[0] is None
    assert embedder.embed_query(text) is None


def test_a_multilingual_model_reads_every_script(hub: Hub, model_of: ModelOf) -> None:
    publish(hub)
    # The small tokenizer knows no such letter, but the one x: what counts is that the text was not kept from it.
    text = "日本語だけ日本語だけ x"
    assert model_of().embed_query(text) is None
    assert model_of(latin_only=False).embed_query(text) is not None


def test_many_texts_come_back_in_order(hub: Hub, model_of: ModelOf) -> None:
    publish(hub)
    embedder = model_of()
    texts = [("oat milk " * (number % 9 + 1)).strip() if number % 5 else "" for number in range(300)]
    vectors = embedder.embed_documents(texts)
    assert [vector is None for vector in vectors] == [not text for text in texts]
    np.testing.assert_allclose(vectors[17], embedder.embed_documents([texts[17]])[0], atol=1e-5)


def test_weights_in_a_file_of_their_own_are_downloaded_checked_and_used(
    hub: Hub, model_of: ModelOf, tmp_path: Path
) -> None:
    graph, data = in_two_files(tmp_path)
    publish(hub, graph, {"model.onnx_data": data})
    expected = unit(hidden("oat milk").mean(axis=0))
    beside = (pinned("onnx/model.onnx_data", data),)
    two = {"weights": pinned("onnx/model.onnx", graph), "beside": beside}
    np.testing.assert_allclose(model_of(**two).embed_query("oat milk"), expected, atol=1e-5)
    stored = files_of(embedding_model(**two), tmp_path / "models", hub) / "onnx" / "model.onnx_data"
    stored.write_bytes(data[:-1] + b"!")
    with pytest.raises(EmbedderDown, match="onnx_data is not the file that was downloaded"):
        model_of(**two).embed_query("oat milk")
    stored.write_bytes(b"")
    with pytest.raises(EmbedderDown, match="onnx_data cannot be read"):
        model_of(**two).embed_query("oat milk")


def test_a_file_that_is_no_model_is_one_sentence(hub: Hub, model_of: ModelOf) -> None:
    publish(hub, weights=b"no model")
    with pytest.raises(EmbedderDown, match="The model cannot be run on this machine"):
        model_of(weights=pinned("onnx/model.onnx", b"no model")).embed_query("oat milk")


def test_a_tokenizer_that_is_none_is_one_sentence(hub: Hub, model_of: ModelOf) -> None:
    publish(hub)
    hub.files[f"{BASE}/tokenizer.json"] = b"{}"
    embedder = model_of(tokenizer=pinned("tokenizer.json", b"{}"))
    with pytest.raises(EmbedderDown):
        embedder.count_tokens("oat milk")


def test_a_model_of_another_dimension_than_the_table_says_is_one_sentence(hub: Hub, model_of: ModelOf) -> None:
    publish(hub)
    with pytest.raises(EmbedderDown, match="squirrels/small computes 48 numbers where 96 are expected"):
        model_of(dimension=96).embed_query("oat milk")


def test_a_model_that_was_let_go_of_says_so(hub: Hub, model_of: ModelOf) -> None:
    publish(hub)
    embedder = model_of()
    assert embedder.embed_query("oat milk") is not None
    embedder.close()
    embedder.close()
    with pytest.raises(EmbedderDown, match="let go of"):
        embedder.embed_query("oat milk")


def test_nothing_that_is_there_is_asked_for(hub: Hub, tmp_path: Path) -> None:
    folder = files_of(embedding_model(), tmp_path, hub)
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_bytes(TOKENIZER)
    download.bring(embedding_model(), [embedding_model().tokenizer], folder, hub.base)
    assert not hub.asked
    assert not (folder / ".lock").exists()
