"""What a search gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Mode = Literal["hybrid", "vector", "fts"]
MODES: tuple[Mode, ...] = ("hybrid", "vector", "fts")
MAX_TOP_K = 100


@dataclass(frozen=True, slots=True)
class Result:
    """One chunk. `text` is `text_raw` under its breadcrumb; lines are 1-based and both included."""

    chunk_id: str
    file_id: str
    file_path: str
    heading_path: str
    heading_text: str
    heading_level: int
    section_index: int
    chunk_index: int
    text_raw: str
    token_count: int
    score: float
    line_start: int
    line_end: int
    text: str

    @classmethod
    def of(cls, row: dict[str, Any], score: float) -> Result:
        return cls(**row, score=score)


@dataclass(frozen=True, slots=True)
class Answer:
    """Results, the best first; `note` speaks where a leg could not be asked."""

    query: str
    mode: Mode
    results: tuple[Result, ...]
    duration_ms: float
    note: str = ""
