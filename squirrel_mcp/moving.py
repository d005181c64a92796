"""Moving the embedded vault to a server: the same log, entry for entry, so that ids, dates and history are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

from squirrel_mcp import private_files, remote_vault
from squirrel_mcp.crypto import log
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.pin import Pin
from squirrel_mcp.crypto.primitives import hash_bytes
from squirrel_mcp.crypto.verifier import LogItem
from squirrel_mcp.errors import AppendDenied, Conflict, OmissionDetected, StoreRefused
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.api_key import ApiKey
from squirrel_mcp.sync.local import LocalStore, route_of
from squirrel_mcp.sync.pins import PinFolder
from squirrel_mcp.sync.remote import RemoteStore
from squirrel_mcp.sync.transport import Transport
from squirrel_mcp.vault import Vault

_BATCH_BYTES = 1 << 20  # base64 and JSON make a third more of it; the server takes 2 MiB
_BATCH_ENTRIES = 2_000
_APART = (
    "The vault here and the account on the server have gone on apart: nothing was changed. Without "
    "SQUIRREL_API_BASE_URL, `squirrel-mcp export` writes what is here to a file that can be imported there."
)


def move(
    settings: Settings,
    vault: Vault,
    to: Transport,
    invite: str,
    *,
    key: ApiKey | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
    show_key: Callable[[ApiKey], None] = lambda key: None,
) -> ApiKey:
    """Bring the unlocked local `vault` to a server and set its file aside. The account's API key comes back.

    `show_key` is given the key before the first batch goes out: once more than one entry is there, an interrupted move
    goes on with that `key` only. What the server has already is passed over. Until the last batch is stored the
    local vault stays what it was. Conflict where the server does not take the rest: the keys of the vault were changed
    in between, and `start_over` is the way out.
    """
    if vault.verdict is not None:
        raise vault.verdict
    append_key = vault.ring.current.append
    with closing(LocalStore(settings.vault_path)) as local:
        head = vault.head
        first, _ = local.read_log(0, limit=1).items[0]
        if key is None:
            key = remote_vault.register(to, invite, vault.key_set, first, hash_bytes(append_key), upload=head)
            show_key(key)
        remote = RemoteStore(to, key)
        sent = 1
        for batch in _batches(local, 1, head):
            _send(remote, append_key, batch)
            sent += len(batch)
            progress(sent, head.seq)
        _compare(remote, head)
        # Before the file goes: whoever is stopped in between finds in the pin where the memories are.
        PinFolder(settings.data_dir).write(Pin(vault.key_set, head, (local.route, remote.route)), vault.ring)
        # Who saved here meanwhile is taken along; then nobody can any more.
        while (served := local.account().head) != head or not local.retire(served, moved_path(settings)):
            for batch in _batches(local, head.seq, served):
                _send(remote, append_key, batch)
            head = served
    pin = Pin(vault.key_set, head, (local.route, remote.route))
    PinFolder(settings.data_dir).write(pin, vault.ring)
    return key


def is_complete(settings: Settings, to: Transport, key: ApiKey) -> bool:
    """Whether the server says that its log goes as far as the one in the file, or further: nothing is left to send.

    Conflict where the two have gone on apart.
    """
    if not private_files.check(settings.vault_path):
        return False
    remote = RemoteStore(to, key)
    try:
        there = remote.account()
    except StoreRefused as error:
        if error.code != "uploading":
            raise
        return False
    with closing(LocalStore(settings.vault_path)) as local:
        here = local.account()
    if there.account_id != here.account_id or there.head.seq < here.head.seq:
        return False
    (raw, _), *_ = remote.read_log(here.head.seq - 1, limit=1).items or [(b"", None)]
    if len(raw) != log.ENTRY_BYTES or log.parse(raw).head != here.head:
        raise Conflict(_APART)
    return True


def finish(settings: Settings, there: Vault) -> None:
    """Set the file aside whose whole log the account on the server, `there`, begins with: the move's last step.

    Conflict, and nothing changed, where the file has entries of its own.
    """
    with closing(LocalStore(settings.vault_path)) as local:
        head = local.account().head
        if there.head_at(head.seq) != head or not local.retire(head, moved_path(settings)):
            raise Conflict(_APART)
        PinFolder(settings.data_dir).write(Pin(there.key_set, there.head, (local.route,)), there.ring)


def start_over(settings: Settings, vault: Vault, to: Transport, key: ApiKey) -> None:
    """Erase what an interrupted move has left on the server, so that a new one can begin with a new invite.

    Conflict, and nothing erased, where the account there holds anything that the local `vault` does not.
    """
    _erase(settings, vault, RemoteStore(to, key))
    # The pin no longer says that the memories are there.
    here, pins = route_of(settings.vault_path), PinFolder(settings.data_dir)
    pins.drop(here)
    pins.write(Pin(vault.key_set, vault.head, (here,)), vault.ring)


def _erase(settings: Settings, vault: Vault, remote: RemoteStore) -> None:
    try:
        there = remote.account()
    except StoreRefused as error:
        if error.code == "unauthenticated":
            return  # this was done before, and the answer was lost
        if error.code != "uploading":
            raise
    else:
        # The move had come to its end, or nearly: other devices may have written since.
        if there.account_id != vault.account_id or not _has(settings, there.head):
            raise Conflict("The account on the server has entries that this vault does not have: nothing was erased.")
    deks = [vault.ring.current, *(retired.dek for retired in reversed(vault.ring.retired))]
    for dek in deks[:-1]:
        with suppress(AppendDenied):  # the server knows the key that was in force when the move began
            return remote.delete_account(dek.append)
    remote.delete_account(deks[-1].append)


def moved_path(settings: Settings) -> Path:
    """Where the vault's file goes: beside its old place, still sealed, for the person to delete."""
    return settings.vault_path.with_name("vault-moved.db")


def _batches(local: LocalStore, after: int, to: Head) -> Iterator[list[LogItem]]:
    """The entries behind seq `after` up to `to`, with every object that was not erased."""
    batch: list[LogItem] = []
    size = 0
    while after < to.seq:
        page = local.read_log(after, objects="all")
        for raw, content in page.items[: to.seq - after]:
            size += len(raw) + len(content or b"")
            if batch and (size > _BATCH_BYTES or len(batch) >= _BATCH_ENTRIES):
                yield batch
                batch, size = [], len(raw) + len(content or b"")
            batch.append((raw, content))
        after += len(page.items)
    if batch:
        yield batch


def _send(remote: RemoteStore, append_key: bytes, batch: list[LogItem]) -> None:
    try:
        remote.append(append_key, batch)
        return
    except AppendDenied:
        pass
    except StoreRefused as error:
        if error.code != "malformed":
            raise
    raise Conflict(
        "The server does not take the rest of the vault: its passphrase, recovery code or key was changed after this "
        "move began. Run it again with --start-over and a new --invite; the vault here is what it was."
    )


def _has(settings: Settings, head: Head) -> bool:
    """Whether the entry that ends the log on the server is the local log's own at that place."""
    with closing(LocalStore(settings.vault_path)) as local:
        items = local.read_log(head.seq - 1, limit=1).items
    return bool(items) and log.parse(items[0][0]).head == head


def _compare(remote: RemoteStore, head: Head) -> None:
    if remote.account().head != head:
        raise OmissionDetected("The server does not show what was sent to it; the local vault was left as it is.")
