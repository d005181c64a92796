"""The store of the demo as a thief of its files would see it: no passphrase is used here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from squirrel_mcp.crypto import envelope, log
from squirrel_mcp.memory import format_time
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.local import LocalStore


class Sealed(NamedTuple):
    """A record. memory_id: its first 8 hex digits; time: as the entry claims it."""

    seq: int
    memory_id: str
    time: str
    sealed: bytes

    @property
    def ciphertext(self) -> bytes:
        """What comes after the header, which holds the key's public name and a salt."""
        return self.sealed[envelope.HEADER_BYTES :]


class StoreView:
    """Reads the vault file beside the server that uses it."""

    def __init__(self, data_dir: Path) -> None:
        self._store = LocalStore(Settings(data_dir=data_dir).vault_path)

    def __enter__(self) -> StoreView:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._store.close()

    def records(self) -> list[Sealed]:
        """Every record that is still in the store, in the order of the log."""
        found = []
        for raw, content in self._store.read_log(0, objects="all").items:
            entry = log.parse(raw)
            if content is not None:
                moment = datetime.fromtimestamp(entry.time / 1000, UTC)
                found.append(Sealed(entry.seq, entry.memory_id.hex()[:8], format_time(moment), content))
        return found


def files_with(folder: Path, wanted: Sequence[bytes]) -> tuple[int, list[Path]]:
    """How many files are under `folder`, and which of them hold any of the byte strings."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return len(files), [path for path in files if _holds(path.read_bytes(), wanted)]


def _holds(content: bytes, wanted: Sequence[bytes]) -> bool:
    return any(piece in content for piece in wanted)
