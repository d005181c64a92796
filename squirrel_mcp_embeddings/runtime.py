"""The one importer of ONNX Runtime: without telemetry, on the CPU, quiet, and with one copy of the weights."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from mmap import mmap

import numpy as np
from numpy.typing import NDArray

from squirrel_mcp_embeddings.errors import EmbeddingFailed, ModelUnavailable
from squirrel_mcp_embeddings.onnx_parts import split

# Read once, by the import below, which otherwise leaves files in the user's cache folder and looks for a host of the
# maker. Set for the C library only, where it is read, and whatever was there: `0`, `no` and nothing leave it on.
os.putenv("ORT_DISABLE_TELEMETRY", "1")

try:
    import onnxruntime
except ImportError:  # no wheel for this platform, or one that does not find its libraries
    onnxruntime = None
else:
    onnxruntime.disable_telemetry_events()  # for where another package imported it first

_FATAL = 4  # of the runtime's levels of severity; errors arrive as exceptions
# What exporters call the last hidden state; others of a model's outputs may come first.
_PER_TOKEN = ("last_hidden_state", "token_embeddings")
_UNALIGNED_READS = platform.machine().lower() in ("x86_64", "amd64")


class Session:
    """A model that was loaded. `run` may be called from several threads, each of which computes for itself."""

    def __init__(self, weights: bytes, threads: int, beside: Mapping[str, bytes | mmap] | None = None) -> None:
        """`weights`: an ONNX file, of which nothing is kept. `threads` are those that one call of `run` uses.

        beside: the content of files that `weights` refers to, by name; an ONNX file ends at 2 GB.

        ModelUnavailable with reason `runtime` where the runtime is not installed or refuses the model.
        """
        if onnxruntime is None:
            raise ModelUnavailable("runtime")
        try:
            self._session = _session(weights, threads, beside or {})
        except Exception as error:  # a border: the runtime's errors derive from nothing narrower
            raise ModelUnavailable("runtime") from error
        self._inputs = frozenset(each.name for each in self._session.get_inputs())
        outputs = [each.name for each in self._session.get_outputs()]
        self._output = next((name for name in _PER_TOKEN if name in outputs), outputs[0])
        self._options = onnxruntime.RunOptions()
        self._options.log_severity_level = _FATAL

    def run(
        self, ids: NDArray[np.int64], mask: NDArray[np.int64], types: NDArray[np.int64] | None = None
    ) -> NDArray[np.float32]:
        """The last hidden state (n, t, dimension) of token ids (n, t); `mask` is 1 for a token and 0 for padding.

        types: 1 for a token of the second text of a pair; all of the first if None. A model that classifies gives
        what it computes instead, (n, classes).
        EmbeddingFailed if the runtime fails, which says nothing of the ids.
        """
        feed = {"input_ids": ids, "attention_mask": mask}
        if "token_type_ids" in self._inputs:
            feed["token_type_ids"] = np.zeros_like(ids) if types is None else types
        failure = ""
        try:
            hidden: NDArray[np.float32] = self._session.run([self._output], feed, self._options)[0]
            return hidden
        except Exception as error:  # noqa: BLE001 - a border, as above
            failure = type(error).__name__
        # Raised here, so that the runtime's own error, which may quote an id, does not travel along as its context.
        raise EmbeddingFailed(f"The model's runtime failed ({failure}).")


def _session(weights: bytes, threads: int, beside: Mapping[str, bytes | mmap]) -> onnxruntime.InferenceSession:
    onnxruntime.set_default_logger_severity(_FATAL)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = _FATAL
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # A pool that spins takes the cores from whatever else wants them.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    graph, tensors = split(weights)
    if not _UNALIGNED_READS:
        tensors = {name: tensor if tensor.flags.aligned else tensor.copy() for name, tensor in tensors.items()}
    # The session copies what it is handed while it is made, so that views into `weights` do here.
    values = [onnxruntime.OrtValue.ortvalue_from_numpy(tensor) for tensor in tensors.values()]
    options.add_external_initializers(list(tensors), values)
    if beside:
        options.add_external_initializers_from_files_in_memory(
            list(beside), list(beside.values()), [len(content) for content in beside.values()]
        )
    # Its fallback, to the provider that is asked for anyway, would announce itself on standard output.
    return onnxruntime.InferenceSession(
        graph, options, providers=["CPUExecutionProvider"], enable_fallback=0, read_config_from_model=0
    )
