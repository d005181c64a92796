"""The model that is here, for tests that mean nothing without one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from squirrel_mcp_embeddings import embedder, model_files
from squirrel_mcp_embeddings.embedder import Embedder
from squirrel_mcp_embeddings.errors import ModelUnavailable


@contextmanager
def real_model() -> Iterator[Embedder]:
    """The first model of the manifest that is here. Without one the test is skipped, and fails where CI is set."""
    try:
        model = embedder.load(model_files.read(None))
    except ModelUnavailable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{error} Run scripts/fetch_model.py.")
    try:
        yield model
    finally:
        model.close()
