"""The tables, as queries see them. The DDL that makes them is in `migrations`; a test compares the two.

    accounts   one row each: the head, the key set in force and the append verifier
    log        every entry there ever was; rows are never changed
    objects    the sealed records that were not erased; rows go when their memory is forgotten
    memories   where each memory stands, so that a write need not look through its history

Nothing is stored but what the protocol has: no times, no names, no addresses.
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

store_schema = Table("store_schema", metadata, Column("version", Integer, nullable=False))
