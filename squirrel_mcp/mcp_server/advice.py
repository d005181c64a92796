"""What a person can do about what went wrong, by error code; messages that say it themselves are not listed."""

from __future__ import annotations

NO_RECOVERY_CODE = (
    "There is no recovery code yet: without one, a forgotten passphrase means that these memories are lost. "
    "A person makes one with `squirrel-mcp recovery new`."
)

_RESTART = (
    "A passphrase from a file, a command or the keyring is read again at the next call; one from the client's "
    "settings after a restart of the client."
)
_BACKUP = "Nothing was changed. Put the vault file back from a backup."
_BY_CODE = {
    "wrong_passphrase": f"Put the right passphrase where this program takes it from. {_RESTART}",
    "passphrase_refused": _RESTART,
    "passphrase_missing": _RESTART,
    "keys_changed": _RESTART,
    "key_set_damaged": _BACKUP,
    "key_record_downgrade": _BACKUP,
    "foreign_account": _BACKUP,
    "foreign_key": _BACKUP,
    "omission_detected": _BACKUP,
    "not_a_vault": _BACKUP,
    "log_damaged": "What came before the damage can be read, nothing is saved. Put the vault file back from a backup.",
    "fork_detected": "If you put another copy there yourself, run `squirrel-mcp accept-rollback`.",
    "store_full": "Nothing was stored. Free some space and try again.",
    "record_damaged": "Put the vault file back from a backup, or forget this memory.",
    "not_found": "search_memory and list_memories give ids.",
}


def what_to_do(code: str) -> str:
    """A sentence or two, or "" where the message says it already."""
    return _BY_CODE.get(code, "")
