"""An ONNX file taken apart without a protobuf library, checked against one."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper

from squirrel_mcp_embeddings.model_files import LoadedFiles
from squirrel_mcp_embeddings.onnx_parts import LARGE, split


def file_with(*tensors: onnx.TensorProto) -> bytes:
    """A model of one node that holds these constants."""
    node = helper.make_node("Identity", ["in"], ["out"])
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("in", "out")]
    graph = helper.make_graph([node], "graph", ends[:1], ends[1:], list(tensors))
    model = helper.make_model(graph, producer_name="a test", ir_version=8)
    model.metadata_props.add(key="after", value="the graph")
    return bytes(model.SerializeToString())


def tensor(count: int, dtype: type[np.generic] = np.float32, name: str = "weight") -> onnx.TensorProto:
    return numpy_helper.from_array(np.arange(count).astype(dtype), name)


def test_large_tensors_are_views_with_the_values_that_the_library_reads(small: LoadedFiles) -> None:
    parts = split(small.weights)
    expected = {
        each.name: numpy_helper.to_array(each) for each in onnx.load_from_string(small.weights).graph.initializer
    }
    assert parts.tensors
    for name, found in parts.tensors.items():
        assert not found.flags.owndata
        np.testing.assert_array_equal(found, expected[name], strict=True)


def test_what_is_left_is_the_same_model_with_its_tensors_elsewhere(small: LoadedFiles) -> None:
    parts = split(small.weights)
    left, model = onnx.load_from_string(parts.graph), onnx.load_from_string(small.weights)
    for each in left.graph.initializer:
        if each.name in parts.tensors:
            assert (each.data_location, len(each.external_data)) == (TensorProto.EXTERNAL, 1)
            each.CopyFrom(numpy_helper.from_array(parts.tensors[each.name], each.name))
    assert left == model
    assert len(parts.graph) < len(small.weights) / 4


def test_small_tensors_and_other_types_stay() -> None:
    file = file_with(tensor(LARGE // 4 - 1), tensor(LARGE, np.int64, "shape"), tensor(LARGE, np.float16, "half"))
    assert split(file) == (file, {})


def test_tensors_that_are_not_held_as_raw_bytes_stay() -> None:
    file = file_with(helper.make_tensor("weight", TensorProto.FLOAT, [LARGE], [0.5] * LARGE))
    assert split(file) == (file, {})


def test_a_tensor_that_already_lies_elsewhere_stays() -> None:
    elsewhere = tensor(LARGE)
    elsewhere.data_location = TensorProto.EXTERNAL
    file = file_with(elsewhere)
    assert split(file) == (file, {})


def test_a_tensor_whose_data_does_not_fit_its_shape_stays_for_the_runtime_to_refuse() -> None:
    wrong = tensor(LARGE)
    wrong.dims[0] += 1
    file = file_with(wrong)
    assert split(file) == (file, {})


def test_a_shape_in_the_form_that_nobody_writes_stays() -> None:
    raw = tensor(LARGE).SerializeToString()
    # dims is field 1: tag 08 and a number for each, or tag 0a, a length and all numbers.
    assert raw[:3] == b"\x08\x80\x08"
    packed = b"\x0a\x02" + raw[1:]
    other = onnx.TensorProto.FromString(packed)
    assert other == tensor(LARGE)
    graph = b"\x2a" + _varint(len(packed)) + packed
    file = b"\x3a" + _varint(len(graph)) + graph
    assert split(file) == (file, {})


def _varint(value: int) -> bytes:
    return bytes([value & 0x7F | 0x80]) + _varint(value >> 7) if value > 0x7F else bytes([value])


@pytest.mark.parametrize(
    "file",
    [b"\x3a", b"\x3a\x05abc", b"\x3b", b"\x80" * 11, b"\x3a\xff\xff\xff\xff\x0f", b"\x09abc"],
    ids=["no length", "cut off", "a group", "no end of a number", "longer than the file", "half a double"],
)
def test_what_is_no_protobuf_message_is_refused(file: bytes) -> None:
    with pytest.raises(ValueError, match="not an ONNX file"):
        split(file)


@given(st.binary(max_size=200))
def test_any_bytes_are_split_or_refused(file: bytes) -> None:
    with suppress(ValueError):
        split(file)


@given(st.data())
def test_a_damaged_file_is_split_or_refused(data: st.DataObject) -> None:
    damaged = bytearray(file_with(tensor(LARGE)))
    at = data.draw(st.integers(0, len(damaged) - 1))
    damaged[at] = data.draw(st.integers(0, 255))
    with suppress(ValueError):
        split(bytes(damaged))
