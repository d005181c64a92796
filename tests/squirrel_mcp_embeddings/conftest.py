"""Models for the tests: a small one that is always there, and the real one.

The real one is used if `model/` holds it; else its tests are skipped with a reason, or fail where CI is set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from squirrel_mcp_embeddings.embedder import Embedder, load
from squirrel_mcp_embeddings.errors import ModelUnavailable
from squirrel_mcp_embeddings.model_files import LoadedFiles, read
from tests.squirrel_mcp_embeddings.small_model import small_files


@pytest.fixture(scope="session")
def small() -> LoadedFiles:
    """The files of the small model."""
    return small_files()


@pytest.fixture(scope="session")
def embedder(small: LoadedFiles) -> Iterator[Embedder]:
    """The small model, loaded; it is shared."""
    embedder = load(small)
    yield embedder
    embedder.close()


@pytest.fixture(scope="session")
def real_files() -> LoadedFiles:
    """The files of the model that users get."""
    try:
        return read(None)
    except ModelUnavailable as error:
        reason = f"no model in model/ ({error.reason}); scripts/fetch_model.py brings one"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


@pytest.fixture(scope="session")
def real(real_files: LoadedFiles) -> Iterator[Embedder]:
    """The model that users get, loaded; it is shared."""
    embedder = load(real_files)
    yield embedder
    embedder.close()
