"""Every error this package raises on purpose.

    SquirrelError                      one sentence for people, a stable `code` for programs
    ├── InvalidInput                   invalid_input        a value that may not be stored or asked for
    ├── NotFound                       not_found            no such revision, entry, account
    │   └── MemoryNotFound             not_found            no such memory
    ├── Conflict                       conflict             somebody else changed the same thing first
    ├── ConfigurationError             configuration        settings that contradict or are malformed
    ├── ExportDamaged                  export_damaged       a file to import that is no export, or was altered
    ├── UnsafeFile                     unsafe_file          a link, a foreign owner, wrong modes
    ├── NotUnlocked
    │   ├── PassphraseMissing          passphrase_missing
    │   ├── PassphraseRefused          passphrase_refused   empty, no Unicode, a placeholder
    │   │   └── NewPassphraseRefused   passphrase_refused   one of these, or too short for a new one
    │   └── WrongPassphrase            wrong_passphrase     or an altered wrap: the two look the same
    ├── RecordDamaged                  record_damaged       one memory that does not open
    ├── KeyRingFull                    key_ring_full        no room for another earlier key
    ├── Verdict                        the store answered, and its answer is not to be believed
    │   ├── KeySetDamaged              key_set_damaged
    │   ├── KeyRecordDowngrade         key_record_downgrade
    │   ├── ForeignAccount             foreign_account
    │   ├── ForeignKey                 foreign_key
    │   ├── PinDamaged                 pin_damaged
    │   ├── RollbackDetected           rollback_detected
    │   ├── ForkDetected               fork_detected
    │   ├── OmissionDetected           omission_detected
    │   ├── LogDamaged                 log_damaged          `.seq` names the entry
    │   ├── UpdateRequired             update_required
    │   └── KeysChanged                keys_changed
    └── StoreError                     the store could not do it
        ├── HeadMoved                  head_moved           `.head` (seq, mac) as the store reports it
        ├── AppendDenied               append_denied
        ├── StoreRefused               the store's own code (`malformed`, `too_large`, `forgotten` ...)
        ├── VaultMissing               vault_missing        the pin names a vault file that is gone
        ├── VaultMoved                 vault_moved          it went to a server
        ├── StoreUnavailable           store_unavailable    busy, unreadable, unreachable: try again
        │   ├── BadReply               bad_reply            not the protocol: a captive portal, a broken proxy
        │   ├── NotTrusted             not_trusted          the server's certificate is not one to believe
        │   └── TooManyRequests        too_many_requests    the server asks for a longer pause than we wait
        ├── StoreFull                  store_full           no space left
        └── NewerSchema                newer_schema         a later version of the program made this file

A verdict is never retried; a StoreError may be. No error text holds a passphrase, a key or the text of a memory.
"""

from __future__ import annotations


class SquirrelError(Exception):
    """Base of all errors here; `code` is stable, `str(error)` is one sentence for people."""

    code = "error"


class InvalidInput(SquirrelError):
    """`field` names what was wrong."""

    code = "invalid_input"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class NotFound(SquirrelError):
    code = "not_found"


class MemoryNotFound(NotFound):
    def __init__(self) -> None:
        super().__init__("There is no memory with this id: a search or a list gives the ids there are.")


class Conflict(SquirrelError):
    code = "conflict"


class ConfigurationError(SquirrelError):
    code = "configuration"


class ExportDamaged(SquirrelError):
    code = "export_damaged"


class UnsafeFile(SquirrelError):
    code = "unsafe_file"


class NotUnlocked(SquirrelError):
    code = "not_unlocked"


class PassphraseMissing(NotUnlocked):
    code = "passphrase_missing"


class PassphraseRefused(NotUnlocked):
    code = "passphrase_refused"


class NewPassphraseRefused(PassphraseRefused):
    """It was to become the passphrase: wrong input, where another one is no way in."""


class WrongPassphrase(NotUnlocked):
    code = "wrong_passphrase"

    def __init__(self) -> None:
        super().__init__("The passphrase is wrong, or the key record was altered.")


class RecordDamaged(SquirrelError):
    code = "record_damaged"

    def __init__(self, memory_id: str) -> None:
        super().__init__(f"Memory {memory_id} does not open: its record is damaged.")
        self.memory_id = memory_id


class KeyRingFull(SquirrelError):
    code = "key_ring_full"

    def __init__(self, rotations: int) -> None:
        super().__init__(
            f"The account has had {rotations} rotations, and its list of earlier keys has no room for another one: "
            "nothing was changed; export it and import it into a new account."
        )


class Verdict(SquirrelError):
    code = "verdict"


class KeySetDamaged(Verdict):
    code = "key_set_damaged"


class KeyRecordDowngrade(Verdict):
    code = "key_record_downgrade"


class ForeignAccount(Verdict):
    code = "foreign_account"


class ForeignKey(Verdict):
    code = "foreign_key"


class PinDamaged(Verdict):
    code = "pin_damaged"


class RollbackDetected(Verdict):
    code = "rollback_detected"


class ForkDetected(Verdict):
    code = "fork_detected"


class OmissionDetected(Verdict):
    code = "omission_detected"


class LogDamaged(Verdict):
    code = "log_damaged"

    def __init__(self, seq: int, what: str) -> None:
        super().__init__(f"The log is damaged at entry {seq}: {what}.")
        self.seq = seq


class UpdateRequired(Verdict):
    code = "update_required"


class KeysChanged(Verdict):
    code = "keys_changed"


class StoreError(SquirrelError):
    code = "store_error"


class HeadMoved(StoreError):
    code = "head_moved"

    def __init__(self, head: tuple[int, bytes]) -> None:
        super().__init__("Somebody else wrote first; the change was not stored.")
        self.head = head


class AppendDenied(StoreError):
    code = "append_denied"

    def __init__(self) -> None:
        super().__init__("The store refused the write: the append key is not the one it knows.")


class StoreRefused(StoreError):
    """The store checked the request and refused it; `code` is the store's own."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class VaultMissing(StoreError):
    code = "vault_missing"


class VaultMoved(StoreError):
    code = "vault_moved"


class StoreUnavailable(StoreError):
    code = "store_unavailable"


class BadReply(StoreUnavailable):
    code = "bad_reply"


class NotTrusted(StoreUnavailable):
    code = "not_trusted"


class TooManyRequests(StoreUnavailable):
    code = "too_many_requests"


class StoreFull(StoreError):
    code = "store_full"


class NewerSchema(StoreError):
    code = "newer_schema"
