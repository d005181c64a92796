"""Moving the embedded vault to a server: the same log, entry for entry, so that ids, dates and history are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from squirrel_mcp import remote_vault
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.crypto.pin import Pin
from squirrel_mcp.crypto.primitives import hash_bytes
from squirrel_mcp.crypto.verifier import LogItem
from squirrel_mcp.errors import OmissionDetected
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.api_key import ApiKey
from squirrel_mcp.sync.local import LocalStore
from squirrel_mcp.sync.pins import PinFolder
from squirrel_mcp.sync.remote import RemoteStore
from squirrel_mcp.sync.transport import Transport
from squirrel_mcp.vault import Vault

_BATCH_BYTES = 1 << 20  # base64 and JSON make a third more of it; the server takes 2 MiB
_BATCH_ENTRIES = 2_000


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
    local vault stays what it was.
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
            remote.append(append_key, batch)
            sent += len(batch)
            progress(sent, head.seq)
        _compare(remote, head)
        # Who saved here meanwhile is taken along; then nobody can any more.
        while (served := local.account().head) != head or not local.retire(served, moved_path(settings)):
            for batch in _batches(local, head.seq, served):
                remote.append(append_key, batch)
            head = served
    pin = Pin(vault.key_set, head, (local.route, remote.route))
    PinFolder(settings.data_dir).write(pin, vault.ring)
    return key


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


def _compare(remote: RemoteStore, head: Head) -> None:
    if remote.account().head != head:
        raise OmissionDetected("The server does not show what was sent to it; the local vault was left as it is.")
