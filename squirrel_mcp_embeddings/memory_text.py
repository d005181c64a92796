"""What of a memory is embedded."""

from __future__ import annotations

from squirrel_mcp.memory import Memory

# Goes up with every change below: vectors of another format are made anew.
TEXT_FORMAT = 1


def text_of(memory: Memory) -> str:
    """`entity: text (tags, keywords)`; an empty piece goes with its punctuation."""
    sentence = ": ".join(piece for piece in (memory.entity.strip(), memory.text.strip()) if piece)
    labels = ", ".join(label for label in (*memory.tags, *memory.keywords) if label.strip())
    return f"{sentence} ({labels})" if labels else sentence
