"""What the package shows, and what it costs to look at it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from squirrel_server import store
from squirrel_server.store import errors

CODES = {
    "account_exists",
    "append_denied",
    "failed",
    "forgotten",
    "full",
    "head_moved",
    "invite_refused",
    "malformed",
    "newer_schema",
    "not_a_vault",
    "refused",
    "store_error",
    "too_large",
    "too_many_keys",
    "unavailable",
    "unknown_account",
    "unknown_key",
    "unknown_memory",
    "unknown_object",
    "unsupported_url",
}


def test_every_public_name_is_there_and_every_error_among_them() -> None:
    for name in store.__all__:
        assert getattr(store, name) is not None
    raised = {name for name, value in vars(errors).items() if isinstance(value, type) and name[0].isupper()}
    assert raised - {"Head"} <= set(store.__all__)
    with pytest.raises(AttributeError):
        store.nothing  # noqa: B018


def test_codes_are_stable_and_drawn_in_the_tree() -> None:
    found = {
        value.code
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, errors.StoreError)
    }
    assert found == CODES
    assert errors.__doc__ is not None
    for code in found - {"store_error", "refused", "failed"}:
        assert code in errors.__doc__


def test_importing_the_package_loads_no_database(child_environment: dict[str, str]) -> None:
    program = (
        "import sys, squirrel_server.store\n"
        "assert not {'sqlalchemy', 'sqlite3', 'psycopg'} & set(sys.modules), sorted(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], env=child_environment, check=True)


def test_a_sqlite_store_does_not_load_postgresql(child_environment: dict[str, str]) -> None:
    program = (
        "import sys, tempfile\n"
        "from squirrel_server.store import SqlStore\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    SqlStore(f'sqlite:///{folder}/vault.db').close()\n"
        "assert not {'psycopg', 'sqlalchemy.orm'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], env=child_environment, check=True)
