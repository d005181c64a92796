from __future__ import annotations

import os

import pytest

from squirrel_mcp.crypto import envelope, recovery, wrap
from squirrel_mcp.crypto.envelope import Context
from squirrel_mcp.crypto.keys import Dek

DEK = Dek(bytes(range(32)))
PLACE = Context(bytes(16), bytes(16), 1)


def salts(count: int) -> list[bytes]:
    return [envelope.seal(DEK, PLACE, b"the same payload")[20:44] for _ in range(count)]


def test_no_salt_repeats_over_many_seals(full: bool) -> None:
    count = 100_000 if full else 5_000
    assert len(set(salts(count))) == count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform does not fork")
def test_no_salt_repeats_across_a_fork(full: bool) -> None:
    count = 10_000 if full else 500
    before = salts(10)  # a source that buffers would hand the rest of its buffer to both processes
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover  (another process)
        try:
            with os.fdopen(writer, "wb") as pipe:
                pipe.write(b"".join(salts(count)))
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        mine = salts(count)
        sent = pipe.read()
    assert os.waitpid(child, 0) == (child, 0)
    theirs = [sent[at : at + 24] for at in range(0, len(sent), 24)]
    assert len(theirs) == count
    assert len({*before, *mine, *theirs}) == 10 + 2 * count


def test_every_source_of_randomness_can_be_given_and_is_asked_for_what_the_format_needs() -> None:
    asked: list[int] = []

    def source(size: int) -> bytes:
        asked.append(size)
        return bytes(size)

    Dek.generate(source)
    recovery.generate(source)
    envelope.seal(DEK, PLACE, b"", source)
    wrap.seal(DEK, bytes(20), account_id=bytes(16), generation=1, random=source)
    assert asked == [32, 20, 24, 16, 12]
