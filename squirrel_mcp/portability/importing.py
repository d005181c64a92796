"""Putting what a file brought into a vault: what is new is written, nothing that is there is overwritten.

An import can be repeated and continued: memories are compared by id and by what their revisions say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from squirrel_mcp.catalog import Catalog
from squirrel_mcp.memory import Memory
from squirrel_mcp.portability.incoming import Incoming
from squirrel_mcp.vault import Vault

_STEP = 256  # revisions written before progress is told

Fate = Literal["new", "extended", "present", "forgotten", "conflict"]


@dataclass(slots=True)
class Plan:
    """What an import would do, or has done: ids by fate, and the revisions to write.

    new: not in the vault. extended: the vault has the beginning of its history. present: nothing to do.
    forgotten: forgotten in the vault, and stays so. conflict: the vault's revisions say something else.
    """

    fates: dict[str, Fate] = field(default_factory=dict)
    writes: list[Memory] = field(default_factory=list)
    made_up: set[str] = field(default_factory=set)  # ids of lines that came without one

    def ids(self, fate: Fate) -> list[str]:
        return sorted(memory_id for memory_id, other in self.fates.items() if other == fate)


def plan(vault: Vault | None, incoming: Incoming) -> Plan:
    """Compare with the vault (None: an empty one); writes nothing."""
    planned = Plan()
    for memory_id, revisions in incoming.revisions.items():
        fate, first, missing = _compare(vault, memory_id, revisions)
        planned.fates[memory_id] = fate
        # Where an earlier revision did not open, the later ones move up: the store takes no gaps.
        planned.writes += [replace(memory, revision=first + n) for n, memory in enumerate(missing)]
    in_file = Catalog()
    in_file.put_many(revisions[-1] for revisions in incoming.revisions.values())
    for memory in incoming.fresh:
        same = in_file.same(memory.text, memory.entity, memory.category)
        if same is None and vault is not None:
            same = vault.memories.same(memory.text, memory.entity, memory.category)
        planned.fates[memory.id] = "new" if same is None else "present"
        if same is None:
            in_file.put_many([memory])
            planned.writes.append(memory)
            planned.made_up.add(memory.id)
    return planned


def carry_out(vault: Vault, planned: Plan, progress: Callable[[int], None] = lambda done: None) -> Plan:
    """Write what was planned, telling `progress` how many revisions are stored; what became of it in the end.

    A StoreError or an interruption leaves whole revisions only, and the same import goes on from there.
    """
    for start in range(0, len(planned.writes), _STEP):
        vault.put_revisions(planned.writes[start : start + _STEP], planned.made_up)
        progress(min(start + _STEP, len(planned.writes)))
    # Somebody else may have written in between; what the vault holds now decides.
    written: dict[str, list[Memory]] = {}
    for memory in planned.writes:
        written.setdefault(memory.id, []).append(memory)
    fates = dict(planned.fates)
    for memory_id, revisions in written.items():
        revision, forgotten = vault.revision_of(memory_id)
        if forgotten:
            fates[memory_id] = "forgotten"
        elif revision == 0 and memory_id in planned.made_up:
            fates[memory_id] = "present"
        elif not _holds(vault, memory_id, revisions):
            fates[memory_id] = "conflict"
    return Plan(fates, planned.writes, planned.made_up)


def _compare(vault: Vault | None, memory_id: str, revisions: Sequence[Memory]) -> tuple[Fate, int, Sequence[Memory]]:
    """(fate, number of the first revision to write, revisions to write)."""
    number, forgotten = vault.revision_of(memory_id) if vault else (0, False)
    if forgotten:
        return "forgotten", 0, ()
    if vault is None or number == 0:
        return "new", 1, revisions
    theirs = [_content(memory) for memory in revisions]
    ours = [_content(memory) for memory in _readable(vault, memory_id)]
    if _is_part(theirs, ours):
        return "present", 0, ()
    if _is_part(ours, theirs):
        known = theirs.index(ours[-1]) + 1 if ours else 0
        missing = revisions[known:]
        return ("extended", number + 1, missing) if missing else ("present", 0, ())
    return "conflict", 0, ()


def _readable(vault: Vault, memory_id: str) -> list[Memory]:
    latest = vault.memories.get(memory_id)
    return [*reversed(vault.history(memory_id)), *([latest] if latest else [])]


def _holds(vault: Vault, memory_id: str, revisions: Sequence[Memory]) -> bool:
    if vault.memories.get(memory_id) == revisions[-1]:
        return True  # the usual case, without reading the history
    return _is_part(map(_content, revisions), map(_content, _readable(vault, memory_id)))


def _content(memory: Memory) -> Memory:
    """What a revision says, whatever its number."""
    return replace(memory, revision=0)


def _is_part(part: Iterable[Memory], whole: Iterable[Memory]) -> bool:
    """Whether `part` is `whole` with some left out, in the same order."""
    rest = iter(whole)
    return all(memory in rest for memory in part)
