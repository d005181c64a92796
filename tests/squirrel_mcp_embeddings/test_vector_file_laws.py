"""Rows in are rows out, whatever two processes do to one file and in which order."""

from __future__ import annotations

import shutil
import struct
import tempfile
from pathlib import Path

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from squirrel_mcp import vector_files
from squirrel_mcp_embeddings.vector_file import Rows
from tests.squirrel_mcp_embeddings.vector_file_scene import Row, Scene, listed, ring, rows

WHO = st.sampled_from([0, 1])
ROWS = st.builds(rows, st.integers(0, 3), st.integers(0, 2**32))
KEYS = ("first", "second", "third", "fourth")


class TwoProcesses(RuleBasedStateMachine):
    """`known` is what each has been given or has written of the rows in the file; None: not even the beginning."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.scene = Scene(self.folder)
        self.handles = [self.scene.handle(), self.scene.handle()]
        self.stored: list[Row] = []
        self.known: list[int | None] = [None, None]
        self.keys = 1

    @rule(who=WHO, new=ROWS)
    def append(self, who: int, new: Rows) -> None:
        known = self.known[who]
        found = listed(self.handles[who].append(new))
        assert found == (self.stored if known is None else self.stored[known:])
        if new.size:
            current = ring(*KEYS[: self.keys]).current.kid
            if self._kid() != self._kid_before:
                self.known = [None, None]  # rewritten under the current key
            assert self._kid() == current
        self.stored += listed(new)
        self.known[who] = len(self.stored) if self.scene.path.exists() else None

    @rule(who=WHO, new=ROWS)
    def rewrite(self, who: int, new: Rows) -> None:
        self.handles[who].rewrite(new)
        self.stored = listed(new)
        self.known = [None, None]
        self.known[who] = len(self.stored)

    @rule(who=WHO)
    def load(self, who: int) -> None:
        assert listed(self.handles[who].load()) == self.stored
        self.known[who] = len(self.stored) if self.scene.path.exists() else None

    @rule(who=WHO)
    def restart(self, who: int) -> None:
        self.handles[who] = self.scene.handle()
        self.known[who] = None

    @rule()
    def rotate(self) -> None:
        self.keys = min(self.keys + 1, len(KEYS))
        self.scene.ring = ring(*KEYS[: self.keys])

    @rule(count=st.integers(1, 30))
    def tear(self, count: int) -> None:
        """A writer dies within a segment of one row."""
        path = self.scene.path
        if path.exists() and path.stat().st_size == self._whole():
            with path.open("ab") as file:
                file.write((struct.pack(">I", 28 + 30) + bytes(28 + 30))[:count])

    @rule()
    def forget(self) -> None:
        """The base forgets a memory and knows no model."""
        vector_files.drop(self.folder, self.scene.ring)
        self.stored, self.known = [], [None, None]

    @invariant()
    def remember_key(self) -> None:
        self._kid_before = self._kid()

    def _kid(self) -> bytes:
        path = self.scene.path
        return path.read_bytes()[8:24] if path.exists() else b""

    def _whole(self) -> int:
        raw, at = self.scene.path.read_bytes(), 80
        while at + 4 <= len(raw) and at + 4 + struct.unpack_from(">I", raw, at)[0] <= len(raw):
            at += 4 + struct.unpack_from(">I", raw, at)[0]
        return at

    def teardown(self) -> None:
        shutil.rmtree(self.folder)


TestTwoProcesses = TwoProcesses.TestCase
