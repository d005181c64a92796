"""A process that the kernel ends with SIGSYS the moment any of its threads asks for a socket.

    python without_sockets.py ours|plain WEIGHTS

Loads the model, with our session or with the runtime as it comes, says `ready` and waits for its input to end. Linux on
x86-64 and ARM64 only: `MACHINES` has what seccomp(2) needs to know of them.
"""

from __future__ import annotations

import ctypes
import platform
import struct
import sys
from pathlib import Path

# AUDIT_ARCH_* of linux/audit.h and the number of socket(2).
MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}

_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2
_LOAD, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x15, 0x06
_KILL, _ALLOW = 0x80000000, 0x7FFF0000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def forbid_sockets() -> None:
    """For this process and all threads that it starts, for good."""
    architecture, socket = MACHINES[platform.machine()]
    steps = (
        (_LOAD, 0, 0, 4),  # the architecture
        (_JUMP_IF_EQUAL, 0, 3, architecture),
        (_LOAD, 0, 0, 0),  # the call
        (_JUMP_IF_EQUAL, 0, 1, socket),
        (_RETURN, 0, 0, _KILL),
        (_RETURN, 0, 0, _ALLOW),
    )
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = _Program(len(steps), ctypes.cast(code, ctypes.c_void_p))
    libc = ctypes.CDLL(None)
    if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.prctl(_SET_SECCOMP, _FILTER, ctypes.byref(program), 0, 0):
        raise OSError("this kernel does not filter calls")


def main() -> None:
    forbid_sockets()
    weights = Path(sys.argv[2]).read_bytes()
    if sys.argv[1] == "ours":
        import numpy as np

        from squirrel_mcp_embeddings.runtime import Session

        ids = np.ones((1, 4), np.int64)
        Session(weights, 1).run(ids, ids)
    else:
        import onnxruntime

        onnxruntime.InferenceSession(weights, providers=["CPUExecutionProvider"])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
