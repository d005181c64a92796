"""Memories for these tests, and texts for hypothesis that meet the rules about words more often than chance."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import strategies as st

from squirrel_mcp.memory import Memory
from squirrel_mcp.search.fold import label
from squirrel_mcp.search.recency import DECAYS

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def memory(text: str, memory_id: str = "0" * 32, **fields: Any) -> Memory:
    return Memory(**{"id": memory_id, "text": text, "created_at": NOW, "updated_at": NOW, **fields})


def weight(category: str, updated_at: datetime, now: datetime) -> float:
    """w of docs/ranking.md, section 2, of one memory and in whole microseconds."""
    decay = DECAYS.get(label(category), DECAYS["fact"])
    days = max(0, (now - updated_at) // timedelta(microseconds=1)) / 86_400_000_000
    return float(decay.floor + (1.0 - decay.floor) * 0.5 ** (days / decay.half_life))


def numbered(number: int) -> str:
    """An id."""
    return f"{number:032x}"


# Few words, so that they meet again; connectors, borders, scripts and things that must be nothing.
_FRAGMENTS = (
    "tea Tea teas cat cats run running runs sign off sign-off signoff Pi-hole hole the The to be not ăn an a go going "
    "getUserName userName max_retry_count https://a.example.org/x C:\\dir\\x ../y 2.14.0 v2.14.0 14 10.0.7.1:80 c++ C# "
    ".net net it's Mira's l'eau can't o'clock café cafe\u0301 ø Straße 茶 绿茶 东京タワー ข้าวผัด ๑๒ 한글 "
    "\u1112\u1161\u11ab й и\u0306 "
    "🎉 👍🏽 © \ud800 \u200b \u00ad \ufe0f ½ … ﬁ Ⅷ"
).split(" ")
fragments = st.sampled_from(_FRAGMENTS)
_glue = st.sampled_from(["", " ", " ", " ", "-", "'", "’", "_", ".", "/", "\\", ":", "+", "++", "#", "—", "\n", ", "])
texts = st.one_of(
    st.lists(st.tuples(fragments, _glue), max_size=12).map(lambda pairs: "".join(map("".join, pairs))),
    st.text(max_size=30),
)
memories = st.builds(
    memory,
    texts,
    memory_id=st.integers(0, 7).map(numbered),
    entity=st.sampled_from(["", "Mira", "mira", "Noor-Lee"]),
    category=st.sampled_from(["fact", "Fact", "task", "event", "recipe"]),
    tags=st.lists(st.sampled_from(["health", "Health", "home office", "ÉCOLE", "école"]), max_size=2).map(tuple),
    keywords=st.lists(fragments, max_size=2).map(tuple),
    updated_at=st.sampled_from(
        [NOW.replace(day=1), NOW.replace(month=1), NOW.replace(year=2024), NOW.replace(year=2027)]
    ),
)
