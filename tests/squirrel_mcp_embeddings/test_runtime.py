"""The runtime: it phones nobody, says nothing, keeps one copy of the weights and fails in a typed way."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.external_data_helper import convert_model_to_external_data

from squirrel_mcp_embeddings.errors import EmbeddingFailed, ModelUnavailable
from squirrel_mcp_embeddings.model_files import LoadedFiles
from squirrel_mcp_embeddings.runtime import Session
from tests.squirrel_mcp_embeddings import without_sockets
from tests.squirrel_mcp_embeddings.small_model import DIMENSION

IDS = np.array([[2, 7, 9, 3], [2, 8, 3, 0]], np.int64)
MASK = np.array([[1, 1, 1, 1], [1, 1, 1, 0]], np.int64)
CHILD = Path(without_sockets.__file__)


def start(what: str, weights: Path, home: Path) -> subprocess.Popen[str]:
    """A child in an empty home of its own, on no build server, told in vain to leave telemetry on."""
    home.mkdir()
    environ = {name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS", "TF_BUILD")}
    environ |= {
        "HOME": str(home),
        "USERPROFILE": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "ORT_DISABLE_TELEMETRY": "0",
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
    }
    return subprocess.Popen(
        [sys.executable, str(CHILD), what, str(weights)],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in without_sockets.MACHINES,
    reason="needs seccomp, on a machine whose call numbers are known",
)
def test_no_connection_is_tried_and_nothing_is_left_in_the_home(small: LoadedFiles, tmp_path: Path) -> None:
    weights = tmp_path / "model.onnx"
    weights.write_bytes(small.weights)
    ours = start("ours", weights, tmp_path / "ours")
    assert ours.stdout is not None
    assert ours.stdout.readline() == "ready\n"
    # The runtime as it comes is the clock: ours runs for longer than it takes that one to ask for a socket.
    plain = start("plain", weights, tmp_path / "plain")
    assert plain.wait() == -signal.SIGSYS, "the runtime no longer tries to connect by itself: this test shows nothing"
    plain.communicate()
    assert ours.poll() is None
    output, errors = ours.communicate()
    assert (ours.returncode, output, errors) == (0, "", "")
    assert any((tmp_path / "plain").rglob("*"))
    assert not any((tmp_path / "ours").rglob("*"))


def test_only_the_small_part_of_the_package_is_loaded_before_a_model_is() -> None:
    program = (
        "import sys, squirrel_mcp_embeddings, squirrel_mcp_embeddings.errors, squirrel_mcp_embeddings.script;"
        "print({'onnxruntime', 'tokenizers', 'numpy'} & set(sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "set()\n"


@pytest.mark.parametrize(
    ("missing", "said"), [("onnxruntime", "runtime"), ("tokenizers", "runtime"), ("something_else", "loaded")]
)
def test_where_a_library_is_not_installed_there_is_no_model_and_the_reason_is_runtime(
    missing: str, said: str, small: LoadedFiles, tmp_path: Path
) -> None:
    program = f"""
import pathlib, sys
sys.modules["{missing}"] = None
from squirrel_mcp_embeddings import manifest
from squirrel_mcp_embeddings.embedder import load
from squirrel_mcp_embeddings.errors import ModelUnavailable
from squirrel_mcp_embeddings.model_files import LoadedFiles, own_home
model = manifest.parse((own_home() / manifest.NAME).read_bytes())[0]
try:
    load(LoadedFiles(model, *(pathlib.Path(each).read_bytes() for each in sys.argv[1:])))
    print("loaded")
except ModelUnavailable as error:
    print(error.reason)
"""
    files = {"model.onnx": small.weights, "tokenizer.json": small.tokenizer}
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    command = [sys.executable, "-c", program, *(str(tmp_path / name) for name in files)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"{said}\n"


def test_the_result_is_the_last_hidden_state(small: LoadedFiles) -> None:
    hidden = Session(small.weights, 1).run(IDS, MASK)
    assert (hidden.shape, hidden.dtype) == ((2, 4, DIMENSION), np.float32)
    np.testing.assert_allclose(hidden, plain_session(small.weights).run(None, feed())[0], atol=1e-6)


def test_threads_make_no_difference_to_the_result(small: LoadedFiles) -> None:
    one, two = (Session(small.weights, threads).run(IDS, MASK) for threads in (1, 2))
    np.testing.assert_allclose(one, two, atol=1e-6)


def test_nothing_of_the_bytes_is_used_once_a_session_is_made(small: LoadedFiles) -> None:
    """Else the views into them would have to be kept, and with them a second copy of the weights."""
    weights = bytearray(small.weights)
    session = Session(weights, 1)  # type: ignore[arg-type]
    before = session.run(IDS, MASK)
    weights[:] = b"\x7f" * len(weights)
    np.testing.assert_array_equal(session.run(IDS, MASK), before)


def test_a_model_that_wants_token_types_gets_zeros(small: LoadedFiles) -> None:
    model = onnx.load_from_string(small.weights)
    model.graph.input.append(helper.make_tensor_value_info("token_type_ids", TensorProto.INT64, ["texts", "tokens"]))
    with_types = Session(model.SerializeToString(), 1).run(IDS, MASK)
    np.testing.assert_array_equal(with_types, Session(small.weights, 1).run(IDS, MASK))


def test_token_types_are_those_that_are_given(small: LoadedFiles) -> None:
    model = onnx.load_from_string(small.weights)
    model.graph.input.append(helper.make_tensor_value_info("token_type_ids", TensorProto.INT64, ["texts", "tokens"]))
    model.graph.node.append(helper.make_node("Identity", ["token_type_ids"], ["types"]))
    del model.graph.output[:]
    model.graph.output.append(helper.make_tensor_value_info("types", TensorProto.INT64, ["texts", "tokens"]))
    session = Session(model.SerializeToString(), 1)
    np.testing.assert_array_equal(session.run(IDS, MASK, MASK * 3), MASK * 3)


def test_the_hidden_state_is_taken_also_where_another_output_comes_first(small: LoadedFiles) -> None:
    model = onnx.load_from_string(small.weights)
    model.graph.node.append(helper.make_node("ReduceMean", ["last_hidden_state"], ["sentence_embedding"], axes=[1]))
    hidden = model.graph.output.pop()
    model.graph.output.append(helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, None))
    model.graph.output.append(hidden)
    np.testing.assert_allclose(
        Session(model.SerializeToString(), 1).run(IDS, MASK), Session(small.weights, 1).run(IDS, MASK), atol=1e-6
    )


def test_weights_may_stand_in_a_file_of_their_own(small: LoadedFiles, tmp_path: Path) -> None:
    model = onnx.load_from_string(small.weights)
    convert_model_to_external_data(model, location="model.onnx_data", size_threshold=1024)
    onnx.save(model, tmp_path / "model.onnx")
    graph = (tmp_path / "model.onnx").read_bytes()
    data = bytearray((tmp_path / "model.onnx_data").read_bytes())
    session = Session(graph, 1, beside={"model.onnx_data": data})  # type: ignore[dict-item]
    data[:] = b"\x7f" * len(data)
    np.testing.assert_allclose(session.run(IDS, MASK), Session(small.weights, 1).run(IDS, MASK), atol=1e-6)
    with pytest.raises(ModelUnavailable):
        Session(graph, 1)


@pytest.mark.parametrize("damage", ["empty", "no protobuf", "cut off", "no graph"])
def test_what_is_no_model_is_refused_without_a_word(
    damage: str, small: LoadedFiles, capfd: pytest.CaptureFixture[str]
) -> None:
    weights = {
        "empty": b"",
        "no protobuf": b"<!DOCTYPE html>",
        "cut off": small.weights[:-1000],
        "no graph": onnx.ModelProto(ir_version=8).SerializeToString(),
    }[damage]
    with pytest.raises(ModelUnavailable) as caught:
        Session(weights, 1)
    assert caught.value.reason == "runtime"
    assert capfd.readouterr() == ("", "")


def test_a_failure_of_the_runtime_is_typed_and_quotes_nothing(
    small: LoadedFiles, capfd: pytest.CaptureFixture[str]
) -> None:
    session = Session(small.weights, 1)
    with pytest.raises(EmbeddingFailed) as caught:
        session.run(IDS + 987_654, MASK)
    assert "9876" not in str(caught.value)
    assert caught.value.__context__ is None
    assert capfd.readouterr() == ("", "")


def feed() -> dict[str, np.ndarray]:
    return {"input_ids": IDS, "attention_mask": MASK}


def plain_session(weights: bytes):
    """The runtime's own way, weights and all from one file."""
    import onnxruntime

    return onnxruntime.InferenceSession(weights, providers=["CPUExecutionProvider"])
