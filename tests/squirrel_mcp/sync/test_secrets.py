"""Keys, passphrases and memories stay out of logs, reprs and errors, also of those of the libraries underneath."""

from __future__ import annotations

import copy
import dataclasses
import logging
import pickle
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from squirrel_mcp.errors import ConfigurationError, SquirrelError, WrongPassphrase
from squirrel_mcp.memory import Changes, Draft
from squirrel_mcp.service import MemoryService
from squirrel_mcp.sync import transport, wire
from squirrel_mcp.sync.api_key import ApiKey
from squirrel_mcp.sync.remote import RemoteStore
from squirrel_mcp.sync.transport import Transport
from tests.hostile_server import Answer, Asked, HostileServer, Wire, make_key

from ..conftest import CHEAP
from . import wires
from .scene import Scene, unlocker

CANARY = "canary-7f3a the code of the safe is 4711"


@pytest.fixture
def service(scene: Scene) -> Iterator[MemoryService]:
    settings = scene.settings("cached")
    service = MemoryService(settings, unlock=unlocker(settings), clock=scene.clock, parameters=CHEAP)
    yield service
    service.close()


def secrets_of(scene: Scene) -> list[str]:
    """As they would be seen: the API key's secret part, the passphrase, append keys in each spelling, memory text."""
    appends = [ring.current.append for ring in scene.rings.values()]
    deks = [ring.current.secret() for ring in scene.rings.values()]
    return [
        scene.key.split("_")[2],
        scene.settings("cached").passphrase or "",
        *[wire.encode(each) for each in appends],
        *[each.hex() for each in (*appends, *deks)],
        "canary-7f3a",
        *scene.now.values(),
    ]


def day_of_use(scene: Scene, service: MemoryService) -> list[BaseException]:
    """Everything once, with and without trouble; the errors that came of it."""
    errors: list[BaseException] = []
    memory = service.save(Draft(CANARY, entity="canary-7f3a", tags=("canary-7f3a",))).outcome.memory
    assert memory is not None
    service.search("canary-7f3a safe")
    service.correct(memory.id, Changes(text=CANARY + "!"))
    service.get(memory.id, history=True)
    passphrase = scene.settings("cached").passphrase or ""
    with service.vault() as vault:
        vault.change_passphrase(passphrase)
    troubles: list[Wire] = [
        wires.raw(),
        wires.raw(b"garbage\r\n\r\n"),
        wires.body(b"<html>"),
        wires.redirect("http://127.0.0.1:1/"),
        wires.bomb(b"gzip"),
        wires.body(b'{"code":"append_denied"}', status=b"403 No"),
        wires.body(b'{"code":"head_moved","head":{"seq":99,"mac":"' + b"00" * 32 + b'"}}', status=b"412 No"),
        wires.body(b"", b"Bad Header: x"),
        wires.body(b"{}", b"X: " + b"y" * 200_000),
    ]
    for trouble in troubles:
        for method in ("GET", "POST"):
            scene.server.wire = _only(method, trouble)
            try:
                service.save(Draft(CANARY + method))
            except SquirrelError as error:
                errors.append(error)
    scene.server.wire = None
    service.forget(memory.id)
    return errors


def _only(method: str, trouble: Wire) -> Wire:
    return lambda connection, asked: trouble(connection, asked) if asked.method == method else False


@pytest.fixture
def no_naps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport, "sleep", lambda seconds: None)
    monkeypatch.setattr(transport, "_BACK_OFF", (0.0, 0.0))


@pytest.mark.usefixtures("no_naps")
def test_a_day_of_use_leaves_no_secret_in_the_logs_of_any_library(
    scene: Scene, service: MemoryService, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        for name in ("httpx", "httpcore", "httpcore.http11", "httpcore.connection", "httpcore.proxy"):
            logging.getLogger(name).setLevel(logging.NOTSET)
        day_of_use(scene, service)
    logged = "\n".join([caplog.text, *(repr(vars(record)) for record in caplog.records)])
    assert "httpcore" in logged  # it did listen
    for secret in secrets_of(scene):
        assert secret not in logged
    assert "Bearer" not in logged


@pytest.mark.usefixtures("no_naps")
def test_no_error_leads_to_a_secret_or_to_the_request(scene: Scene, service: MemoryService) -> None:
    errors = day_of_use(scene, service)
    assert len(errors) > 10
    secrets = secrets_of(scene)
    for error in errors:
        shown = "".join(traceback.format_exception(error)) + _reachable(error)
        for secret in secrets:
            assert secret not in shown
        assert (
            not error.__suppress_context__ or error.__context__ is None or isinstance(error.__context__, SquirrelError)
        )
        _walk_contexts(error)


def _walk_contexts(error: BaseException | None) -> None:
    while error is not None:
        assert not hasattr(error, "request"), "an httpx error holds the request with its headers"
        error = error.__cause__ or error.__context__


def _reachable(error: BaseException | None) -> str:
    found = ""
    while error is not None:
        found += repr(error) + repr(error.args) + repr(vars(error))
        error = error.__cause__ or error.__context__
    return found


BAD_KEYS = {
    "newline": "\nX-Injected: 1",
    "carriage_return": "\r\n",
    "non_ascii": "é",
    "wide_digit": "０",
    "null": "\0",
    "space": " x",
    "one_more": "A",
    "surrogate": "\udcff",
}


@pytest.mark.parametrize("kind", BAD_KEYS)
def test_a_key_that_is_none_is_refused_without_being_shown(kind: str) -> None:
    key = make_key()
    secret = key.split("_")[2]
    for text in (key[:30] + BAD_KEYS[kind] + key[30:], key + BAD_KEYS[kind] + "x", BAD_KEYS[kind] + "x" + key):
        with pytest.raises(ConfigurationError) as caught:
            ApiKey(text)
        shown = "".join(traceback.format_exception(caught.value)[-1:]) + _reachable(caught.value)
        assert secret[:12] not in shown and secret[-12:] not in shown
        assert caught.value.__context__ is None


def test_a_key_shows_its_id_and_nothing_else() -> None:
    text = make_key()
    key = ApiKey(text)
    assert repr(key) == f"ApiKey('{key.id}')" == str(key) == f"{key}"
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            leak(key)
    assert not hasattr(key, "__dict__")


def test_settings_show_no_secret(scene: Scene) -> None:
    settings = dataclasses.replace(scene.settings("cached"), https_proxy="http://user:canary@proxy")
    assert scene.key not in repr(settings) and "canary" not in repr(settings)
    assert (settings.passphrase or "") not in repr(settings)


def test_objects_that_hold_keys_do_not_show_them(scene: Scene) -> None:
    vault = scene.open("cached")
    key = ApiKey(scene.key)
    transport = Transport(scene.server.origin)
    shown = "".join(map(repr, (vault, vault.ring, vault.key_set, key, transport, RemoteStore(transport, key))))
    for secret in secrets_of(scene):
        assert secret not in shown
    transport.close()
    vault.close()


def test_a_server_that_repeats_the_key_in_its_words_is_not_quoted(scene: Scene) -> None:
    def echo(asked: Asked, _: Answer) -> Answer:
        key = asked.headers["Authorization"]
        return Answer(401, {"code": key, "title": key, "detail": key}, (("X-Echo", key),))

    scene.server.answer = echo
    error = scene.attempt("fresh").error
    assert error is not None and scene.key.split("_")[2] not in str(error) + error.code


def test_a_wrong_passphrase_over_http_is_not_shown(scene: Scene) -> None:
    from squirrel_mcp import opening

    settings = dataclasses.replace(scene.settings("cached"), passphrase="canary passphrase that is wrong")
    with pytest.raises(WrongPassphrase) as caught:
        opening.open_vault(settings, unlocker(settings))
    assert "canary" not in "".join(traceback.format_exception(caught.value)[-1:]) + _reachable(caught.value)


def test_the_wire_and_the_servers_file_hold_no_plain_word(scene: Scene, service: MemoryService, tmp_path: Path) -> None:
    day_of_use_without_trouble = [CANARY, "another canary-7f3a"]
    for text in day_of_use_without_trouble:
        service.save(Draft(text, entity="canary-7f3a", source="canary-7f3a"))
    sent = b"".join(asked.body + repr(list(asked.headers.items())).encode() + repr(asked.query).encode()
                    for asked in scene.server.asked)  # fmt: skip
    scene.server.back_up(tmp_path / "copy.db")
    stored = (tmp_path / "copy.db").read_bytes()
    for plain in (
        b"canary-7f3a",
        (scene.settings("cached").passphrase or "").encode(),
        *map(str.encode, scene.now.values()),
    ):
        assert plain not in sent and plain not in stored
    for ring in scene.rings.values():
        for secret in (ring.current.secret(), ring.current.append):
            assert secret not in stored and secret.hex().encode() not in stored
    assert scene.key.encode() not in stored


def test_a_proxy_password_is_not_in_the_logs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), HostileServer(tmp_path).running() as proxy:
        proxy.wire = wires.body(b"", status=b"403 No")
        address = proxy.origin.replace("//", "//user:canary-7f3a@")
        store = RemoteStore(Transport("https://127.0.0.1:9", proxy=address), ApiKey(make_key()))
        with pytest.raises(SquirrelError):
            store.account()
        store.close()
    logged = "\n".join([caplog.text, *(repr(vars(record)) for record in caplog.records)])
    assert "canary-7f3a" not in logged and "Y2FuYXJ5" not in logged
