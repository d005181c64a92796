"""A week of two devices on one account: real processes all of them, one real server in between."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from .account_server import AccountServer, account_server, relay
from .devices import Device, Tools
from .server_process import PATIENCE

pytestmark = pytest.mark.anyio

FIRST = "canarypassphrase of the first days"
SECOND = "canarypassphrase from thursday on"
THIRD = "canarypassphrase after the recovery"
CANARIES = (
    "canarytext",
    "canaryentity",
    "canarytag",
    "canarycategory",
    "canaryreason",
    "canaryquery",
    "canarypassphrase",
)
_CODE = re.compile(r"(?:[0-9A-Z]{4}-){8}[0-9A-Z*~$=]")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[AccountServer]:
    with account_server(tmp_path / "server", tls=True) as running:
        yield running


def shapes(word: str) -> set[bytes]:
    """A word as it is, in hex, and in base64 at each of the three places in a group that it can begin."""
    raw = word.encode()
    inner = {base64.b64encode(bytes(lead) + raw)[4 if lead else 0 : -4] for lead in range(3)}
    return {raw, raw.hex().encode(), *inner}


def assert_absent(words: tuple[str, ...], content: bytes) -> None:
    found = [word for word in words if any(shape in content for shape in shapes(word))]
    assert not found, found


async def test_a_scripted_week(server: AccountServer, tmp_path: Path) -> None:
    laptop, phone = Device(tmp_path / "laptop", FIRST), Device(tmp_path / "phone", FIRST)
    await monday(server, laptop, phone)
    async with laptop.tools() as on_laptop, phone.tools() as on_phone:
        await tuesday(on_laptop, on_phone)
        await thursday(laptop, phone, on_phone)
        await friday(laptop, phone, on_laptop, on_phone)
        await saturday(server, laptop, on_phone)
        await sunday(laptop, phone, on_phone)
    await a_third_device_moves_in(server, tmp_path)
    assert laptop.state() == phone.state()
    seq = laptop.ask("status")["fingerprint"].partition(":")[0]
    assert laptop.run("status", "--at", seq).out == phone.run("status", "--at", seq).out
    secrets = tuple(device.variables["SQUIRREL_API_KEY"].split("_")[2] for device in (laptop, phone))
    server.stop()
    assert_absent((*CANARIES, *secrets), server.holds())
    assert_absent(CANARIES, "".join(laptop.said + phone.said).encode())


async def monday(server: AccountServer, laptop: Device, phone: Device) -> None:
    """An account, a first memory, a second device."""
    made = laptop.ask(
        "init", "--api", server.origin, "--invite", "-", "--certificate", server.certificate, "--no-recovery",
        stdin=server.invite(),
    )  # fmt: skip
    laptop.configure(made)
    assert laptop.ask("status")["fingerprint"] == made["fingerprint"]
    laptop.ask(
        "add", "canarytext: the router is 10.0.7.1", "--entity", "canaryentity", "--tag", "canarytag",
        "--category", "canarycategory",
    )  # fmt: skip
    code = laptop.run("keys", "create", "--scope", "admin", "--join").out.strip()
    joined = phone.join(code)
    assert (joined["total"], joined["fingerprint"]) == (1, laptop.ask("status")["fingerprint"])
    assert laptop.state() == phone.state()


async def tuesday(on_laptop: Tools, on_phone: Tools) -> None:
    """Both save, both see it at once; a correction, a conflict, something forgotten."""
    tea = (await on_laptop("save_memory", text="canarytext: likes tea"))["id"]
    wifi = (await on_phone("save_memory", text="canarytext: the wifi is called Acorn"))["id"]
    assert [hit["id"] for hit in (await on_laptop("search_memory", query="wifi Acorn canaryquery"))["hits"]] == [wifi]
    assert (await on_phone("list_memories"))["total"] == 3

    changed = await on_laptop("update_memory", id=tea, text="canarytext: likes green tea", reason="canaryreason")
    assert (changed["status"], changed["revision"]) == ("updated", 2)
    late = await on_phone("update_memory", id=tea, text="canarytext: likes coffee", expectedRevision=1)
    assert late["status"] == "conflict" and late["current"]["text"] == "canarytext: likes green tea"
    shown = await on_phone("get_memory", id=tea, history=True)
    assert [old["text"] for old in shown["history"]] == ["canarytext: likes tea"]

    assert (await on_phone("forget_memory", id=wifi))["status"] == "forgotten"
    assert (await on_laptop("search_memory", query="wifi Acorn"))["hits"] == []
    assert "no memory" in await on_laptop.refused("get_memory", id=wifi)


async def thursday(laptop: Device, phone: Device, on_phone: Tools) -> None:
    """A new passphrase: the other device is told, goes on reading, and saves once it has it."""
    laptop.ask("passphrase", "change", "--new-passphrase-file", laptop.file("new", SECOND))
    laptop.set_passphrase(SECOND)
    laptop.ask("add", "canarytext: said after the change")
    old = await on_phone("list_memories")
    assert old["stale"] is True and old["total"] == 2 and "passphrase was changed" in old["note"]
    assert "passphrase was changed" in await on_phone.refused("save_memory", text="no")
    phone.set_passphrase(SECOND)
    assert (await on_phone("save_memory", text="canarytext: said on the phone"))["status"] == "saved"
    assert (await on_phone("list_memories"))["total"] == 4


async def friday(laptop: Device, phone: Device, on_laptop: Tools, on_phone: Tools) -> None:
    """A new key for everything that follows; a recovery code, and a passphrase that was lost."""
    laptop.ask("rotate", "--keep-passphrase", "--no-recovery")
    assert (await on_phone("save_memory", text="canarytext: under the new key"))["status"] == "saved"

    code = recovery_code(laptop)
    phone.set_passphrase("not the one any more")
    assert phone.run("list").code == 3
    phone.ask(
        "recovery", "use", "--code-file", phone.file("code", code),
        "--new-passphrase-file", phone.file("new", THIRD),
    )  # fmt: skip
    for device in (laptop, phone):
        device.set_passphrase(THIRD)
    for tools in (on_laptop, on_phone):
        status = await tools("memory_status")
        assert status["unlocked"] and status["recoveryCode"] and status["total"] == 5


def recovery_code(device: Device) -> str:
    """A new one, as a person at a terminal gets it."""
    pytest.importorskip("pty", reason="there are no pseudo terminals here")
    from tests.squirrel_mcp.cli.terminal import Terminal

    terminal = Terminal("recovery", "new", environment=device.variables)
    try:
        (code,) = set(_CODE.findall(terminal.wait_for("symbols): ")))
        terminal.type(code[-6:])
        assert terminal.end() == 0
    finally:
        terminal.kill()
    return str(code)


async def saturday(server: AccountServer, laptop: Device, on_phone: Tools) -> None:
    """The server is away, and comes back."""
    server.stop()
    away = await on_phone("list_memories")
    assert away["stale"] is True and away["total"] == 5 and away["asOf"]
    refused = await on_phone.refused("save_memory", text="canarytext: is not lost quietly")
    assert "cannot be reached" in refused and "Nothing was" in refused
    listed = laptop.ask("list", "--all")
    assert listed["stale"] is True and listed["total"] == 5
    assert laptop.run("status").code == 4
    added = laptop.run("add", "canarytext: neither is this")
    assert added.code == 4 and "Nothing was" in added.err
    server.start()
    with anyio.fail_after(PATIENCE):
        # It backs off for a moment; whoever asks is told until it has asked again.
        while (await on_phone("list_memories")).get("stale"):
            await anyio.sleep(0.05)
    assert (await on_phone("save_memory", text="canarytext: the server is back"))["status"] == "saved"
    assert not laptop.ask("list")["stale"]


async def sunday(laptop: Device, phone: Device, on_phone: Tools) -> None:
    """The phone's key is revoked: its next call says so. With another one it is back."""
    (key_id,) = [key["id"] for key in laptop.ask("keys", "list")["keys"] if not key["current"]]
    laptop.ask("keys", "revoke", key_id)
    assert "API key" in await on_phone.refused("search_memory", query="tea")
    assert phone.run("list").code == 4
    phone.join(laptop.ask("keys", "create", "--join")["joinCode"])
    phone.ask("add", "canarytext: back with another key")


async def a_third_device_moves_in(server: AccountServer, tmp_path: Path) -> None:
    """An embedded vault, with history, to the server; a second device reads all of it."""
    desk, tablet = Device(tmp_path / "desk", FIRST), Device(tmp_path / "tablet", FIRST)
    one, two, _ = (desk.ask("add", f"canarytext: {text} on the desk")["id"] for text in ("one", "two", "three"))
    desk.ask("correct", one, "canarytext: corrected on the desk", "--reason", "canaryreason")
    desk.ask("forget", two, "--yes")
    desk.ask("rotate", "--keep-passphrase", "--no-recovery")
    memories, fingerprint = desk.state()
    shown = desk.ask("show", one, "--history")

    to = ("--to", server.origin, "--invite", server.invite(), "--certificate", server.certificate)
    async with desk.tools() as on_desk:
        assert (await on_desk("list_memories"))["total"] == 2
        moved = desk.ask("move", *to, "--yes")
        assert "Nothing was" in await on_desk.refused("save_memory", text="canarytext: into the old file")
    alone = desk.run("list")
    assert alone.code == 4 and server.origin in alone.err
    desk.configure(moved)
    tablet.join(desk.ask("keys", "create", "--join")["joinCode"])
    for device in (desk, tablet):
        assert device.state() == (memories, fingerprint)
        assert device.ask("show", one, "--history") == shown
        assert device.run("show", two).code == 1
    tablet.ask("add", "canarytext: added on the tablet")
    assert desk.state() == tablet.state() and desk.state()[0] != memories


async def test_the_wire_has_nothing_to_read(tmp_path: Path) -> None:
    # Plain http, which loopback alone may use: what TLS would hide is in the capture.
    with account_server(tmp_path / "server") as server, relay(server.origin) as passing:
        laptop, phone = Device(tmp_path / "laptop", FIRST), Device(tmp_path / "phone", FIRST)
        laptop.configure(laptop.ask("init", "--api", passing.origin, "--invite", server.invite(), "--no-recovery"))
        async with laptop.tools() as tools:
            memory = await tools(
                "save_memory",
                text="canarytext one", entity="canaryentity", tags=["canarytag"], category="canarycategory",
            )  # fmt: skip
            await tools("update_memory", id=memory["id"], text="canarytext two", reason="canaryreason")
            await tools("save_memory", text="canarytext three")
            assert (await tools("search_memory", query="canarytext canaryquery"))["total"] == 2
        phone.join(laptop.ask("keys", "create", "--scope", "admin", "--join")["joinCode"])
        phone.ask("passphrase", "change", "--new-passphrase-file", phone.file("new", SECOND))
        phone.set_passphrase(SECOND)
        phone.ask("rotate", "--keep-passphrase", "--no-recovery")
        phone.ask("forget", memory["id"], "--yes")
        laptop.set_passphrase(SECOND)
        assert laptop.state() == phone.state()
        seen = passing.seen()
        assert b"POST /v1/log" in seen and b"Bearer sqn_" in seen
        assert_absent(CANARIES, seen)
        server.stop()
        keys = tuple(device.variables["SQUIRREL_API_KEY"].split("_")[2] for device in (laptop, phone))
        assert all(key.encode() in seen for key in keys)  # so a key that was kept would be found
        assert_absent((*CANARIES, *keys), server.holds())


def test_the_search_for_canaries_finds_them_in_every_shape() -> None:
    for lead in range(4):
        with pytest.raises(AssertionError):
            assert_absent(("canarytext",), base64.b64encode(b"x" * lead + b"canarytext and more"))
    with pytest.raises(AssertionError):
        assert_absent(("canarytext",), b"canarytext".hex().encode())
