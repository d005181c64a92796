"""Showing a new recovery code, once, and making sure that it was written down before it becomes valid."""

from __future__ import annotations

from squirrel_mcp.cli import asking
from squirrel_mcp.crypto import recovery
from squirrel_mcp.errors import InvalidInput

_LAST = 5  # symbols: the last full group and the check symbol


def require_terminal() -> None:
    """InvalidInput where nobody could be shown a code, for commands that can do without one."""
    if not asking.can_show():
        raise InvalidInput(
            "recovery code",
            "There is no terminal to show a recovery code on: use --no-recovery, and `recovery new` later.",
        )


def make() -> bytes:
    """A new code's 20 bytes, shown and confirmed. InvalidInput, before anything was changed, if it was not."""
    if not asking.can_show():
        raise InvalidInput("recovery code", "A recovery code is shown once, to a person at a terminal.")
    secret = recovery.generate()
    code = recovery.to_code(secret)
    asking.say("Your recovery code. It opens the memories when the passphrase is lost, for whoever has it.")
    asking.say("Write it down and keep it away from this machine; it is not shown again.")
    asking.say(f"\n    {code}\n")
    wanted = recovery.normalise(code)
    for _ in range(asking.TRIES):
        typed = recovery.normalise(asking.line(f"To confirm, type its last two groups (the last {_LAST} symbols)"))
        if typed in (wanted, wanted[-_LAST:]):
            return secret
        asking.say("That is not how it ends.")
    raise InvalidInput("recovery code", "The recovery code was not confirmed and is not valid; nothing was changed.")
