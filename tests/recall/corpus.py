"""The synthetic memories and questions of this folder, as values. See README.md for where they come from."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from squirrel_mcp.memory import Memory

FOLDER = Path(__file__).parent
# The moment at which the questions are asked: age plays a part, and today would change the figures.
NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)
EXACT, PARAPHRASE, NOTHING, NEAR, RANKING, SCRIPTS = KINDS = (
    "exact words",
    "paraphrase",
    "nothing stored",
    "nothing stored, near",
    "ranking",
    "other script",
)


@dataclass(frozen=True, slots=True)
class Question:
    """`expect`: the id of the one memory that answers it; "" where none does."""

    kind: str
    query: str
    expect: str


def memory_id(key: str) -> str:
    """An id that is the same in every run."""
    return hashlib.sha256(key.encode()).hexdigest()[:32]


def memories() -> list[Memory]:
    """Every memory, written at noon of its date and never corrected."""
    found = []
    for line in (FOLDER / "memories.jsonl").read_text("utf-8").splitlines():
        fields = json.loads(line)
        moment = datetime.fromisoformat(f"{fields['date']}T12:00:00+00:00")
        found.append(
            Memory(
                id=memory_id(fields["key"]),
                text=fields["text"],
                created_at=moment,
                updated_at=moment,
                entity=fields["entity"],
                category=fields["category"],
                tags=tuple(fields["tags"]),
                keywords=tuple(fields["keywords"]),
            )
        )
    return found


def questions() -> list[Question]:
    """Every question, in the order of the file."""
    found = []
    for fields in json.loads((FOLDER / "queries.json").read_text("utf-8")):
        expected = [memory_id(key) for key in fields["expect"]]
        if len(expected) > 1:
            raise ValueError(f"{fields['query']!r} has several answers: one memory or none answers a question here")
        found.append(Question(fields["kind"], fields["query"], "".join(expected)))
    return found
