"""What the companion sees to before anything else of it is loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_products_of_vectors_run_on_the_thread_that_asks_for_them() -> None:
    program = """
import os
import squirrel_mcp_embeddings.cli
import numpy as np
np.ones((4_096, 384), np.float32) @ np.ones(384, np.float32)
print(len(os.listdir("/proc/self/task")))
"""
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "1\n"
