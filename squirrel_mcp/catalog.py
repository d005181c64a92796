"""The current memories of a vault, held so that the usual questions do not walk through all of them."""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator
from datetime import datetime

from squirrel_mcp.memory import Memory

_Key = tuple[datetime, str]


class Catalog:
    """By id, by content, by age. Memories come in and go out through `put_many` and `remove_many`."""

    def __init__(self) -> None:
        self._memories: dict[str, Memory] = {}
        self._by_content: dict[int, list[str]] = {}
        self._by_creation: list[_Key] = []
        self._by_category: dict[str, list[_Key]] = {}

    def __len__(self) -> int:
        return len(self._memories)

    def __iter__(self) -> Iterator[Memory]:
        return iter(self._memories.values())

    def get(self, memory_id: str) -> Memory | None:
        return self._memories.get(memory_id)

    def put_many(self, memories: Iterable[Memory]) -> None:
        """Add or replace, by id."""
        batch = list(memories)
        for memory in batch:
            self.remove(memory.id)
        if len(batch) < 100:
            for memory in batch:
                insort(self._by_creation, (memory.created_at, memory.id))
                insort(self._category(memory), (memory.updated_at, memory.id))
        else:
            for memory in batch:
                self._by_creation.append((memory.created_at, memory.id))
                self._category(memory).append((memory.updated_at, memory.id))
            for keys in (self._by_creation, *self._by_category.values()):
                keys.sort()
        for memory in batch:
            self._memories[memory.id] = memory
            self._by_content.setdefault(_content(memory.text, memory.entity, memory.category), []).append(memory.id)

    def remove_many(self, memory_ids: Iterable[str]) -> None:
        """Take out those that are there."""
        for memory_id in memory_ids:
            self.remove(memory_id)

    def remove(self, memory_id: str) -> None:
        """Take it out; nothing happens if it is not there."""
        memory = self._memories.pop(memory_id, None)
        if memory is None:
            return
        content = _content(memory.text, memory.entity, memory.category)
        self._by_content[content].remove(memory_id)
        if not self._by_content[content]:
            del self._by_content[content]
        _drop(self._by_creation, (memory.created_at, memory_id))
        keys = self._by_category[memory.category]
        _drop(keys, (memory.updated_at, memory_id))
        if not keys:
            del self._by_category[memory.category]

    def same(self, text: str, entity: str, category: str) -> Memory | None:
        """A memory of the same text, entity and category after NFC and white space, if there is one."""
        wanted = _normal(text, entity, category)
        for memory_id in self._by_content.get(hash(wanted), ()):
            memory = self._memories[memory_id]
            if _normal(memory.text, memory.entity, memory.category) == wanted:
                return memory
        return None

    def counts(self) -> dict[str, int]:
        """How many memories each category has, the largest first."""
        sizes = {category: len(keys) for category, keys in self._by_category.items()}
        return dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0])))

    def latest(self, category: str) -> Iterator[Memory]:
        """The memories of a category, last changed first."""
        for _, memory_id in reversed(self._by_category.get(category, [])):
            yield self._memories[memory_id]

    def by_creation(self, *, newest_first: bool, after: _Key | None = None) -> Iterator[Memory]:
        """In order of creation, which corrections do not change; `after` (exclusive) goes on from a memory's key."""
        keys = self._by_creation
        if newest_first:
            stop = len(keys) if after is None else bisect_left(keys, after)
            indices = range(stop - 1, -1, -1)
        else:
            start = 0 if after is None else bisect_left(keys, (after[0], after[1] + "\0"))
            indices = range(start, len(keys))
        for index in indices:
            yield self._memories[keys[index][1]]

    def _category(self, memory: Memory) -> list[_Key]:
        return self._by_category.setdefault(memory.category, [])


def _drop(keys: list[_Key], key: _Key) -> None:
    del keys[bisect_left(keys, key)]


def _normal(text: str, entity: str, category: str) -> tuple[str, ...]:
    return tuple(
        " ".join((value if value.isascii() else unicodedata.normalize("NFC", value)).split())
        for value in (text, entity, category)
    )


def _content(text: str, entity: str, category: str) -> int:
    return hash(_normal(text, entity, category))
