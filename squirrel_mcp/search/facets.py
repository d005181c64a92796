"""Which memories pass a filter, without looking at each: postings of categories, entities and tags."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from squirrel_mcp.memory import Memory
from squirrel_mcp.search.fold import label
from squirrel_mcp.search.results import Filters

_Facet = tuple[str, str]  # the field, the label as it is compared


class Facets:
    """The labels of the memories in an index, by slot."""

    def __init__(self) -> None:
        self._slots: dict[_Facet, array[int]] = {}

    def add(self, slot: int, memory: Memory) -> None:
        """File a memory that is not filed."""
        for facet in _facets(memory):
            slots = self._slots.get(facet)
            if slots is None:
                self._slots[facet] = array("I", (slot,))
            elif slots[-1] < slot:
                slots.append(slot)
            else:
                slots.insert(bisect_left(slots, slot), slot)

    def remove(self, slot: int, memory: Memory) -> None:
        """Take a memory out again, as it was filed."""
        for facet in _facets(memory):
            slots = self._slots[facet]
            if len(slots) == 1:
                del self._slots[facet]
            else:
                del slots[bisect_left(slots, slot)]

    def narrow(self, mask: NDArray[np.bool_], filters: Filters) -> NDArray[np.bool_]:
        """`mask`, one flag for each slot, without those that miss a category, entity or tag asked for."""
        for facet in _wanted(filters):
            chosen = np.zeros(len(mask), np.bool_)
            slots = self._slots.get(facet)
            if slots is not None:
                chosen[np.frombuffer(slots, np.uint32)] = True
            mask = mask & chosen
        return mask


def _facets(memory: Memory) -> set[_Facet]:
    return {
        ("category", label(memory.category)),
        ("entity", label(memory.entity)),
        *(("tag", label(tag)) for tag in memory.tags),
    }


def _wanted(filters: Filters) -> Iterator[_Facet]:
    if filters.category is not None:
        yield ("category", label(filters.category))
    if filters.entity is not None:
        yield ("entity", label(filters.entity))
    for tag in filters.tags:
        yield ("tag", label(tag))
