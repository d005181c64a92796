"""An account with a story, and devices that know all, some or nothing of it.

seq 1 registration   2 tea   3 coffee   4 tea corrected   5 a secret   6 passphrase changed   7 coffee corrected
8 the secret forgotten   9 rotated   10 cake   <- here two of the devices were last in step
11 tea corrected again   12 honey   13 cake forgotten   14 passphrase changed   15 lemon
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from squirrel_mcp import opening
from squirrel_mcp.crypto import key_set, log
from squirrel_mcp.crypto.key_set import KeyRing, KeySet
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.errors import SquirrelError
from squirrel_mcp.memory import Changes, Draft
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.settings import Settings
from squirrel_mcp.vault import Vault, create_account
from tests.hostile_server import HostileServer, Shown, make_key

from ..conftest import CHEAP, PASSPHRASE, Clock

Device = Literal["fresh", "pinned", "cached"]
DEVICES: tuple[Device, ...] = ("fresh", "pinned", "cached")
RECOVERY = bytes(range(20))
SEEN = 10  # the seq at which "pinned" (pin only) and "cached" (pin and state cache) were last in step

_opened: dict[tuple[bytes, object], KeyRing] = {}


class RememberingUnlocker(Unlocker):
    """Stretches a passphrase once for each key set in all tests: what they are about comes before or after that."""

    def __call__(self, keys: KeySet) -> KeyRing:
        secret = self._at_hand or self.secret()
        known = (keys.raw, secret)
        if known not in _opened:
            _opened[known] = super().__call__(keys)
        self._at_hand = None
        return _opened[known]


@dataclass(frozen=True)
class Attempt:
    """What became of opening the vault on a device: an error, or the texts that are shown."""

    error: SquirrelError | None
    texts: dict[str, str]
    fingerprint: str = ""


class Scene:
    """The server, the account's states as backups, and folders of devices."""

    def __init__(self, server: HostileServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.key, self.other_key = make_key(), make_key()
        self.clock = Clock()
        self.true: set[tuple[str, str]] = set()  # every (id, text) there ever was
        self.rings: dict[int, KeyRing] = {}  # by generation
        self.key_sets: dict[int, KeySet] = {}
        self.states: dict[int, Shown] = {}  # honest, by seq of the head
        self._tell()

    def settings(self, device: str, key: str | None = None) -> Settings:
        return Settings(
            data_dir=self.folder / device,
            passphrase=PASSPHRASE,
            api_base_url=self.server.origin,
            api_key=key or self.key,
        )

    def open(self, device: str, key: str | None = None) -> Vault:
        settings = self.settings(device, key)
        return opening.open_vault(settings, unlocker(settings), clock=self.clock, parameters=CHEAP)

    def attempt(self, device: str) -> Attempt:
        """Open the vault there, and close it again."""
        try:
            vault = self.open(device)
        except SquirrelError as error:
            return Attempt(error, {})
        texts = {memory.id: memory.text for memory in vault.memories}
        fingerprint = vault.fingerprint()
        vault.close()
        return Attempt(vault.verdict, texts, fingerprint)

    def reset(self) -> None:
        """The end of the story, an honest server, and the devices as they were in the middle of it."""
        self.server.honest()
        self.server.keys = {self.key: self.account_id, self.other_key: self.other_id}
        self.server.restore(self.folder / "end.db")
        for device in DEVICES:
            shutil.rmtree(self.folder / device, ignore_errors=True)
        for device in ("pinned", "cached"):
            shutil.copytree(self.folder / "seen", self.folder / device)
        for path in (self.folder / "pinned").glob("cache-*"):
            path.unlink()

    def pin(self, device: str) -> bytes | None:
        """The bytes of the account's pin on that device."""
        found = [path.read_bytes() for path in (self.folder / device).glob("state-*.bin")]
        return found[0] if found else None

    def dek(self, seq: int) -> Dek:
        """The key in force at `seq`, for the tests in which it leaked."""
        return self.rings[3].retired[0].dek if seq < 9 else self.rings[3].current

    def _tell(self) -> None:
        server = self.server
        create_account(server.registrar(self.key), PASSPHRASE, clock=self.clock, parameters=CHEAP)
        create_account(server.registrar(self.other_key), PASSPHRASE, clock=self.clock, parameters=CHEAP)
        self.account_id, self.other_id = server.keys[self.key], server.keys[self.other_key]
        other = self.open("other", self.other_key)
        for number in range(15):
            other.save(Draft(f"somebody else's {number}"))
        other.close()
        vault = self.open("writer")

        def put(text: str) -> str:
            memory = vault.save(Draft(text)).memory
            assert memory is not None
            return self._note(vault, memory.id, text)

        def correct(memory_id: str, text: str) -> None:
            vault.correct(memory_id, Changes(text=text))
            self._note(vault, memory_id, text)

        def step(change: Callable[[], object]) -> None:
            change()
            self._keep(vault)

        self._keep(vault)
        self.tea = put("likes tea")
        self.coffee = put("drinks coffee")
        correct(self.tea, "likes green tea")
        self.secret = put("a secret")
        step(lambda: vault.change_passphrase(PASSPHRASE))
        correct(self.coffee, "drinks coffee in the morning")
        step(lambda: vault.forget(self.secret))
        server.back_up(self.folder / "8.db")
        step(lambda: vault.rotate(PASSPHRASE, RECOVERY))
        server.back_up(self.folder / "9.db")
        self.cake = put("bakes cake")
        server.back_up(self.folder / "10.db")
        self.open("seen").close()
        correct(self.tea, "likes white tea")
        self.honey = put("keeps bees for honey")
        step(lambda: vault.forget(self.cake))
        step(lambda: vault.change_passphrase(PASSPHRASE))
        self.lemon = put("lemon on fish")
        server.back_up(self.folder / "end.db")
        self.now = {memory.id: memory.text for memory in vault.memories}
        assert vault.head.seq == 15
        vault.close()
        # Another history from seq 9 on, as a server that keeps two of them would show to somebody else.
        server.restore(self.folder / "9.db")
        elsewhere = self.open("elsewhere")
        for number in range(3):
            elsewhere.save(Draft(f"on the other branch {number}"))
            if number == 0:
                server.back_up(self.folder / "fork-10.db")
        elsewhere.close()
        server.back_up(self.folder / "fork.db")

    def _note(self, vault: Vault, memory_id: str, text: str) -> str:
        self.true.add((memory_id, text))
        self._keep(vault)
        return memory_id

    def _keep(self, vault: Vault) -> None:
        self.rings[vault.key_set.generation] = vault.ring
        self.key_sets[vault.key_set.generation] = vault.key_set
        self.states[vault.head.seq] = self.server.shown(self.account_id)


def unlocker(settings: Settings) -> Unlocker:
    return RememberingUnlocker(opening.from_settings(settings).secret)


@contextmanager
def scenes(folder: Path) -> Iterator[Scene]:
    """The scene with its server running."""
    with HostileServer(folder).running() as server:
        yield Scene(server, folder)


def resealed(scene: Scene, generation: int, dek: Dek | None = None) -> KeySet:
    """A key set for the account that nobody there made: right passphrase, given generation and key."""
    ring = KeyRing((), dek) if dek else scene.rings[max(each for each in scene.rings if each <= generation)]
    return key_set.make(ring, scene.account_id, generation, passphrase=PASSPHRASE, parameters=CHEAP)


def signed(dek: Dek, scene: Scene, previous: tuple[int, bytes], op: int, **fields: object) -> bytes:
    """One more entry by somebody who has `dek`."""
    fields = {"time_ms": 0, "revision": 1, **fields}
    return log.make(dek, scene.account_id, log.Head(*previous), op, **fields)  # type: ignore[arg-type]
