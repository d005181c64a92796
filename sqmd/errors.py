"""Every error that sqmd raises on purpose.

    SqmdError                      one sentence for people, a stable `code` for programs
    ├── ConfigError                config               a setting that cannot be used; names file, line and key
    ├── InvalidInput               invalid_input        an argument outside what is allowed; `.field` names it
    ├── NoSuchPath                 no_such_path         a file or folder to index that is not there
    ├── Unreadable                 unreadable           one file that is no text; `.reason` goes with its row
    ├── NotIndexed                 not_indexed          there is no database yet
    ├── NotInIndex                 not_in_index         no such document, section or job
    ├── IndexBusy                  index_busy           another process writes
    ├── ModelMismatch              model_mismatch       the database's vectors are another model's
    ├── NewerFormat                newer_format         a later version of sqmd made the database
    ├── DatabaseDamaged            database_damaged     it does not open, or holds what sqmd did not write
    ├── DatabaseUnavailable        database_unavailable no space, no permission, no connection: try again
    ├── EmbedderDown               embedder_down        nothing computes vectors at present
    └── PortBusy                   port_busy            somebody else listens there

No error holds the text of a document, a query or the API's key.
"""

from __future__ import annotations


class SqmdError(Exception):
    """Base of all errors here; `code` is stable, `str(error)` is one sentence on one line."""

    code = "error"

    def __init__(self, message: str) -> None:
        # File names and keys come from outside and may hold anything; what they hold is not to break the line.
        super().__init__(one_line(message))


class ConfigError(SqmdError):
    code = "config"


class InvalidInput(SqmdError):
    code = "invalid_input"

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class NoSuchPath(SqmdError):
    code = "no_such_path"

    def __init__(self, path: object) -> None:
        super().__init__(f"{path} is not there.")


class Unreadable(SqmdError):
    """`reason` says what is wrong without the file's name, such as `not UTF-8 at byte 17`."""

    code = "unreadable"

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"{path} cannot be read: {reason}.")
        self.reason = reason


class NotIndexed(SqmdError):
    code = "not_indexed"

    def __init__(self) -> None:
        super().__init__("not indexed yet: run sqmd index --path DIR")


class NotInIndex(SqmdError):
    code = "not_in_index"


class IndexBusy(SqmdError):
    code = "index_busy"


class ModelMismatch(SqmdError):
    code = "model_mismatch"

    def __init__(self, indexed: str, configured: str) -> None:
        super().__init__(
            f"The database was indexed with the model {indexed} and {configured} is configured: "
            "run sqmd index --force to index it anew."
        )


class NewerFormat(SqmdError):
    code = "newer_format"


class DatabaseDamaged(SqmdError):
    code = "database_damaged"

    def __init__(self, location: str) -> None:
        super().__init__(
            f"The database at {location} is damaged or not one of sqmd's: move it away and run sqmd index again."
        )


class DatabaseUnavailable(SqmdError):
    code = "database_unavailable"


class EmbedderDown(SqmdError):
    code = "embedder_down"


class PortBusy(SqmdError):
    code = "port_busy"


def one_line(text: str) -> str:
    """`text` with everything that is not printable, line ends and lone surrogates included, as a Python escape."""
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
