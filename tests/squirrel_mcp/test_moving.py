"""A vault moves to a server whole: ids, dates, history, keys; also when interrupted or while somebody saves."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from squirrel_mcp import moving, opening
from squirrel_mcp.errors import Conflict, SquirrelError, StoreUnavailable, VaultMoved
from squirrel_mcp.memory import Changes, Draft, Memory
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.api_key import ApiKey
from squirrel_mcp.sync.local import LocalStore
from squirrel_mcp.sync.remote import RemoteStore
from squirrel_mcp.sync.transport import Transport
from squirrel_mcp.vault import Vault
from tests.squirrel_server.http.running import Running, running

from .conftest import CHEAP, PASSPHRASE, Clock, OpenVault


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with running(f"sqlite:///{tmp_path_factory.mktemp('server') / 'server.db'}") as found:
        yield found


@pytest.fixture
def to(server: Running) -> Iterator[Transport]:
    with closing(Transport(server.address)) as transport:
        yield transport


@pytest.fixture
def vault(open_vault: OpenVault, clock: Clock) -> Vault:
    """A vault with a past: corrections, a memory that was forgotten, a new passphrase, two rotations."""
    vault = open_vault()
    tea, secret = saved(vault, "likes tea"), saved(vault, "a secret")
    clock.move(days=1)
    vault.correct(tea.id, Changes(text="likes green tea", reason="asked again"))
    vault.change_passphrase(PASSPHRASE)
    vault.forget(secret.id)
    vault.rotate(PASSPHRASE, bytes(20))
    clock.move(days=1)
    vault.correct(tea.id, Changes(text="likes white tea"))
    saved(vault, "keeps bees")
    vault.rotate(PASSPHRASE, None)
    saved(vault, "lemon on fish")
    return vault


def saved(vault: Vault, text: str) -> Memory:
    memory = vault.save(Draft(text)).memory
    assert memory is not None
    return memory


def everything(vault: Vault) -> dict[str, tuple[Memory, list[Memory]]]:
    return {memory.id: (memory, vault.history(memory.id)) for memory in vault.memories}


def second_device(server: Running, key: ApiKey, folder: Path, clock: Clock, passphrase: str = PASSPHRASE) -> Vault:
    settings = Settings(data_dir=folder, passphrase=passphrase, api_base_url=server.address, api_key=key.secret())
    return opening.open_vault(settings, opening.from_settings(settings), clock=clock, parameters=CHEAP)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "_BATCH_ENTRIES", 3)


def fail_at(monkeypatch: pytest.MonkeyPatch, call: int, *, stored: bool) -> None:
    """The nth batch does not come through, or its reply does not come back."""
    real = RemoteStore.append
    calls = iter(range(1, 1000))

    def append(self: RemoteStore, append_key: bytes, items: Any) -> Any:
        if next(calls) != call:
            return real(self, append_key, items)
        if stored:
            real(self, append_key, items)
        raise StoreUnavailable("the line is down")

    monkeypatch.setattr(RemoteStore, "append", append)


@pytest.mark.usefixtures("small_batches")
def test_all_of_it_is_there_for_a_second_device_and_the_old_place_says_where_it_went(
    vault: Vault, settings: Settings, server: Running, to: Transport, clock: Clock, tmp_path: Path
) -> None:
    before, head = everything(vault), vault.head
    seen: list[tuple[int, int]] = []
    key = moving.move(settings, vault, to, server.invite(), progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (head.seq, head.seq) and len(seen) > 2
    with closing(second_device(server, key, tmp_path / "second", clock)) as second:
        assert everything(second) == before and second.head == head
        assert [len(history) for _, history in everything(second).values()].count(2) == 1
        saved(second, "from the second device")
    assert not settings.vault_path.exists() and moving.moved_path(settings).exists()
    with pytest.raises(VaultMoved, match=server.address):
        opening.open_vault(settings, opening.from_settings(settings), clock=clock, parameters=CHEAP)
    with closing(second_device(server, key, settings.data_dir, clock)) as first:
        assert len(first.memories) == len(before) + 1


def test_the_pin_goes_along_so_that_an_old_state_on_the_server_is_noticed(
    vault: Vault, settings: Settings, server: Running, to: Transport
) -> None:
    from squirrel_mcp.sync.pins import PinFolder

    head = vault.head
    key = moving.move(settings, vault, to, server.invite())
    (pin,) = PinFolder(settings.data_dir).by_route((server.address, key.id))
    assert pin.pin.head == head and pin.pin.account_id == vault.account_id


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("call", [1, 2, 3])
def test_an_interrupted_move_goes_on_with_the_key(
    vault: Vault, settings: Settings, server: Running, to: Transport, clock: Clock, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, call: int, stored: bool,
) -> None:  # fmt: skip
    before = everything(vault)
    shown: list[ApiKey] = []
    with monkeypatch.context() as patch:
        fail_at(patch, call, stored=stored)
        with pytest.raises(StoreUnavailable):
            moving.move(settings, vault, to, server.invite(), show_key=shown.append)
    assert settings.vault_path.exists()
    vault.sync()
    assert everything(vault) == before  # nothing changed for the local vault
    key = moving.move(settings, vault, to, "not needed any more", key=shown[0])
    assert key is shown[0]
    with closing(second_device(server, key, tmp_path / "second", clock)) as second:
        assert everything(second) == before


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("call", [1, 3])
def test_what_was_saved_between_the_interruption_and_the_rest_is_taken_along(
    vault: Vault, settings: Settings, server: Running, to: Transport, clock: Clock, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, call: int,
) -> None:  # fmt: skip
    shown: list[ApiKey] = []
    with monkeypatch.context() as patch:
        fail_at(patch, call, stored=False)
        with pytest.raises(StoreUnavailable):
            moving.move(settings, vault, to, server.invite(), show_key=shown.append)
    for number in range(4):
        saved(vault, f"in between {number}")
    before = everything(vault)
    key = moving.move(settings, vault, to, "", key=shown[0])
    with closing(second_device(server, key, tmp_path / "second", clock)) as second:
        assert everything(second) == before


def test_a_move_interrupted_before_the_file_was_set_aside_goes_on(
    vault: Vault, settings: Settings, server: Running, to: Transport, clock: Clock, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    shown: list[ApiKey] = []

    def killed(*_: object) -> bool:
        raise StoreUnavailable("killed")

    with monkeypatch.context() as patch:
        patch.setattr(LocalStore, "retire", killed)
        with pytest.raises(StoreUnavailable):
            moving.move(settings, vault, to, server.invite(), show_key=shown.append)
    saved(vault, "in between")
    before = everything(vault)
    key = moving.move(settings, vault, to, "", key=shown[0])
    with closing(second_device(server, key, tmp_path / "second", clock)) as second:
        assert everything(second) == before
    assert not settings.vault_path.exists()


def test_a_lost_reply_to_the_registration_is_made_up_for_by_the_same_invite(
    vault: Vault, settings: Settings, server: Running, to: Transport, clock: Clock, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    invite = server.invite()
    real = Transport.request

    def lost(self: Transport, method: str, path: str, **options: Any) -> Any:
        reply = real(self, method, path, **options)
        if path == "/v1/accounts":
            raise StoreUnavailable("the reply was lost")
        return reply

    with monkeypatch.context() as patch:
        patch.setattr(Transport, "request", lost)
        with pytest.raises(StoreUnavailable):
            moving.move(settings, vault, to, invite)
    before = everything(vault)
    key = moving.move(settings, vault, to, invite)
    with closing(second_device(server, key, tmp_path / "second", clock)) as second:
        assert everything(second) == before


@pytest.mark.usefixtures("small_batches")
def test_a_local_save_while_it_moves_is_taken_along(
    vault: Vault,
    open_vault: OpenVault,
    settings: Settings,
    server: Running,
    to: Transport,
    clock: Clock,
    tmp_path: Path,
) -> None:
    other = open_vault()
    texts = iter(["saved meanwhile", "and this"])

    def progress(done: int, total: int) -> None:
        for text in texts:
            saved(other, text)
            break

    key = moving.move(settings, vault, to, server.invite(), progress=progress)
    with closing(second_device(server, key, tmp_path / "second", clock)) as second:
        assert {"saved meanwhile", "and this"} <= {memory.text for memory in second.memories}
    with pytest.raises(SquirrelError):
        saved(other, "too late")
    with closing(second_device(server, key, tmp_path / "third", clock)) as third:
        assert "too late" not in {memory.text for memory in third.memories}


def test_a_vault_of_one_entry_moves_too(
    open_vault: OpenVault, settings: Settings, server: Running, to: Transport, clock: Clock, tmp_path: Path
) -> None:
    key = moving.move(settings, open_vault(), to, server.invite())
    with closing(second_device(server, key, tmp_path / "second", clock)) as second:
        assert not list(second.memories) and second.head.seq == 1


def test_an_invite_that_is_refused_changes_nothing(vault: Vault, settings: Settings, to: Transport) -> None:
    before = everything(vault)
    with pytest.raises(SquirrelError) as caught:
        moving.move(settings, vault, to, "sqi_no")
    assert caught.value.code in ("invite_refused", "malformed")
    vault.sync()
    assert everything(vault) == before and settings.vault_path.exists()


def test_a_server_that_drops_what_it_was_sent_gets_no_vault(
    vault: Vault, settings: Settings, server: Running, to: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RemoteStore, "append", lambda *_: vault.head)
    with pytest.raises(SquirrelError):
        moving.move(settings, vault, to, server.invite())
    assert settings.vault_path.exists()


@pytest.mark.usefixtures("small_batches")
@pytest.mark.parametrize("change", ["passphrase", "rotate"])
@pytest.mark.parametrize("at_the_end", [False, True])
def test_keys_changed_between_the_interruption_and_the_rest_lose_nothing_and_starting_over_is_the_way_out(
    vault: Vault, settings: Settings, server: Running, to: Transport, clock: Clock, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, change: str, at_the_end: bool,
) -> None:  # fmt: skip
    shown = interrupted(vault, settings, server, to, monkeypatch, at_the_end=at_the_end)
    if change == "passphrase":
        vault.change_passphrase(PASSPHRASE)
    else:
        vault.rotate(PASSPHRASE, None)
    saved(vault, "in between")
    before = everything(vault)
    with pytest.raises(Conflict, match="--start-over"):
        moving.move(settings, vault, to, "", key=shown)
    vault.sync()
    assert everything(vault) == before and settings.vault_path.exists()
    moving.start_over(settings, vault, to, shown)
    moving.start_over(settings, vault, to, shown)  # the answer may have been lost
    key = moving.move(settings, vault, to, server.invite())
    with closing(second_device(server, key, tmp_path / "second", clock)) as second:
        assert everything(second) == before


def test_starting_over_erases_no_account_that_has_gone_on_by_itself(
    vault: Vault, settings: Settings, server: Running, to: Transport, clock: Clock, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    shown = interrupted(vault, settings, server, to, monkeypatch, at_the_end=True)
    with closing(second_device(server, shown, tmp_path / "second", clock)) as second:
        saved(second, "from the second device")
        for _ in range(2):
            with pytest.raises(Conflict, match="nothing was erased"):
                moving.start_over(settings, vault, to, shown)
            saved(vault, "here too, so that this log is as long")
        second.sync()
        assert "from the second device" in {memory.text for memory in second.memories}


def interrupted(
    vault: Vault,
    settings: Settings,
    server: Running,
    to: Transport,
    monkeypatch: pytest.MonkeyPatch,
    *,
    at_the_end: bool,
) -> ApiKey:
    """The key of a move that stopped at its second batch, or when everything was there and the file not set aside."""
    shown: list[ApiKey] = []

    def killed(*_: object) -> bool:
        raise StoreUnavailable("killed")

    with monkeypatch.context() as patch:
        if at_the_end:
            patch.setattr(LocalStore, "retire", killed)
        else:
            fail_at(patch, 2, stored=False)
        with pytest.raises(StoreUnavailable):
            moving.move(settings, vault, to, server.invite(), show_key=shown.append)
    (key,) = shown
    return key
