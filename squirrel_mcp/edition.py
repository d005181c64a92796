"""What tells the base and its companion apart; everything else of a process is the same for both.

Only names are imported here: an edition is chosen before anything else of a process is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from squirrel_mcp.memory import Memory
    from squirrel_mcp.search.results import Ranker
    from squirrel_mcp.settings import Settings
    from squirrel_mcp.vault import Vault

Say = Callable[[str], None]
"""Tells a person one line, once."""

MakeRanker = Callable[["Settings", "Vault", Say], "Ranker"]
"""Makes the ranker of an open vault, which then learns of its memories as a listener."""


@dataclass(frozen=True, slots=True)
class Edition:
    """One of the programs that people start.

    command: its name, and that of its distribution. package: what `python -m` starts. by_meaning: whether it searches
    by meaning as well. ranker: for the server, which answers before everything is loaded; patient_ranker: for a
    command, which asks once and then ends. forgotten: called after a memory was forgotten before any ranker was made.
    """

    command: str
    package: str
    by_meaning: bool
    ranker: MakeRanker
    patient_ranker: MakeRanker
    forgotten: Callable[[Settings, Vault], None]


def _word_ranker(settings: Settings, vault: Vault, _: Say) -> Ranker:
    from squirrel_mcp.search.lexical import WordRanker

    vault.add_listener(_Forgetting(settings, vault))
    return WordRanker()


class _Forgetting:
    """The companion may have been here before: what it kept of a memory goes with the memory.

    Without the model's name not a row of its file can be told from another, so the file goes, and is made anew.
    """

    def __init__(self, settings: Settings, vault: Vault) -> None:
        self._settings, self._vault = settings, vault

    def put_many(self, memories: Iterable[Memory]) -> None:
        pass

    def remove_many(self, memory_ids: Collection[str]) -> None:
        _drop_vectors(self._settings, self._vault)


def _drop_vectors(settings: Settings, vault: Vault) -> None:
    from squirrel_mcp import vector_files

    vector_files.drop(settings.cache_dir, vault.ring)


BASE = Edition("squirrel-mcp", "squirrel_mcp", False, _word_ranker, _word_ranker, _drop_vectors)
