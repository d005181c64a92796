"""From what a person types to a memory's id."""

from __future__ import annotations

from squirrel_mcp.errors import InvalidInput, MemoryNotFound
from squirrel_mcp.service import MemoryService

_SHORTEST = 4  # digits; fewer would soon be ambiguous
_LENGTH = 32


def find_id(service: MemoryService, typed: str) -> str:
    """The id that begins with `typed`. MemoryNotFound for none, InvalidInput for several or too few digits."""
    typed = typed.strip().removeprefix("memory://").lower()
    if len(typed) >= _LENGTH:
        return typed
    if len(typed) < _SHORTEST:
        raise InvalidInput("id", f"Give the first {_SHORTEST} hex digits of the id, or more of it.")
    with service.vault(writing=False) as vault:
        known = {memory.id for memory in vault.memories} | vault.damaged.keys()
    found = sorted(memory_id for memory_id in known if memory_id.startswith(typed))
    if not found:
        raise MemoryNotFound
    if len(found) > 1:
        raise InvalidInput("id", f"{len(found)} memories have an id that begins so: type more of it.")
    return found[0]
