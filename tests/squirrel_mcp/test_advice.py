"""Each error has one text about what to do, whoever reads it."""

from __future__ import annotations

import pytest

from squirrel_mcp import errors
from squirrel_mcp.advice import explained, what_to_do
from squirrel_server.store import faults

# Messages of these say what to do themselves, as it depends on the case; the first four are never raised as they are.
SAYS_IT_ITSELF = {
    "error", "store_error", "verdict", "not_unlocked",
    "bad_reply", "configuration", "conflict", "invalid_input", "key_ring_full", "newer_schema", "not_found",
    "not_trusted",
    "pin_damaged", "rollback_detected", "store_unavailable", "too_many_requests", "unsafe_file", "update_required",
    "vault_missing", "vault_moved",
}  # fmt: skip


def _codes() -> set[str]:
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type)]
    return {kind.code for kind in kinds if issubclass(kind, errors.SquirrelError)}


def test_every_error_says_what_to_do_in_its_message_or_has_advice() -> None:
    assert {code for code in _codes() if not what_to_do(code)} == SAYS_IT_ITSELF


@pytest.mark.parametrize("code", ["fork_detected", "foreign_key", "key_record_downgrade"])
def test_what_a_backup_that_was_put_back_looks_like_names_the_command_for_it(code: str) -> None:
    assert "squirrel-mcp accept-rollback" in what_to_do(code)


@pytest.mark.parametrize("code", ["log_damaged", "key_set_damaged", "foreign_account", "omission_detected"])
def test_what_no_backup_looks_like_does_not_name_it(code: str) -> None:
    assert "accept-rollback" not in what_to_do(code)


@pytest.mark.parametrize(
    ("code", "message", "text"),
    [
        ("head_moved", "Somebody was first.", "Somebody was first. Try again."),
        ("head_moved", "Somebody was first", "Somebody was first. Try again."),
        ("store_unavailable", "It is busy; try again", "It is busy; try again."),
        ("store_unavailable", "Run `squirrel-mcp init`", "Run `squirrel-mcp init`"),
    ],
)
def test_an_explanation_is_what_happened_and_then_what_to_do(code: str, message: str, text: str) -> None:
    assert explained(code, message) == text


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("store_full", faults.NO_SPACE),
        ("store_full", "The server has no space left; nothing was stored."),
        ("store_full", "There is no space left to write a file."),
        ("append_denied", str(errors.AppendDenied())),
        ("head_moved", str(errors.HeadMoved((1, b"")))),
    ],
)
def test_an_explanation_says_but_once_that_nothing_was_stored(code: str, message: str) -> None:
    said = explained(code, message).lower()
    assert said.count("nothing was stored") + said.count("not stored") <= 1
    assert said.count("room") + said.count("try again") <= 1


def test_what_a_running_server_does_is_told_where_one_runs_and_to_nobody_else() -> None:
    served = {code: (what_to_do(code), what_to_do(code, serving=False)) for code in _codes()}
    assert {code for code, (server, command) in served.items() if server != command} == {
        "wrong_passphrase", "passphrase_missing", "passphrase_refused", "keys_changed",
    }  # fmt: skip
    assert not any("memory server" in command for _, command in served.values())
    assert explained("wrong_passphrase", "No.", serving=False).startswith("No. Put the right passphrase")
