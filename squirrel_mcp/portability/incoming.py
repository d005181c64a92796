"""What a file brings, whichever form it has."""

from __future__ import annotations

from dataclasses import dataclass, field

from squirrel_mcp.memory import Memory


@dataclass(frozen=True, slots=True)
class Incoming:
    """Memories to import.

    revisions: id -> its revisions that can be read, in order. fresh: memories from lines that name no id; the ids
    they have here are new ones. forgotten: how many the exported account had forgotten. damaged: ids with a
    revision that does not open.
    """

    revisions: dict[str, list[Memory]] = field(default_factory=dict)
    fresh: list[Memory] = field(default_factory=list)
    forgotten: int = 0
    damaged: list[str] = field(default_factory=list)
