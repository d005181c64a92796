"""What the tests of this folder share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256

import pytest

from squirrel_mcp.crypto import kdf


class CountingKdf:
    """Stands in for the two costly functions: still binds every argument, costs nothing, counts its calls."""

    def __init__(self) -> None:
        self.calls: list[kdf.Parameters] = []

    def __call__(self, secret: bytes, salt: bytes, parameters: kdf.Parameters) -> bytes:
        self.calls.append(parameters)
        return sha256(repr((secret, salt, parameters)).encode()).digest()


@contextmanager
def _in_place_of_the_kdfs(fake: CountingKdf) -> Iterator[CountingKdf]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kdf, "_run_pbkdf2", fake)
        patch.setattr(kdf, "_run_argon2id", fake)
        yield fake


@pytest.fixture
def counting_kdf() -> Iterator[CountingKdf]:
    """For one test, which looks at the calls."""
    with _in_place_of_the_kdfs(CountingKdf()) as fake:
        yield fake


@pytest.fixture(scope="module")
def free_kdf() -> Iterator[CountingKdf]:
    """For a whole module of properties: hypothesis runs many examples in one test."""
    with _in_place_of_the_kdfs(CountingKdf()) as fake:
        yield fake
