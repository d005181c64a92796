"""The pins of this device: one small file per account that it has seen."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from squirrel_mcp import private_files
from squirrel_mcp.crypto import pin as pin_format
from squirrel_mcp.crypto.key_set import KeyRing, KeySet
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.crypto.pin import Pin, Route, SealedPin
from squirrel_mcp.errors import ForeignAccount, ForeignKey, KeyRecordDowngrade, PinDamaged

_TOUCH_SECONDS = 60
_LOCK_SECONDS = 1.0  # a pin that could not be written is written at the next sync


class PinFolder:
    """Reads and writes `state-*.bin` in one private folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def all(self) -> list[SealedPin]:
        """Every pin; PinDamaged if one of them does not read."""
        found = (self._read(path) for path in sorted(self._folder.glob("state-*.bin")))
        return [sealed for sealed in found if sealed is not None]

    def by_route(self, route: Route) -> list[SealedPin]:
        """Every pin that says its account was reached by `route`."""
        return [sealed for sealed in self.all() if route in sealed.pin.routes]

    def of_account(self, account_id: bytes) -> SealedPin | None:
        return self._read(self._path(account_id))

    def check(self, route: Route, key_set: KeySet) -> SealedPin | None:
        """Before any KDF: ForeignAccount, or KeyRecordDowngrade for a key set older than, or beside, the pinned."""
        if any(sealed.pin.account_id != key_set.account_id for sealed in self.by_route(route)):
            raise ForeignAccount("Another account's memories stand where this device knows a different account.")
        sealed = self.of_account(key_set.account_id)
        if sealed is not None:
            refuse_downgrade(sealed.pin.key_set, key_set)
        return sealed

    def write(self, pin: Pin, ring: KeyRing) -> None:
        """Keep `pin`, unless another process has pinned a later head already."""
        path = self._path(pin.account_id)
        with private_files.lock(path.with_suffix(".lock"), _LOCK_SECONDS):
            sealed = self._read(path)
            if sealed is not None:
                later = sealed.pin.head.seq > pin.head.seq
                if later and set(pin.routes) <= set(sealed.pin.routes):
                    return
                pin = (sealed.pin if later else pin).with_routes((*sealed.pin.routes, *pin.routes))
            key = _key_of(ring, pin)
            if key is not None:
                private_files.replace(path, pin_format.encode(pin, key))

    def touch(self, account_id: bytes) -> None:
        """Note that the account was seen again, unchanged; to the minute, which is enough to tell people."""
        path = self._path(account_id)
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > _TOUCH_SECONDS:
                os.utime(path)

    def seen(self, account_id: bytes) -> float | None:
        """When the pin was written or touched, in seconds since the epoch."""
        try:
            return self._path(account_id).stat().st_mtime
        except OSError:
            return None

    def drop(self, route: Route) -> None:
        """Forget what this device has seen of the accounts at `route`, damaged pins included."""
        for path in sorted(self._folder.glob("state-*.bin")):
            try:
                sealed = self._read(path)
            except PinDamaged:
                sealed = None
            if sealed is None or route in sealed.pin.routes:
                with private_files.lock(path.with_suffix(".lock")):
                    path.unlink(missing_ok=True)

    def _path(self, account_id: bytes) -> Path:
        return self._folder / pin_format.file_name(account_id)

    def _read(self, path: Path) -> SealedPin | None:
        raw = private_files.read(path, pin_format.MAX_PIN_BYTES)
        try:
            return None if raw is None else pin_format.decode(raw)
        except PinDamaged as error:
            raise PinDamaged(f"{error} To trust the vault as it is now, run `squirrel-mcp accept-rollback`.") from None


def refuse_downgrade(known: KeySet, served: KeySet) -> None:
    """KeyRecordDowngrade for a lower generation, or the same one with other bytes."""
    if served.generation < known.generation or (served.generation == known.generation and served.raw != known.raw):
        raise KeyRecordDowngrade("The key record is older than, or differs from, the one this device has seen.")


def check_ring(sealed: SealedPin, ring: KeyRing) -> None:
    """After unlocking: ForeignKey unless the pinned key is among the account's, PinDamaged for a wrong MAC."""
    deks = [key.dek for key in ring.retired] + [ring.current]
    if not any(dek.kid == sealed.pin.key_set.kid for dek in deks):
        raise ForeignKey("The account has a key that does not follow from the one this device knows.")
    sealed.check(deks)


def _key_of(ring: KeyRing, pin: Pin) -> Dek | None:
    # None: another process pinned a rotation that this one has not met yet; its pin stays.
    return ring.current if pin.key_set.kid == ring.current.kid else None
