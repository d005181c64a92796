"""A store for sealed records and their log: usable in-process, without HTTP and without any key.

`SqlStore` brings SQLAlchemy along and is therefore loaded when it is first asked for; the rest is light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from squirrel_server.store.errors import (
    AccountExists,
    AppendDenied,
    Failed,
    Forgotten,
    Full,
    HeadMoved,
    InviteRefused,
    Malformed,
    NewerSchema,
    NotAVault,
    Refused,
    StoreError,
    TooLarge,
    TooManyKeys,
    Unavailable,
    UnknownAccount,
    UnknownKey,
    UnknownMemory,
    UnknownObject,
    UnsupportedUrl,
)
from squirrel_server.store.interface import (
    MAX_BATCH_BYTES,
    MAX_ENTRIES,
    MAX_OBJECT_BYTES,
    MAX_PAGE_BYTES,
    AccountRecord,
    Head,
    LogPage,
    Objects,
    Store,
)

if TYPE_CHECKING:
    from squirrel_server.store.sql_store import SqlStore

__all__ = [
    "MAX_BATCH_BYTES",
    "MAX_ENTRIES",
    "MAX_OBJECT_BYTES",
    "MAX_PAGE_BYTES",
    "AccountExists",
    "AccountRecord",
    "AppendDenied",
    "Failed",
    "Forgotten",
    "Full",
    "Head",
    "HeadMoved",
    "InviteRefused",
    "LogPage",
    "Malformed",
    "NewerSchema",
    "NotAVault",
    "Objects",
    "Refused",
    "SqlStore",
    "Store",
    "StoreError",
    "TooLarge",
    "TooManyKeys",
    "Unavailable",
    "UnknownAccount",
    "UnknownKey",
    "UnknownMemory",
    "UnknownObject",
    "UnsupportedUrl",
]


def __getattr__(name: str) -> Any:
    if name == "SqlStore":
        from squirrel_server.store.sql_store import SqlStore

        return SqlStore
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
