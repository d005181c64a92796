"""The tables, as queries see them. The DDL that makes them is in `migrations`; a test compares the two.

    accounts   one row each: the head, the key set in force and the append verifier; while an upload is under
               way (`upload_seq` beyond `head_seq`) the key set is the one it will end with
    log        every entry there ever was; rows are never changed
    objects    the sealed records that were not erased; rows go when their memory is forgotten
    memories   where each memory stands, so that a write need not look through its history
    api_keys   hashes of the keys a server lets in; empty in an embedded vault, as is the next
    invites    hashes of the tokens that open an account

Nothing is stored but what the protocol has: no names, no addresses, and of times only the days on which an API key
was made and last used, and when it or an invite expires (seconds since 1970, UTC).
"""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

accounts = Table(
    "accounts",
    metadata,
    # A short number for the 16-byte id, because it is part of every key of the other tables.
    Column("account", Integer, primary_key=True),
    Column("account_id", LargeBinary, nullable=False, unique=True),
    Column("head_seq", BigInteger, nullable=False),
    Column("head_mac", LargeBinary, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("wraps", LargeBinary, nullable=False),
    Column("previous_keys", LargeBinary),
    Column("append_verifier", LargeBinary, nullable=False),
    Column("upload_seq", BigInteger),  # where an account that was moved here began to be like any other
    Column("upload_mac", LargeBinary),
)

log = Table(
    "log",
    metadata,
    Column("account", Integer, ForeignKey("accounts.account"), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("entry", LargeBinary, nullable=False),
    Column("memory_id", LargeBinary),  # null for an entry of a key set
    Column("object_sha256", LargeBinary),  # null for all but puts; stays when the object is erased
    UniqueConstraint("account", "object_sha256"),
)

objects = Table(
    "objects",
    metadata,
    Column("account", Integer, primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("memory_id", LargeBinary, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index("objects_by_memory", "account", "memory_id"),
)

memories = Table(
    "memories",
    metadata,
    # The id first: a planner without statistics would take an account for a few rows and scan all of it.
    Column("memory_id", LargeBinary, primary_key=True),
    Column("account", Integer, primary_key=True),
    Column("revision", BigInteger, nullable=False),
    Column("forgotten", Boolean, nullable=False),
    Column("seq", BigInteger, nullable=False),  # of its last entry
)

api_keys = Table(
    "api_keys",
    metadata,
    Column("key_id", Text, primary_key=True),
    Column("account", Integer, ForeignKey("accounts.account"), nullable=False),
    Column("digest", LargeBinary, nullable=False),
    Column("scope", Text, nullable=False),
    Column("created_day", Integer, nullable=False),
    Column("last_used_day", Integer),
    Column("expires", BigInteger),
    Index("api_keys_by_account", "account"),
)

invites = Table(
    "invites",
    metadata,
    Column("digest", LargeBinary, primary_key=True),
    Column("expires", BigInteger, nullable=False),
    Column("account", Integer, ForeignKey("accounts.account")),  # the one it opened
    Column("key_id", Text),  # the key it was answered with
    Index("invites_by_account", "account"),
)

store_schema = Table("store_schema", metadata, Column("version", Integer, nullable=False))
