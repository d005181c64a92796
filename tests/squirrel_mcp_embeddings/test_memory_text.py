"""What of a memory is embedded. A change here makes every stored vector worthless: TEXT_FORMAT has to go up with it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from squirrel_mcp.memory import Memory
from squirrel_mcp_embeddings.memory_text import TEXT_FORMAT, text_of

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def memory(**fields: Any) -> Memory:
    return Memory(id="00" * 16, created_at=NOW, updated_at=NOW, **fields)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"text": "Likes oat milk."}, "Likes oat milk."),
        ({"text": "Likes oat milk.", "entity": "Ana"}, "Ana: Likes oat milk."),
        ({"text": "Likes oat milk.", "tags": ("food",)}, "Likes oat milk. (food)"),
        ({"text": "Likes oat milk.", "keywords": ("drinks", "vegan")}, "Likes oat milk. (drinks, vegan)"),
        (
            {"text": "Likes oat milk.", "entity": "Ana", "tags": ("food", "home"), "keywords": ("vegan",)},
            "Ana: Likes oat milk. (food, home, vegan)",
        ),
        ({"text": " Likes it. ", "entity": " ", "tags": ("", " ")}, "Likes it."),
    ],
)
def test_entity_text_and_labels_are_joined_and_empty_pieces_go_with_their_punctuation(
    fields: dict[str, Any], text: str
) -> None:
    assert (text_of(memory(**fields)), TEXT_FORMAT) == (text, 1)


def test_what_does_not_help_to_find_it_is_left_out() -> None:
    plain = memory(text="Likes oat milk.")
    assert text_of(memory(text="Likes oat milk.", category="task", source="chat", reason="asked")) == text_of(plain)
