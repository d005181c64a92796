"""The queries about API keys and invites, built once as those in `statements`."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, func, insert, or_, select, update

from squirrel_server.store.schema import accounts, api_keys, invites, log

FIND_KEY = (
    select(
        api_keys.c.key_id,
        api_keys.c.digest,
        api_keys.c.scope,
        api_keys.c.created_day,
        api_keys.c.last_used_day,
        api_keys.c.expires,
        accounts.c.account_id,
        accounts.c.head_seq,
        accounts.c.upload_seq,
    )
    .join(accounts, accounts.c.account == api_keys.c.account)
    .where(api_keys.c.key_id == bindparam("key_id"))
)
LIST_KEYS = (
    select(
        api_keys.c.key_id,
        api_keys.c.scope,
        api_keys.c.created_day,
        api_keys.c.last_used_day,
        api_keys.c.expires,
    )
    .join(accounts, accounts.c.account == api_keys.c.account)
    .where(accounts.c.account_id == bindparam("account_id"))
    .order_by(api_keys.c.created_day, api_keys.c.key_id)
)
COUNT_KEYS = select(func.count()).select_from(api_keys).where(api_keys.c.account == bindparam("account"))
ADD_KEY = insert(api_keys)
DROP_KEY = delete(api_keys).where(api_keys.c.account == bindparam("account"), api_keys.c.key_id == bindparam("key_id"))
# The condition keeps two processes that notice the same new day from writing twice, and the day from going back.
USE_KEY = (
    update(api_keys)
    .where(
        api_keys.c.key_id == bindparam("of_key"),
        or_(api_keys.c.last_used_day.is_(None), api_keys.c.last_used_day < bindparam("today")),
    )
    .values(last_used_day=bindparam("today"))
)

ADD_INVITE = insert(invites)
LOCK_INVITE = (
    select(invites.c.account, invites.c.key_id)
    .where(invites.c.digest == bindparam("digest"), invites.c.expires > bindparam("now"))
    .with_for_update()
)
USE_INVITE = (
    update(invites)
    .where(invites.c.digest == bindparam("of_invite"))
    .values(account=bindparam("to_account"), key_id=bindparam("to_key"))
)
DROP_EXPIRED_INVITES = delete(invites).where(invites.c.account.is_(None), invites.c.expires <= bindparam("now"))

# The whole of what an account was opened with, while there is nothing more.
FIND_OPENED = (
    select(accounts, log.c.entry)
    .join(log, and_(log.c.account == accounts.c.account, log.c.seq == 1))
    .where(accounts.c.account == bindparam("account"), accounts.c.head_seq == 1)
    .with_for_update()
)
