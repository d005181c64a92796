from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.search.order import best

few = st.sampled_from([0.0, 1.0, 1.0 + 1e-15, 2.0])


@given(st.lists(st.tuples(few, few, st.sampled_from("abcdef")), max_size=30), st.integers(-1, 12))
def test_the_first_are_those_of_a_full_sort(rows: list[tuple[float, float, str]], limit: int) -> None:
    ids = [f"{text}{position}" for position, (_, _, text) in enumerate(rows)]
    keys = [np.array([row[column] for row in rows]) for column in (0, 1)]
    everything = sorted(range(len(rows)), key=lambda i: (-rows[i][0], -rows[i][1], ids[i]))
    assert best(keys, limit, ids.__getitem__) == everything[: max(0, limit)]
