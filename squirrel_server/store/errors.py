"""Every error a store raises on purpose.

    StoreError                       one sentence for people, a stable `code` for programs
    ├── Refused                      the request was checked and turned down; nothing was changed
    │   ├── Malformed                malformed         bytes, order or numbers that no correct client sends
    │   ├── TooLarge                 too_large         over a cap
    │   ├── AppendDenied             append_denied     the append key is absent or wrong
    │   ├── HeadMoved                head_moved        somebody else wrote first; `.head` is the log's
    │   ├── Forgotten                forgotten         the memory has a tombstone, nothing follows it
    │   ├── UnknownMemory            unknown_memory    a tombstone for a memory that was never put
    │   ├── UnknownAccount           unknown_account
    │   ├── UnknownObject            unknown_object    never stored, or erased by a tombstone
    │   ├── AccountExists            account_exists
    │   ├── InviteRefused            invite_refused    unknown, expired, or used for something else
    │   ├── UnknownKey               unknown_key       this account has no such API key
    │   └── TooManyKeys              too_many_keys     the account has as many API keys as it may
    └── Failed                       the database could not do it
        ├── Unavailable              unavailable       busy, unreadable, unreachable: try again
        ├── Full                     full              no space left; works again once there is some
        ├── NewerSchema              newer_schema      a later version of the program made this database
        ├── NotAVault                not_a_vault       corrupt, or another application's file
        └── UnsupportedUrl           unsupported_url   a database address this program cannot use

No text of these errors holds a key, a verifier, the bytes of a record, or the address with its password.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from squirrel_server.store.interface import Head


class StoreError(Exception):
    """Base of all errors here; `code` is stable, `str(error)` is one sentence."""

    code = "store_error"


class Refused(StoreError):
    code = "refused"


class Malformed(Refused):
    code = "malformed"


class TooLarge(Refused):
    code = "too_large"


class AppendDenied(Refused):
    code = "append_denied"

    def __init__(self) -> None:
        super().__init__("The append key is not the one this account was given.")


class HeadMoved(Refused):
    """`head` is the (seq, mac) the log had when the request was refused."""

    code = "head_moved"

    def __init__(self, head: Head) -> None:
        super().__init__(f"The log has moved on to entry {head.seq}; nothing was stored.")
        self.head = head


class Forgotten(Refused):
    code = "forgotten"


class UnknownMemory(Refused):
    code = "unknown_memory"


class UnknownAccount(Refused):
    code = "unknown_account"

    def __init__(self) -> None:
        super().__init__("There is no such account here.")


class UnknownObject(Refused):
    code = "unknown_object"

    def __init__(self) -> None:
        super().__init__("This account has no such object.")


class AccountExists(Refused):
    code = "account_exists"

    def __init__(self) -> None:
        super().__init__("This account is registered already.")


class InviteRefused(Refused):
    code = "invite_refused"

    def __init__(self) -> None:
        super().__init__("The invite is unknown, expired or used. Ask whoever runs the server for another one.")


class UnknownKey(Refused):
    code = "unknown_key"

    def __init__(self) -> None:
        super().__init__("This account has no such API key.")


class TooManyKeys(Refused):
    code = "too_many_keys"


class Failed(StoreError):
    code = "failed"


class Unavailable(Failed):
    code = "unavailable"


class Full(Failed):
    code = "full"


class NewerSchema(Failed):
    code = "newer_schema"


class NotAVault(Failed):
    code = "not_a_vault"


class UnsupportedUrl(Failed):
    code = "unsupported_url"
