"""Without its server: what was seen can be read and says how old it is, nothing pretends to be stored, and then on."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from squirrel_mcp.errors import NotFound, NotTrusted, OmissionDetected, StoreRefused, StoreUnavailable
from squirrel_mcp.memory import Changes, Draft
from squirrel_mcp.service import MemoryService
from squirrel_mcp.sync import transport
from tests.hostile_server import Answer, Wire

from ..conftest import CHEAP
from . import wires
from .scene import Scene, unlocker

Away = Callable[[], None]


class Network:
    """Whether connections go through, and a monotonic clock that the back-off goes by."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.there, self.now, self.tries = True, 1000.0, 0
        real = socket.create_connection

        def connect(*arguments: object, **options: object) -> socket.socket:
            self.tries += 1
            if not self.there:
                raise ConnectionRefusedError
            return real(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(socket, "create_connection", connect)
        monkeypatch.setattr(transport, "monotonic", lambda: self.now)
        monkeypatch.setattr(transport, "sleep", lambda seconds: None)

    def back(self) -> None:
        """The server can be reached again, and the pause is over."""
        self.there = True
        self.now += 120


@pytest.fixture
def network(monkeypatch: pytest.MonkeyPatch) -> Network:
    return Network(monkeypatch)


@pytest.fixture
def service(scene: Scene) -> Iterator[MemoryService]:
    """On a device that was in step with the end of the story."""
    assert scene.attempt("cached").error is None
    scene.server.honest()
    settings = scene.settings("cached")
    service = MemoryService(settings, unlock=unlocker(settings), clock=scene.clock, parameters=CHEAP)
    yield service
    service.close()


def texts(service: MemoryService) -> dict[str, str]:
    return {memory.id: memory.text for memory in service.list(limit=50).memories}


def test_a_start_without_the_server_reads_what_was_seen_and_says_so(
    scene: Scene, service: MemoryService, network: Network
) -> None:
    network.there = False
    page = service.list()
    assert {memory.id: memory.text for memory in page.memories} == scene.now
    assert page.freshness.stale and page.freshness.as_of is not None
    assert "cannot be reached" in page.freshness.note
    assert service.search("honey").ranking.total == 1
    assert service.search("honey").freshness.stale
    assert service.context().freshness.stale
    assert service.get(scene.honey).freshness.stale
    status = service.status()
    assert status.unlocked and status.problem is not None and status.problem[0] == "stale"
    assert network.tries == 1  # the rest of it did not wait for a socket


def test_the_time_it_was_seen_is_that_of_the_pin(scene: Scene, service: MemoryService, network: Network) -> None:
    service.open()
    scene.clock.move(hours=1)
    service.list()
    network.there = False
    scene.server.wire = wires.raw()
    network.now += 120
    seen = scene.clock.now
    scene.clock.move(hours=5)
    freshness = service.list().freshness
    assert freshness.stale and freshness.as_of is not None
    assert abs(freshness.as_of - seen) < timedelta(seconds=1)


@pytest.mark.parametrize("opened", [False, True])
def test_a_write_without_the_server_says_plainly_that_nothing_was_stored(
    scene: Scene, service: MemoryService, network: Network, opened: bool
) -> None:
    if opened:
        service.open()
        scene.server.wire = wires.raw()  # kept-alive connections break too
    network.there = False
    for write in (
        lambda: service.save(Draft("not now")),
        lambda: service.correct(scene.honey, Changes(text="not now")),
        lambda: service.forget(scene.honey),
    ):
        with pytest.raises(StoreUnavailable, match="Nothing was stored"):
            write()
    scene.server.honest()
    network.back()
    assert texts(service) == scene.now


def test_back_online_it_is_fresh_and_writes(scene: Scene, service: MemoryService, network: Network) -> None:
    network.there = False
    assert service.list().freshness.stale
    network.back()
    writer = scene.open("fresh")
    writer.save(Draft("while you were away"))
    writer.close()
    page = service.list()
    assert not page.freshness.stale and len(page.memories) == 5
    assert service.save(Draft("and now this")).outcome.status == "saved"
    assert len(service.list().memories) == 6


def test_keys_that_were_changed_meanwhile_are_fetched_once_it_is_back(
    scene: Scene, service: MemoryService, network: Network
) -> None:
    network.there = False
    service.open()
    network.back()
    writer = scene.open("fresh")
    passphrase = scene.settings("fresh").passphrase or ""
    writer.rotate(passphrase, None)
    writer.save(Draft("under the new key"))
    writer.close()
    assert "under the new key" in texts(service).values()
    service.save(Draft("here too"))
    assert "here too" in scene.attempt("pinned").texts.values()


def test_a_server_that_lies_when_it_is_back_is_caught(scene: Scene, service: MemoryService, network: Network) -> None:
    network.there = False
    service.open()
    network.back()
    scene.server.lie = lambda shown: type(shown)(**{**vars(shown), "head": (16, bytes(32))})
    with pytest.raises(OmissionDetected):
        service.list()


def test_a_device_that_never_saw_the_account_has_nothing_to_show(scene: Scene, network: Network) -> None:
    network.there = False
    error = scene.attempt("fresh").error
    assert type(error) is StoreUnavailable and "not seen" in str(error)
    assert not list((scene.folder / "fresh").glob("state-*"))


def test_a_certificate_that_is_not_trusted_is_named_even_at_the_first_start(scene: Scene, network: Network) -> None:
    from dataclasses import replace

    from squirrel_mcp import opening
    from tests.certificates import issue
    from tests.hostile_server import HostileServer

    folder = scene.folder / "tls"
    folder.mkdir(exist_ok=True)
    with HostileServer(folder, issue(folder, "own").server_context()).running() as server:
        settings = replace(scene.settings("fresh"), api_base_url=server.origin)
        with pytest.raises(NotTrusted, match="certificate"):
            opening.open_vault(settings, unlocker(settings))


@pytest.mark.parametrize(
    "wire", [wires.body(b"<html>Log in</html>"), wires.redirect("https://login.example/"), wires.raw(b"\0" * 50)]
)
def test_a_captive_portal_is_no_server(scene: Scene, service: MemoryService, network: Network, wire: Wire) -> None:
    scene.server.wire = wire
    page = service.list()
    assert page.freshness.stale and {memory.id: memory.text for memory in page.memories} == scene.now
    with pytest.raises(StoreUnavailable, match="Nothing was stored"):
        service.save(Draft("into the portal"))
    scene.server.honest()
    assert not service.list().freshness.stale


def test_a_revoked_key_is_told_and_works_again_when_it_does(scene: Scene, service: MemoryService) -> None:
    service.open()
    scene.server.keys.clear()
    with pytest.raises(StoreRefused) as caught:
        service.list()
    assert caught.value.code == "unauthenticated"
    status = service.status()
    assert status.problem is not None and status.problem[0] == "unauthenticated"
    scene.server.keys[scene.key] = scene.account_id
    assert texts(service) == scene.now


# Replies that are lost.


def lose_replies(scene: Scene, count: int = 1) -> None:
    """The next writes are done, and their replies never come."""
    left = [None] * count

    def wire(connection: socket.socket, asked: object) -> bool | None:
        if not left or getattr(asked, "method", "GET") == "GET":
            return False
        left.pop()
        return wires.cut(scene.server.reply_to)(connection, asked)  # type: ignore[arg-type]

    scene.server.wire = wire


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_write_whose_reply_was_lost_is_there_once(
    scene: Scene, service: MemoryService, network: Network, count: int
) -> None:
    service.open()
    lose_replies(scene, count)
    assert service.save(Draft("once and once only")).outcome.status == "saved"
    lose_replies(scene, count)
    assert service.correct(scene.honey, Changes(text="more honey")).status == "updated"
    lose_replies(scene, count)
    assert service.forget(scene.lemon).status == "forgotten"
    scene.server.honest()
    for device in ("pinned", "fresh"):
        found = list(scene.attempt(device).texts.values())
        assert sorted(found) == sorted(
            ["once and once only", "more honey", scene.now[scene.tea], scene.now[scene.coffee]]
        )
    assert scene.server.shown(scene.account_id).head[0] == 18


@pytest.mark.parametrize("count", [1, 3])
def test_a_change_of_keys_whose_reply_was_lost_is_made_once(
    scene: Scene, service: MemoryService, network: Network, count: int
) -> None:
    passphrase = scene.settings("cached").passphrase or ""
    with service.vault() as vault:
        lose_replies(scene, count)
        vault.change_passphrase(passphrase)
        lose_replies(scene, count)
        vault.rotate(passphrase, None)
        assert vault.key_set.generation == 6
    scene.server.honest()
    assert scene.attempt("pinned").texts == scene.now
    assert scene.server.shown(scene.account_id).head[0] == 17


def test_a_write_of_which_nothing_is_known_says_so(scene: Scene, service: MemoryService, network: Network) -> None:
    service.open()

    def wire(connection: socket.socket, asked: object) -> bool | None:
        if getattr(asked, "method", "GET") != "GET":
            scene.server.wire = wires.raw()  # from here on nothing comes back
            return wires.cut(scene.server.reply_to)(connection, asked)  # type: ignore[arg-type]
        return False

    scene.server.wire = wire
    with pytest.raises(StoreUnavailable, match="not known"):
        service.save(Draft("perhaps"))
    scene.server.honest()
    assert list(texts(service).values()).count("perhaps") == 1
    assert service.save(Draft("perhaps")).outcome.status == "already_present"


def test_a_memory_that_another_device_forgot_meanwhile_is_not_found(scene: Scene, service: MemoryService) -> None:
    service.open()
    other = scene.open("fresh")
    other.forget(scene.honey)
    other.close()
    with pytest.raises(NotFound):
        service.get(scene.honey, history=True)


def test_a_pause_that_is_too_long_is_told_with_the_memories(scene: Scene, service: MemoryService) -> None:
    service.open()
    scene.server.answer = lambda asked, answer: Answer(429, {"code": "rate_limited"}, (("Retry-After", "3600"),))
    page = service.list()
    assert page.freshness.stale and "3600 seconds" in page.freshness.note
    with pytest.raises(StoreUnavailable, match="Nothing was stored"):
        service.save(Draft("too many"))
