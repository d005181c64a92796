"""An ONNX file as two parts: the graph, and the large tensors as views into the file's bytes.

A runtime that gets the whole file parses every weight into a copy of its own. One that gets the parts uses the
views as they are. Only as much of protobuf is read here as that takes: fields, lengths and varints
(protobuf.dev/programming-guides/encoding); what a field means is in onnx.proto of onnx/onnx.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LARGE = 1024  # bytes; what is smaller stays in the graph: shapes and constants, which optimisers want to see

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_MODEL_GRAPH = 7
_GRAPH_INITIALIZER = 5
_DIMS, _DATA_TYPE, _NAME, _RAW_DATA, _EXTERNAL_DATA, _DATA_LOCATION = 1, 2, 8, 9, 13, 14
_KEY, _VALUE = 1, 2
_FLOAT = 1
_EXTERNAL = 1


class Parts(NamedTuple):
    """`graph` is an ONNX file whose large tensors are said to lie elsewhere: in `tensors`, by name."""

    graph: bytes
    tensors: dict[str, NDArray[np.float32]]


class _Field(NamedTuple):
    number: int
    wire: int
    whole: memoryview  # tag included: what is copied when the field stays
    value: memoryview  # of a varint, its bytes


def split(file: bytes) -> Parts:
    """Take float32 tensors of `LARGE` bytes and more out of an ONNX file; the views keep `file` alive.

    ValueError for bytes that are no protobuf message. Tensors held in other ways than as raw data stay where they are.
    """
    tensors: dict[str, NDArray[np.float32]] = {}
    model: list[bytes | memoryview] = []
    for field in _fields(memoryview(file)):
        if field.number == _MODEL_GRAPH and field.wire == _BYTES:
            graph = b"".join(_without_large(field.value, tensors))
            model.append(_delimited(_MODEL_GRAPH, graph))
        else:
            model.append(field.whole)
    return Parts(b"".join(model), tensors)


def _without_large(graph: memoryview, tensors: dict[str, NDArray[np.float32]]) -> Iterator[bytes | memoryview]:
    for field in _fields(graph):
        taken = None
        if field.number == _GRAPH_INITIALIZER and field.wire == _BYTES and len(field.value) >= LARGE:
            taken = _taken_out(field.value, tensors)
        yield field.whole if taken is None else _delimited(_GRAPH_INITIALIZER, taken)


def _taken_out(tensor: memoryview, tensors: dict[str, NDArray[np.float32]]) -> bytes | None:
    """The tensor without its data, which goes to `tensors`; None for one that stays."""
    dims: list[int] = []
    kind, name, data = 0, "", None
    kept: list[bytes | memoryview] = []
    for field in _fields(tensor):
        if field.number == _RAW_DATA:
            data = field.value
            continue
        if field.number == _DATA_LOCATION:
            return None
        if field.number == _DIMS:
            if field.wire != _VARINT:  # all in one field, which is allowed and which nobody does
                return None
            dims.append(_varint(field.value, 0)[0])
        elif field.number == _DATA_TYPE:
            kind = _varint(field.value, 0)[0]
        elif field.number == _NAME:
            name = bytes(field.value).decode("utf-8")
        kept.append(field.whole)
    if kind != _FLOAT or data is None or len(data) < LARGE or len(data) != 4 * prod(dims):
        return None
    tensors[name] = np.frombuffer(data, dtype="<f4").reshape(dims)
    # Never opened: the runtime looks the name up among the tensors that it was handed.
    place = _delimited(_KEY, b"location") + _delimited(_VALUE, b"in memory")
    kept += [_delimited(_EXTERNAL_DATA, place), bytes([_DATA_LOCATION << 3 | _VARINT, _EXTERNAL])]
    return b"".join(kept)


def _fields(message: memoryview) -> Iterator[_Field]:
    at = 0
    while at < len(message):
        start = at
        tag, at = _varint(message, at)
        wire = tag & 7
        if wire == _VARINT:
            length = _varint(message, at)[1] - at
        elif wire == _BYTES:
            length, at = _varint(message, at)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise ValueError("not an ONNX file: a field of unknown kind")
        value = message[at : at + length]
        if len(value) != length:
            raise ValueError("not an ONNX file: it ends inside a field")
        at += length
        yield _Field(tag >> 3, wire, message[start:at], value)


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    """The number at `at`, and where it ends."""
    value = shift = 0
    while at < len(message) and shift < 64:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("not an ONNX file: a number without an end")


def _delimited(number: int, value: bytes) -> bytes:
    return _encoded(number << 3 | _BYTES) + _encoded(len(value)) + value


def _encoded(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
