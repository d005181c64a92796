"""The queries: none but the list of accounts goes through a table from end to end, however large it becomes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Delete, Insert, Select, Update

from squirrel_server.store import SqlStore, statements
from tests.squirrel_server.store.conftest import OpenStore

QUERIES: dict[str, Any] = {
    name: value
    for name, value in vars(statements).items()
    if name.isupper() and not name.startswith("_") and isinstance(value, Select | Update | Delete | Insert)
}
QUERIES |= {f"ERASE_ACCOUNT {number}": value for number, value in enumerate(statements.ERASE_ACCOUNT)}


def plan(store: SqlStore, statement: Any) -> list[str]:
    """SQLite's steps for a statement; the values of its parameters do not matter to them."""
    with store._database.read() as connection:
        if statement is statements.FIND_MEMORIES:  # the one whose text depends on its parameters
            statement = statement.params(ids=[b"one", b"two"], account=1)
        options = {"render_postcompile": True}
        compiled = statement.compile(dialect=connection.dialect, compile_kwargs=options)
        nothing = (None,) * len(compiled.positiontup)
        rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {compiled}", nothing)
        return [row.detail for row in rows]


@pytest.mark.parametrize("name", sorted(QUERIES.keys() - {"ACCOUNT_IDS"}))
def test_a_query_finds_its_rows_through_a_key(vault: Path, open_store: OpenStore, name: str) -> None:
    steps = plan(open_store(f"sqlite:///{vault}"), QUERIES[name])
    assert not [step for step in steps if step.startswith("SCAN") or "TEMP B-TREE" in step], steps
    if not isinstance(QUERIES[name], Insert):
        assert steps
