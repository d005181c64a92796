"""One hostile server for all tests of this folder, its scene, and devices that have seen different parts of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .scene import Scene, scenes


@pytest.fixture(scope="session")
def _scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with scenes(tmp_path_factory.mktemp("scene")) as scene:
        yield scene


@pytest.fixture
def scene(_scene: Scene) -> Scene:
    """The account as it is at the end of its story, the server honest."""
    _scene.reset()
    return _scene
