"""`python -m tests.sqmd.faked ARGUMENTS`: the command line in a process of its own, over an embedder that is quick."""

from __future__ import annotations

from sqmd.cli import main
from sqmd.embed import choose
from tests.sqmd.fakes import FakeEmbedder

if __name__ == "__main__":
    choose.make = lambda config: FakeEmbedder()
    main()
