"""A server that lies is caught by its name, on every device, and what this device has seen stays what it was."""

from __future__ import annotations

import base64
import json

import pytest

from squirrel_mcp.crypto import kdf, log
from squirrel_mcp.crypto.log import ENTRY_BYTES
from squirrel_mcp.errors import (
    ForkDetected,
    KeysChanged,
    LogDamaged,
    NotFound,
    OmissionDetected,
    RollbackDetected,
    SquirrelError,
    UpdateRequired,
)
from squirrel_mcp.memory import Draft
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.vault import Vault
from tests.hostile_server import Answer

from . import wires
from .attacks import ACCEPTED, ATTACKS, Attack
from .scene import DEVICES, Device, Scene, resealed

BY_NAME = {attack.name: attack for attack in ATTACKS}


def come_clean(scene: Scene) -> None:
    scene.server.honest()
    scene.server.keys[scene.key] = scene.account_id
    scene.server.restore(scene.folder / "end.db")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_each_lie_ends_with_its_named_error_and_moves_no_pin(scene: Scene, attack: Attack, device: Device) -> None:
    pin = scene.pin(device)
    expected = attack.error(device)
    attack.act(scene)
    found = scene.attempt(device)
    if expected == ACCEPTED:
        assert found.error is None
        return
    assert type(found.error) is expected, f"{type(found.error).__name__}: {found.error}"
    # The verified beginning may be read, and nothing else.
    assert isinstance(found.error, (LogDamaged, UpdateRequired)) or not found.texts
    assert found.texts.items() <= scene.true
    assert scene.pin(device) == pin
    assert not [asked for asked in scene.server.asked if asked.method != "GET"]
    come_clean(scene)
    again = scene.attempt(device)
    assert again.error is None and again.texts == scene.now


def running(scene: Scene) -> Vault:
    """A client that is in step with entry 10 while the server goes on."""
    scene.server.restore(scene.folder / "10.db")
    vault = scene.open("cached")
    scene.server.restore(scene.folder / "end.db")
    return vault


def texts(vault: Vault) -> dict[str, str]:
    return {memory.id: memory.text for memory in vault.memories}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_a_running_client_says_the_same_and_shows_nothing_of_it(scene: Scene, attack: Attack) -> None:
    vault = running(scene)
    before, pin = texts(vault), scene.pin("cached")
    expected = attack.error("running")
    attack.act(scene)
    try:
        vault.sync()
    except SquirrelError as error:
        assert type(error) is expected, f"{type(error).__name__}: {error}"
    else:
        assert expected == ACCEPTED
    if expected != ACCEPTED:
        if vault.verdict is None:
            assert texts(vault) == before
        else:
            with pytest.raises(expected):
                vault.save(Draft("not now"))
        assert texts(vault).items() <= scene.true
        assert scene.pin("cached") == pin
        come_clean(scene)
        if vault.verdict is None:
            vault.sync()
            assert texts(vault) == scene.now
    vault.close()


@pytest.mark.parametrize(
    ("name", "device"),
    [
        *[(name, device) for name in ("kdf_low", "kdf_huge", "kdf_none", "truncate_wrap") for device in DEVICES],
        *[("wrap_rollback", device) for device in ("pinned", "cached")],
        *[("wrap_same_generation", device) for device in ("pinned", "cached")],
        *[("foreign_account", device) for device in ("pinned", "cached")],
    ],
)
def test_what_can_be_refused_before_the_passphrase_is_stretched_is(
    scene: Scene, name: str, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "wrap_same_generation":
        forged = resealed(scene, 3)
        monkeypatch.setattr(f"{Attack.__module__}.resealed", lambda *_: forged)
    called: list[object] = []
    monkeypatch.setattr(kdf, "stretch", lambda *arguments: called.append(arguments))
    monkeypatch.setattr(Unlocker, "__call__", lambda *arguments: called.append(arguments))
    BY_NAME[name].act(scene)
    assert scene.attempt(device).error is not None
    assert not called


def test_a_fresh_device_shows_a_fingerprint_that_gives_an_old_state_away(scene: Scene) -> None:
    scene.server.restore(scene.folder / "9.db")
    shown = scene.attempt("fresh")
    assert shown.error is None and shown.fingerprint.startswith("9:")
    scene.server.restore(scene.folder / "end.db")
    writer = scene.open("cached")
    assert writer.fingerprint() != shown.fingerprint
    assert writer.fingerprint(9) == shown.fingerprint  # the same branch, as it was then
    writer.close()


def test_the_fingerprint_of_an_earlier_entry_is_not_taken_from_a_liar(scene: Scene) -> None:
    vault = scene.open("pinned")
    scene.server.answer = lambda asked, answer: (
        answer if asked.path != "/v1/log" or not isinstance(answer.body, dict)
        else Answer(200, {**answer.body, "entries": [{"entry": "QUJD" * 46, "object": None}]})
    )  # fmt: skip
    with pytest.raises(SquirrelError):
        vault.fingerprint(3)
    vault.close()


def test_an_account_that_is_not_there_is_not_made(scene: Scene) -> None:
    scene.server.keys[scene.key] = bytes(16)
    found = scene.attempt("fresh")
    assert isinstance(found.error, NotFound)
    assert {asked.method for asked in scene.server.asked} == {"GET"}
    assert not list((scene.folder / "fresh").glob("state-*"))


def test_the_log_cut_after_every_entry_is_an_omission(scene: Scene) -> None:
    whole = scene.server.shown(scene.account_id, "latest")
    for length in range(len(whole.items)):
        scene.reset()
        scene.server.lie = lambda shown, length=length: type(shown)(**{**vars(shown), "items": shown.items[:length]})
        assert isinstance(scene.attempt("fresh").error, OmissionDetected), length


def test_an_entry_of_every_wrong_length_is_refused(scene: Scene) -> None:
    vault = running(scene)
    raw, content = scene.server.shown(scene.account_id).items[11]
    lengths = [*range(ENTRY_BYTES), *range(ENTRY_BYTES + 1, ENTRY_BYTES + 8), 2 * ENTRY_BYTES]
    for length in lengths:
        changed = (raw * 2)[:length]
        scene.server.lie = lambda shown, changed=changed: type(shown)(
            **{**vars(shown), "items": (*shown.items[:11], (changed, content), *shown.items[12:])}
        )
        with pytest.raises(LogDamaged):
            vault._replica.pull()
        vault._replica.verdict = None
    scene.server.lie = None
    vault.sync()
    assert texts(vault) == scene.now
    vault.close()


def test_every_flipped_bit_of_an_entry_is_refused(scene: Scene, full: bool) -> None:
    vault = running(scene)
    raw, content = scene.server.shown(scene.account_id).items[14]
    for bit in range(0, 8 * ENTRY_BYTES, 1 if full else 7):
        changed = bytearray(raw)
        changed[bit // 8] ^= 0x80 >> bit % 8
        scene.server.lie = lambda shown, changed=bytes(changed): type(shown)(
            **{**vars(shown), "items": (*shown.items[:14], (changed, content))}
        )
        with pytest.raises((LogDamaged, UpdateRequired, OmissionDetected, ForkDetected)):
            vault._replica.pull()
        vault._replica.verdict = None
    scene.server.lie = None
    vault.sync()
    assert texts(vault) == scene.now
    vault.close()


@pytest.mark.parametrize("size", [1, 2, 3, 7, 14, 15, 16])
def test_pages_of_any_size_give_the_same_memories(scene: Scene, size: int) -> None:
    scene.server.page_entries = size
    for device in DEVICES:
        assert scene.attempt(device).texts == scene.now


# Writing to a liar.


def test_a_write_that_is_said_to_be_stored_and_is_not_is_caught_at_the_next_look(scene: Scene) -> None:
    vault = scene.open("cached")
    scene.server.back_up(scene.folder / "before.db")
    saved = vault.save(Draft("stored, they said")).memory
    scene.server.restore(scene.folder / "before.db")
    with pytest.raises(RollbackDetected):
        vault.sync()
    assert saved is not None and saved.id in texts(vault)
    vault.close()


@pytest.mark.parametrize("head", [{"seq": 99, "mac": "00" * 32}, {"seq": 16, "mac": "00" * 32}])
def test_a_write_that_is_answered_with_another_head_is_an_omission(scene: Scene, head: dict[str, object]) -> None:
    vault = scene.open("cached")
    scene.server.answer = lambda asked, answer: Answer(200, {"head": head}) if asked.method == "POST" else answer
    pin = scene.pin("cached")
    with pytest.raises(OmissionDetected):
        vault.save(Draft("where did it go?"))
    assert scene.pin("cached") == pin
    scene.server.answer = None
    vault.sync()
    assert "where did it go?" in texts(vault).values()  # it was stored after all, once
    vault.close()


def test_a_write_answered_with_an_old_head_is_a_rollback(scene: Scene) -> None:
    vault = scene.open("cached")
    old = {"seq": 3, "mac": "00" * 32}
    scene.server.answer = lambda asked, answer: Answer(200, {"head": old}) if asked.method == "POST" else answer
    with pytest.raises(RollbackDetected):
        vault.save(Draft("text"))
    vault.close()


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        (412, {"code": "head_moved", "head": {"seq": 99, "mac": "00" * 32}}, "head_moved"),
        (403, {"code": "append_denied"}, "append_denied"),
        (409, {"code": "forgotten"}, "forgotten"),
        (507, {"code": "full"}, "store_full"),
    ],
)
def test_a_refusal_without_a_reason_ends_and_is_told(
    scene: Scene, status: int, body: dict[str, object], code: str
) -> None:
    vault = scene.open("cached")
    refusal = wires.body(json.dumps(body).encode(), status=b"%d No" % status)
    scene.server.wire = lambda connection, asked: refusal(connection, asked) if asked.method != "GET" else False
    scene.server.asked.clear()
    for write in (
        lambda: vault.save(Draft("text")),
        lambda: vault.forget(scene.honey),
        lambda: vault.change_passphrase("another long passphrase"),
    ):
        with pytest.raises(SquirrelError) as caught:
            write()
        assert caught.value.code == code
    assert len(scene.server.asked) < 20
    vault.close()


def test_a_key_set_that_does_not_open_any_more_stops_writing_and_not_reading(scene: Scene) -> None:
    vault = running(scene)
    before = texts(vault)
    BY_NAME["wrap_bitflip"].act(scene)
    with pytest.raises(KeysChanged):
        vault.sync()
    with pytest.raises(KeysChanged):
        vault.save(Draft("text"))
    assert texts(vault) == before
    come_clean(scene)
    vault.sync()
    assert texts(vault) == scene.now
    vault.close()


def test_history_that_is_not_what_the_log_names_is_an_omission(scene: Scene) -> None:
    vault = scene.open("cached")
    assert [memory.text for memory in vault.history(scene.tea)] == ["likes green tea", "likes tea"]
    other = scene.states[3].items[2][1]
    assert other is not None
    scene.server.answer = lambda asked, answer: (
        Answer(200, {"object": base64.b64encode(other).decode()}) if "/objects/" in asked.path else answer
    )
    with pytest.raises(OmissionDetected):
        vault.history(scene.tea)
    scene.server.answer = lambda asked, answer: (
        Answer(404, {"code": "unknown_object"}) if "/objects/" in asked.path else answer
    )
    with pytest.raises(NotFound):
        vault.history(scene.tea)
    vault.close()


def test_the_story_is_what_the_scene_says(scene: Scene) -> None:
    ops = [log.parse(raw).op for raw, _ in scene.server.shown(scene.account_id).items]
    assert ops == [3, 1, 1, 1, 1, 3, 1, 2, 4, 1, 1, 1, 2, 3, 1]
