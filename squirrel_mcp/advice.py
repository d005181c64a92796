"""What to do about what went wrong, by error code: one text for agents, which pass it on, and for people.

An error's own message is the sentence that says what happened. A code is not listed where that message says what to do
as well, as it does where this depends on the case.
"""

from __future__ import annotations

NO_RECOVERY_CODE = (
    "There is no recovery code yet: without one, a forgotten passphrase means that these memories are lost. "
    "A person makes one with `squirrel-mcp recovery new`."
)

_SOURCE = "Put the right passphrase where this program takes it from."
_AGAIN = (
    "A memory server reads a file, a command or the keyring again at the next call, and variables when its client is "
    "restarted."
)
_BACKUP = "Nothing was changed; put the vault file (on a server: its database) back from a backup."
_PUT_BACK = "If it was put back from a backup, a person who knows that runs `squirrel-mcp accept-rollback`."
_BY_CODE = {
    "wrong_passphrase": _SOURCE,
    "key_set_damaged": _BACKUP,
    "foreign_account": _BACKUP,
    "omission_detected": _BACKUP,
    "not_a_vault": _BACKUP,
    "key_record_downgrade": _PUT_BACK,
    "foreign_key": _PUT_BACK,
    "fork_detected": _PUT_BACK,
    "log_damaged": (
        "What came before the damage can be read, nothing is saved; put the vault file (on a server: its database) "
        "back from a backup."
    ),
    "export_damaged": "Nothing was imported; take another copy of the file.",
    "store_full": "It works again once there is room.",
    "head_moved": "Try again.",
    "append_denied": "Nothing was stored; `squirrel-mcp status` tells whether the keys are still the ones known here.",
    "record_damaged": "Put the vault file back from a backup, or forget this memory.",
}
# Besides, where a server goes on running.
_SERVING = dict.fromkeys(("wrong_passphrase", "passphrase_refused", "passphrase_missing", "keys_changed"), _AGAIN)


def what_to_do(code: str, *, serving: bool = True) -> str:
    """A sentence or two, or "" where the message says it already; a command ends, a server (`serving`) goes on."""
    return " ".join(filter(None, (_BY_CODE.get(code), _SERVING.get(code) if serving else None)))


def explained(code: str, message: str, *, serving: bool = True) -> str:
    """What happened, ended as a sentence, and what to do about it."""
    ended = message if message.endswith((".", "!", "?", "`")) else f"{message}."
    advice = what_to_do(code, serving=serving)
    return f"{ended} {advice}" if advice else ended
