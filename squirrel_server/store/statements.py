"""The queries, built once: SQLAlchemy then has their SQL in its cache from the second use on.

They name the account by its short number, `:account`, once the first of them has looked it up.
"""

from __future__ import annotations

from sqlalchemy import BindParameter, Delete, Select, and_, bindparam, delete, exists, insert, select, update

from squirrel_server.store.schema import accounts, api_keys, invites, log, memories, objects

_ACCOUNT: BindParameter[int] = bindparam("account")

FIND_ACCOUNT = select(accounts).where(accounts.c.account_id == bindparam("account_id"))
LOCK_ACCOUNT = FIND_ACCOUNT.with_for_update()  # SQLite has locked the whole file by then and leaves this out
FIND_HEAD = select(accounts.c.account, accounts.c.head_seq, accounts.c.head_mac).where(
    accounts.c.account_id == bindparam("account_id")
)
ACCOUNT_IDS = select(accounts.c.account_id).order_by(accounts.c.account)
ADD_ACCOUNT = insert(accounts)

# Parameters of an UPDATE must not be named like its columns.
MOVE_HEAD = (
    update(accounts)
    .where(accounts.c.account == bindparam("in_account"))
    .values(head_seq=bindparam("to_seq"), head_mac=bindparam("to_mac"))
)
CHANGE_KEY_SET = (
    update(accounts)
    .where(accounts.c.account == bindparam("in_account"))
    .values(
        generation=bindparam("to_generation"),
        wraps=bindparam("to_wraps"),
        previous_keys=bindparam("to_previous_keys"),
        append_verifier=bindparam("to_append_verifier"),
    )
)

ADD_ENTRIES = insert(log)
ADD_OBJECTS = insert(objects)
ADD_MEMORIES = insert(memories)
MOVE_MEMORIES = (
    update(memories)
    .where(memories.c.account == bindparam("in_account"), memories.c.memory_id == bindparam("in_memory"))
    .values(revision=bindparam("to_revision"), forgotten=bindparam("to_forgotten"), seq=bindparam("to_seq"))
)
ERASE_OBJECTS = delete(objects).where(objects.c.account == _ACCOUNT, objects.c.memory_id == bindparam("memory_id"))

FIND_MEMORIES = select(memories.c.memory_id, memories.c.revision, memories.c.forgotten, memories.c.seq).where(
    memories.c.account == _ACCOUNT, memories.c.memory_id.in_(bindparam("ids", expanding=True))
)
FIND_OBJECT = (
    select(objects.c.body)
    .join(log, and_(log.c.account == objects.c.account, log.c.seq == objects.c.seq))
    .where(log.c.account == _ACCOUNT, log.c.object_sha256 == bindparam("sha256"))
)

ENTRIES_BETWEEN = (
    select(log.c.entry)
    .where(log.c.account == _ACCOUNT, log.c.seq >= bindparam("first"), log.c.seq <= bindparam("last"))
    .order_by(log.c.seq)
)
COUNT_GENERATION = (
    update(accounts).where(accounts.c.account == bindparam("in_account")).values(generation=bindparam("to_generation"))
)
LAST_KEY_CHANGE = (
    select(log.c.entry).where(log.c.account == _ACCOUNT, log.c.memory_id.is_(None)).order_by(log.c.seq.desc()).limit(1)
)
# The first put of a living memory without its object.
MISSING_OBJECT = (
    select(log.c.seq)
    .where(
        log.c.account == _ACCOUNT,
        log.c.object_sha256.is_not(None),
        ~exists().where(objects.c.account == log.c.account, objects.c.seq == log.c.seq).correlate(log),
        exists()
        .where(
            memories.c.memory_id == log.c.memory_id,
            memories.c.account == log.c.account,
            memories.c.forgotten.is_(False),
        )
        .correlate(log),
    )
    .order_by(log.c.seq)
    .limit(1)
)

# Children first, and the memories while the log still says which they are: their key starts with their ids.
ERASE_ACCOUNT: tuple[Delete, ...] = (
    delete(memories).where(
        memories.c.account == _ACCOUNT,
        memories.c.memory_id.in_(select(log.c.memory_id).where(log.c.account == _ACCOUNT)),
    ),
    *(delete(table).where(table.c.account == _ACCOUNT) for table in (objects, log, api_keys, invites, accounts)),
)


def _page(body: Select[tuple[bytes]]) -> Select[tuple[bytes, bytes | None]]:
    """Entries in order, each with an object that is looked up for it.

    A subquery per entry, not a join: it leaves a planner without statistics nothing to get wrong, and a page
    costs what is on it and not what is in the account.
    """
    return (
        select(log.c.entry, body.correlate(log).scalar_subquery())
        .where(log.c.account == _ACCOUNT, log.c.seq > bindparam("after"))
        .order_by(log.c.seq)
        .limit(bindparam("limit"))
    )


_OBJECT = select(objects.c.body).where(objects.c.account == log.c.account, objects.c.seq == log.c.seq)
_IS_LAST_OF_ITS_MEMORY = exists().where(
    memories.c.memory_id == log.c.memory_id, memories.c.account == log.c.account, memories.c.seq == log.c.seq
)
READ_ALL = _page(_OBJECT)
# If the last entry of a memory is a tombstone, there is no object at its seq.
READ_LATEST = _page(_OBJECT.where(_IS_LAST_OF_ITS_MEMORY.correlate(log)))
