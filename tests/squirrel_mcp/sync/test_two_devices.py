"""Two devices and a server that is honest, lies, loses replies or is restored from a backup, in any order.

A model keeps what each genuine head stands for. Whatever a device shows without saying that it is stale must be just
that, and never an earlier or another branch than it has seen; an honest server and the right passphrase leave no error
but those that a restored backup is due.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from squirrel_mcp import opening
from squirrel_mcp.crypto import log
from squirrel_mcp.errors import (
    ForeignKey,
    ForkDetected,
    KeyRecordDowngrade,
    KeysChanged,
    LogDamaged,
    OmissionDetected,
    RollbackDetected,
    SquirrelError,
    StoreError,
    UpdateRequired,
    Verdict,
    WrongPassphrase,
)
from squirrel_mcp.memory import Changes, Draft
from squirrel_mcp.service import MemoryService
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync import transport
from squirrel_mcp.vault import create_account
from tests.hostile_server import HostileServer, Lie, Shown, make_key

from ..conftest import CHEAP, PASSPHRASE, Clock
from . import wires
from .scene import RememberingUnlocker

Device = Literal["laptop", "desktop"]
DEVICES: tuple[Device, ...] = ("laptop", "desktop")
PASSPHRASES = (PASSPHRASE, "the second long passphrase", "the third long passphrase")
ROLLED_BACK = (RollbackDetected, ForkDetected, KeyRecordDowngrade, ForeignKey)
NAMED = (*ROLLED_BACK, Verdict, StoreError, WrongPassphrase)
_FULL = hypothesis_settings.default is not None and hypothesis_settings.default.max_examples > 100

_numbers = st.integers(0, 2**16)
_devices = st.sampled_from(DEVICES)
_lost = st.sampled_from([0, 0, 0, 1, 3, 4])  # replies that do not come back; three times a request is sent in all


def fingerprint(raw: bytes) -> str:
    return log.parse(raw).head.fingerprint


def headed(shown: Shown, items: tuple[Any, ...]) -> Shown:
    head = log.parse(items[-1][0]).head
    return replace(shown, items=items, head=head, account_head=head)


def _cut(shown: Shown, pick: int, _: list[Shown]) -> Shown:
    return replace(shown, items=shown.items[: pick % len(shown.items)])


def _cut_with_head(shown: Shown, pick: int, _: list[Shown]) -> Shown:
    return headed(shown, shown.items[: 1 + pick % len(shown.items)])


def _omit(shown: Shown, pick: int, _: list[Shown]) -> Shown:
    at = pick % len(shown.items)
    return replace(shown, items=shown.items[:at] + shown.items[at + 1 :])


def _repeat(shown: Shown, pick: int, _: list[Shown]) -> Shown:
    at = pick % len(shown.items)
    return replace(shown, items=shown.items[: at + 1] + shown.items[at:])


def _exchange(shown: Shown, pick: int, _: list[Shown]) -> Shown:
    items = list(shown.items)
    one, two = pick % len(items), (pick // 7) % len(items)
    items[one], items[two] = items[two], items[one]
    return replace(shown, items=tuple(items))


def _exchange_objects(shown: Shown, pick: int, _: list[Shown]) -> Shown:
    items = list(shown.items)
    one, two = pick % len(items), (pick // 7) % len(items)
    items[one], items[two] = (items[one][0], items[two][1]), (items[two][0], items[one][1])
    return replace(shown, items=tuple(items))


def _no_object(shown: Shown, pick: int, _: list[Shown]) -> Shown:
    at = pick % len(shown.items)
    return replace(shown, items=(*shown.items[:at], (shown.items[at][0], None), *shown.items[at + 1 :]))


def _flip(shown: Shown, pick: int, _: list[Shown]) -> Shown:
    at = (len(shown.items) - 1 - pick % 3) % len(shown.items)
    raw, content = shown.items[at]
    bit = pick % (8 * len(raw))
    raw = raw[: bit // 8] + bytes((raw[bit // 8] ^ 0x80 >> bit % 8,)) + raw[bit // 8 + 1 :]
    return replace(shown, items=(*shown.items[:at], (raw, content), *shown.items[at + 1 :]))


def _older(shown: Shown, pick: int, shots: list[Shown]) -> Shown:
    return shots[pick % len(shots)]


def _older_keys(shown: Shown, pick: int, shots: list[Shown]) -> Shown:
    old = shots[pick % len(shots)]
    return replace(shown, wraps=old.wraps, previous_keys=old.previous_keys)


def _older_log(shown: Shown, pick: int, shots: list[Shown]) -> Shown:
    old = shots[pick % len(shots)]
    return replace(shown, items=old.items, head=old.head, account_head=old.head)


def _older_page(shown: Shown, pick: int, shots: list[Shown]) -> Shown:
    old = shots[pick % len(shots)]
    return replace(shown, items=old.items, head=old.head)


def _spliced(shown: Shown, pick: int, shots: list[Shown]) -> Shown:
    """The beginning of one state, the end of another."""
    old = shots[pick % len(shots)]
    at = (pick // 11) % len(shown.items)
    return headed(shown, (*old.items[:at], *shown.items[at:]))


def _head(shown: Shown, pick: int, _: list[Shown]) -> Shown:
    return replace(shown, head=(1 + pick % 20, bytes(32)))


def _account_head(shown: Shown, pick: int, _: list[Shown]) -> Shown:
    return replace(shown, account_head=(1 + pick % 20, bytes(32)))


def _wrap(shown: Shown, pick: int, _: list[Shown]) -> Shown:
    raw = bytearray(shown.wraps[0])
    raw[pick % len(raw)] ^= 1
    return replace(shown, wraps=(bytes(raw), *shown.wraps[1:]))


def _previous(shown: Shown, pick: int, shots: list[Shown]) -> Shown:
    return replace(shown, previous_keys=shots[pick % len(shots)].previous_keys)


LIES: dict[str, Callable[[Shown, int, list[Shown]], Shown]] = {
    lie.__name__.strip("_"): lie
    for lie in (
        _cut, _cut_with_head, _omit, _repeat, _exchange, _exchange_objects, _no_object, _flip, _older, _older_keys,
        _older_log, _older_page, _spliced, _head, _account_head, _wrap, _previous,
    )
}  # fmt: skip


@dataclass
class Backup:
    file: Path
    texts: dict[str, str]
    passphrase: str


@dataclass
class Model:
    """What is true: the memories and the passphrase in force, and what every head that ever was stood for."""

    texts: dict[str, str] = field(default_factory=dict)
    passphrase: str = PASSPHRASE
    states: dict[str, dict[str, str]] = field(default_factory=dict)
    ever: set[tuple[str, str]] = field(default_factory=set)


_shared: dict[str, Any] = {}


@pytest.fixture(scope="module", autouse=True)
def _server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One server and one new account, as a backup, for all examples."""
    folder = tmp_path_factory.mktemp("machine")
    with HostileServer(folder).running() as server, pytest.MonkeyPatch.context() as patch:
        patch.setattr(transport, "sleep", lambda seconds: None)
        key = make_key()
        create_account(server.registrar(key), PASSPHRASE, clock=Clock(), parameters=CHEAP)
        server.back_up(folder / "new.db")
        _shared.update(server=server, key=key, folder=folder, account_id=server.keys[key])
        yield
    _shared.clear()


class TwoDevices(RuleBasedStateMachine):
    @initialize()
    def begin(self) -> None:
        self.server: HostileServer = _shared["server"]
        self.server.honest()
        self.server.restore(_shared["folder"] / "new.db")
        self.folder = Path(tempfile.mkdtemp(dir=_shared["folder"]))
        self.clock = Clock()
        self.model = Model()
        self.passphrases = dict.fromkeys(DEVICES, PASSPHRASE)
        self.services: dict[Device, MemoryService] = {device: self.new_service(device) for device in DEVICES}
        self.seen: dict[Device, str | None] = dict.fromkeys(DEVICES)
        self.sticky: set[Device] = set()  # saw a damaged log: reads its beginning until it is started again
        self.lying = False
        self.backups: list[Backup] = []
        self.shots: list[Shown] = []
        self.note()

    def teardown(self) -> None:
        if not hasattr(self, "services"):
            return
        try:
            self.come_clean()
            for device in DEVICES:
                self.passphrases[device] = self.model.passphrase
                self.reopen(device)
                if not self.continues(device):
                    self.accept(device)
                self.read(device)
                assert self.seen[device] == self.current
        finally:
            for service in self.services.values():
                service.close()
            shutil.rmtree(self.folder, ignore_errors=True)

    # What is true.

    def note(self) -> None:
        """Take in the state of the server as it really is."""
        shown = self.server.shown(_shared["account_id"], "latest")
        self.line = [fingerprint(raw) for raw, _ in shown.items]
        self.current = self.line[-1]
        known = self.model.states.setdefault(self.current, dict(self.model.texts))
        assert known == self.model.texts
        self.model.ever |= self.model.texts.items()
        self.shots.append(shown)

    def continues(self, device: Device) -> bool:
        """Whether what the server holds goes on from what the device has seen."""
        return self.seen[device] is None or self.seen[device] in self.line

    def settings(self, device: Device) -> Settings:
        return Settings(
            data_dir=self.folder / device,
            api_base_url=self.server.origin,
            api_key=_shared["key"],
        )

    def unlocker(self, device: Device) -> RememberingUnlocker:
        return RememberingUnlocker(lambda: self.passphrases[device])

    def new_service(self, device: Device) -> MemoryService:
        return MemoryService(self.settings(device), unlock=self.unlocker(device), clock=self.clock, parameters=CHEAP)

    # What is done. Each looks at how far the real log went, which is what decides whether something was stored.

    def attempt(self, device: Device, act: Callable[[], object], apply: Callable[[log.Entry], None]) -> Any:
        """Do it; the result or the error, after all that must be true of either."""
        before = len(self.line)
        try:
            result = act()
        except SquirrelError as error:
            self.expect(device, error)
            result = error
        written = self.server.shown(_shared["account_id"], "latest").items[before:]
        assert len(written) <= 1, "something was stored twice"
        for raw, _ in written:
            apply(log.parse(raw))
        self.note()
        self.look(device)
        return result

    def expect(self, device: Device, error: SquirrelError) -> None:
        """Whether such an error may be."""
        assert isinstance(error, NAMED), repr(error)
        if isinstance(error, LogDamaged | UpdateRequired):
            self.sticky.add(device)
        if self.lying or device in self.sticky:
            return
        if self.passphrases[device] != self.model.passphrase and isinstance(error, WrongPassphrase | KeysChanged):
            return
        assert not self.continues(device), repr(error)
        assert isinstance(error, (*ROLLED_BACK, WrongPassphrase, KeysChanged, OmissionDetected)), repr(error)

    def look(self, device: Device) -> None:
        """The head the device goes by never moves back nor to another branch."""
        vault = self.services[device]._vault
        if vault is None:
            return
        if vault.verdict is not None:
            self.sticky.add(device)
            return
        now = vault.fingerprint()
        assert now in self.model.states
        assert {memory.id: memory.text for memory in vault.memories} == self.model.states[now]
        if self.seen[device] != now:
            lines = [[fingerprint(raw) for raw, _ in shot.items] for shot in self.shots]
            before = self.seen[device]
            assert before is None or any(
                before in line and now in line and line.index(before) < line.index(now) for line in lines
            )
            self.seen[device] = now

    @rule(device=_devices)
    def read(self, device: Device) -> None:
        page = self.attempt(device, lambda: self.services[device].list(limit=50), self.nothing)
        if isinstance(page, SquirrelError):
            return
        shown = {memory.id: memory.text for memory in page.memories}
        assert shown.items() <= self.model.ever
        if page.freshness.stale:
            assert page.freshness.note
            return
        assert shown == self.model.states[self.seen[device] or ""]
        if not self.lying:
            assert shown == self.model.texts and self.seen[device] == self.current

    @rule(device=_devices, number=_numbers, lost=_lost)
    def save(self, device: Device, number: int, lost: int) -> None:
        text = f"memory {number}"

        def apply(entry: log.Entry) -> None:
            assert (entry.op, entry.revision) == (log.PUT, 1)
            self.model.texts[entry.memory_id.hex()] = text

        if len(self.model.texts) < 40:
            self.lose_replies(lost)
            self.attempt(device, lambda: self.services[device].save(Draft(text)), apply)

    @precondition(lambda self: self.model.texts)
    @rule(device=_devices, pick=_numbers, number=_numbers, lost=_lost)
    def correct(self, device: Device, pick: int, number: int, lost: int) -> None:
        self.lose_replies(lost)
        memory_id = self.nth(pick)
        text = f"corrected {number}"

        def apply(entry: log.Entry) -> None:
            assert (entry.op, entry.memory_id.hex()) == (log.PUT, memory_id)
            self.model.texts[memory_id] = text

        outcome = self.attempt(device, lambda: self.services[device].correct(memory_id, Changes(text=text)), apply)
        if not isinstance(outcome, SquirrelError):
            stored = self.model.texts[memory_id] == text
            assert stored == (outcome.status in ("updated", "unchanged")) or self.lying

    @precondition(lambda self: self.model.texts)
    @rule(device=_devices, pick=_numbers, lost=_lost)
    def forget(self, device: Device, pick: int, lost: int) -> None:
        self.lose_replies(lost)
        memory_id = self.nth(pick)

        def apply(entry: log.Entry) -> None:
            assert (entry.op, entry.memory_id.hex()) == (log.TOMBSTONE, memory_id)
            del self.model.texts[memory_id]

        outcome = self.attempt(device, lambda: self.services[device].forget(memory_id), apply)
        if not isinstance(outcome, SquirrelError) and not self.lying:
            assert outcome.status == "forgotten" and memory_id not in self.model.texts

    @precondition(lambda self: self.model.texts)
    @rule(device=_devices, pick=_numbers)
    def history(self, device: Device, pick: int) -> None:
        memory_id = self.nth(pick)

        def look() -> object:
            try:
                return self.services[device].get(memory_id, history=True)
            except SquirrelError as error:
                if error.code == "not_found" and (self.lying or device in self.sticky or not self.fresh(device)):
                    return None
                raise

        found = self.attempt(device, look, self.nothing)
        if found is not None and not isinstance(found, SquirrelError):
            assert all((memory_id, memory.text) in self.model.ever for memory in (found.memory, *(found.history or ())))

    def nth(self, pick: int) -> str:
        """By age: ids are random, and the same steps have to lead to the same state whenever they are repeated."""
        return list(self.model.texts)[pick % len(self.model.texts)]

    def fresh(self, device: Device) -> bool:
        return self.continues(device) and self.passphrases[device] == self.model.passphrase

    @rule(device=_devices, number=st.integers(0, 2), rotate=st.booleans(), lost=_lost)
    def change_keys(self, device: Device, number: int, rotate: bool, lost: int) -> None:
        self.lose_replies(lost)
        new = PASSPHRASES[number]

        def act() -> None:
            with self.services[device].vault() as vault:
                if rotate:
                    vault.rotate(new, bytes(20) if number else None)
                else:
                    vault.change_passphrase(new)

        def apply(entry: log.Entry) -> None:
            assert entry.op == (log.ROTATE if rotate else log.REWRAP)
            self.model.passphrase = self.passphrases[device] = new

        self.attempt(device, act, apply)

    @rule(device=_devices)
    def learn_the_passphrase(self, device: Device) -> None:
        self.passphrases[device] = self.model.passphrase

    @rule(device=_devices)
    def reopen(self, device: Device) -> None:
        self.services[device].close()
        self.services[device] = self.new_service(device)
        self.sticky.discard(device)

    @rule(device=_devices, keep_pin=st.booleans())
    def lose_the_cache(self, device: Device, keep_pin: bool) -> None:
        """Or everything: then the device trusts what it is shown first."""
        if not keep_pin and self.lying:
            return  # a first sync from a liar is not promised to be anything
        self.reopen(device)
        for path in (self.folder / device).glob("cache-*" if keep_pin else "*"):
            path.unlink()
        if not keep_pin:
            self.seen[device] = None

    @rule()
    def back_up(self) -> None:
        if len(self.backups) < 3:
            file = self.folder / f"backup-{len(self.backups)}.db"
            self.server.back_up(file)
            self.backups.append(Backup(file, dict(self.model.texts), self.model.passphrase))

    @precondition(lambda self: self.backups)
    @rule(pick=_numbers)
    def restore(self, pick: int) -> None:
        backup = self.backups[pick % len(self.backups)]
        self.server.restore(backup.file)
        self.model.texts, self.model.passphrase = dict(backup.texts), backup.passphrase
        self.note()

    @precondition(lambda self: not self.lying)
    @rule(device=_devices)
    def accept(self, device: Device) -> None:
        """A person accepts the restored backup, with the passphrase of then."""
        if self.continues(device):
            return
        self.services[device].close()
        self.passphrases[device] = self.model.passphrase
        opening.accept_rollback(self.settings(device), self.unlocker(device), clock=self.clock).close()
        self.seen[device] = self.current
        self.reopen(device)

    @rule(name=st.sampled_from(sorted(LIES)), pick=_numbers, size=st.sampled_from([1, 3, 10_000]))
    def lie(self, name: str, pick: int, size: int) -> None:
        """From now on, whoever asks."""
        shots = list(self.shots)
        change = LIES[name]
        told: Lie = lambda shown: change(shown, pick, shots)  # noqa: E731
        self.server.lie, self.lying, self.server.page_entries = told, True, size

    def lose_replies(self, count: int) -> None:
        """The next writes are done, and their replies never come."""
        left = [None] * count

        def wire(connection: Any, asked: Any) -> bool | None:
            if not left or asked.method == "GET":
                return False
            left.pop()
            return wires.cut(self.server.reply_to)(connection, asked)

        self.server.wire = wire

    @precondition(lambda self: not self.lying)
    @rule(
        device=_devices,
        steps=st.lists(st.sampled_from(["save", "correct", "forget", "change_keys"]), min_size=1, max_size=3),
        start=st.sampled_from(["running", "again", "without cache"]),
        name=st.sampled_from(sorted(LIES)),
        pick=_numbers,
        size=st.sampled_from([1, 3, 10_000]),
    )
    def lie_about_news(self, device: Device, steps: list[str], start: str, name: str, pick: int, size: int) -> None:
        """One device writes, the other is lied to about it, asks twice, and is told the truth in the end."""
        (writer,) = set(DEVICES) - {device}
        self.passphrases[writer] = self.model.passphrase
        for step in steps:
            if step == "save" or not self.model.texts:
                self.save(writer, pick, 0)
            elif step == "correct":
                self.correct(writer, pick, pick, 0)
            elif step == "forget":
                self.forget(writer, pick, 0)
            else:
                self.change_keys(writer, pick % 3, bool(pick % 2), 0)
        self.passphrases[device] = self.model.passphrase
        if start == "again":
            self.reopen(device)
        elif start == "without cache":
            self.lose_the_cache(device, True)
        self.lie(name, pick, size)
        self.read(device)
        self.save(device, pick, 0)
        self.come_clean()
        self.read(device)

    @rule()
    def come_clean(self) -> None:
        self.server.honest()
        self.lying = False
        for device in tuple(self.sticky):
            self.reopen(device)

    def nothing(self, entry: log.Entry) -> None:
        raise AssertionError("a read has written")


TestTwoDevices = TwoDevices.TestCase
TestTwoDevices.settings = hypothesis_settings(
    max_examples=500 if _FULL else 25, stateful_step_count=40 if _FULL else 25
)
