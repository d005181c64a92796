"""What a device keeps of a server: enough to start without it, nothing to be believed, nothing that was forgotten."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from squirrel_mcp.errors import KeyRecordDowngrade, UnsafeFile
from squirrel_mcp.memory import Changes, Draft

from .scene import Scene


def cache_file(scene: Scene, device: str) -> Path:
    (path,) = (scene.folder / device).glob("cache-*.db")
    return path


def in_step(scene: Scene, device: str = "cached") -> Path:
    """Bring the device up to date, and forget the requests that it took."""
    assert scene.attempt(device).texts == scene.now
    scene.server.honest()
    return cache_file(scene, device)


def test_a_start_with_nothing_new_asks_one_thing(scene: Scene) -> None:
    in_step(scene)
    found = scene.attempt("cached")
    assert found.texts == scene.now
    assert scene.server.requests() == ["GET /v1/account"]
    assert scene.server.sent < 2000


def test_a_start_with_one_new_entry_transfers_that_one(scene: Scene) -> None:
    in_step(scene)
    writer = scene.open("fresh")
    writer.save(Draft("something new"))
    writer.close()
    scene.server.honest()
    assert "something new" in scene.attempt("cached").texts.values()
    assert scene.server.requests() == ["GET /v1/account", "GET /v1/log"]
    assert scene.server.asked[1].query["after"] == "15"
    assert scene.server.sent < 3000


def test_a_running_client_asks_one_thing_for_each_look(scene: Scene) -> None:
    vault = scene.open("cached")
    scene.server.honest()
    for _ in range(3):
        vault.sync()
    assert scene.server.requests() == ["GET /v1/log"] * 3
    vault.close()


def test_what_this_device_wrote_is_not_fetched_again(scene: Scene) -> None:
    vault = scene.open("cached")
    memory = vault.save(Draft("my own")).memory
    assert memory is not None
    vault.correct(memory.id, Changes(text="my own, corrected"))
    vault.forget(scene.honey)
    vault.change_passphrase(scene.settings("cached").passphrase or "")
    vault.close()
    scene.server.honest()
    assert set(scene.attempt("cached").texts.values()) >= {"my own, corrected"}
    assert scene.server.requests() == ["GET /v1/account"]


def objects(path: Path) -> list[bytes]:
    with sqlite3.connect(path) as connection:
        rows = connection.execute("SELECT object FROM items WHERE object IS NOT NULL ORDER BY seq").fetchall()
    connection.close()
    return [row[0] for row in rows]


def test_objects_of_forgotten_and_corrected_memories_are_gone_from_the_bytes_of_the_file(scene: Scene) -> None:
    path = in_step(scene)
    vault = scene.open("cached")
    kept = objects(path)
    assert len(kept) == 4
    corrected = vault.memories.get(scene.coffee)
    assert corrected is not None
    vault.correct(scene.coffee, Changes(text="no coffee any more"))
    vault.forget(scene.lemon)
    left = objects(path)
    gone = [each for each in kept if each not in left]
    assert len(gone) == 2 and len(left) == 3
    vault.close()
    files = b"".join(each.read_bytes() for each in path.parent.glob(path.name + "*"))
    for each in gone:
        # The first bytes of a free block hold SQLite's own numbers; what a record is made of comes later.
        assert each[40:120] not in files and each[-64:] not in files
    assert all(each[40:120] in files for each in left)


def test_another_devices_forgetting_reaches_the_file_at_the_next_sync(scene: Scene) -> None:
    path = in_step(scene)
    before = objects(path)
    other = scene.open("fresh")
    other.forget(scene.honey)
    other.close()
    assert scene.honey not in scene.attempt("cached").texts
    (gone,) = [each for each in before if each not in objects(path)]
    assert gone[40:120] not in path.read_bytes()


def test_the_file_is_the_owners_alone_and_holds_no_plain_word(scene: Scene) -> None:
    path = in_step(scene)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    content = path.read_bytes()
    for text in scene.now.values():
        assert text.encode() not in content
    assert scene.key.encode() not in content and scene.key[4:16].encode() not in content


# Damage. Whatever happens to the file, the memories are right, and the file is whole again at the start after.


def edit(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()


def _flip_pages(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    for at in range(4096, len(raw), 37):
        raw[at] ^= 0x5A
    path.write_bytes(raw)


def _flip_schema(path: Path) -> None:
    raw = bytearray(path.read_bytes())
    for at in range(110, 4096):
        raw[at] ^= 0xFF
    path.write_bytes(raw)


def _flip_one_object(path: Path) -> None:
    raw = path.read_bytes()
    record = objects(path)[-1]
    at = raw.index(record[40:80])
    path.write_bytes(raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :])


DAMAGE: dict[str, Callable[[Path], object]] = {
    "pages_flipped": _flip_pages,
    "schema_flipped": _flip_schema,
    "object_flipped": _flip_one_object,
    "empty": lambda path: path.write_bytes(b""),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "one_page": lambda path: path.write_bytes(path.read_bytes()[:4096]),
    "not_sqlite": lambda path: path.write_bytes(b"not a database at all, only text\n" * 300),
    "header_only": lambda path: path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 4096),
    "another_schema": lambda path: edit(path, "DROP TABLE items", "CREATE TABLE items (seq INTEGER)"),
    "no_table": lambda path: edit(path, "DROP TABLE items"),
    "later_format": lambda path: edit(path, "PRAGMA user_version = 2"),
    "first_entries_missing": lambda path: edit(path, "DELETE FROM items WHERE seq < 4"),
    "middle_entry_missing": lambda path: edit(path, "DELETE FROM items WHERE seq = 6"),
    "last_entry_missing": lambda path: edit(path, "DELETE FROM items WHERE seq = 15"),
    "older_than_the_pin": lambda path: edit(path, "DELETE FROM items WHERE seq > 5"),
    "objects_missing": lambda path: edit(path, "UPDATE items SET object = NULL"),
    "objects_swapped": lambda path: edit(
        path, "UPDATE items SET object = (SELECT object FROM items WHERE seq = 12) WHERE seq = 15"
    ),
    "entry_flipped": lambda path: edit(path, "UPDATE items SET entry = zeroblob(138) WHERE seq = 9"),
    "last_entry_flipped": lambda path: edit(path, "UPDATE items SET entry = zeroblob(138) WHERE seq = 15"),
    "last_entry_huge": lambda path: edit(
        path, "UPDATE items SET entry = x'01" + "01" + "ff" * 136 + "' WHERE seq = 15"
    ),
    "entry_of_a_later_version": lambda path: edit(path, "UPDATE items SET entry = x'0201' WHERE seq = 15"),
    "entry_short": lambda path: edit(path, "UPDATE items SET entry = x'01' WHERE seq = 15"),
    "entries_as_text": lambda path: edit(path, "UPDATE items SET entry = 'text'"),
    "entries_as_numbers": lambda path: edit(path, "UPDATE items SET entry = 7"),
    "objects_as_numbers": lambda path: edit(path, "UPDATE items SET object = 7 WHERE object IS NOT NULL"),
    "text_that_is_no_utf_8": lambda path: edit(path, "UPDATE items SET entry = CAST(x'ff' AS TEXT) WHERE seq = 3"),
    "seq_moved": lambda path: edit(path, "UPDATE items SET seq = 99 WHERE seq = 15"),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_a_damaged_cache_is_fetched_anew_and_whole_again(scene: Scene, kind: str) -> None:
    path = in_step(scene)
    DAMAGE[kind](path)
    found = scene.attempt("cached")
    assert found.error is None and found.texts == scene.now
    scene.server.honest()
    for _ in range(2):
        assert scene.attempt("cached").texts == scene.now
    assert scene.server.requests().count("GET /v1/log") <= 1
    scene.server.honest()
    assert scene.attempt("cached").texts == scene.now
    assert scene.server.requests() == ["GET /v1/account"]


def test_another_accounts_cache_is_fetched_anew(scene: Scene) -> None:
    path = in_step(scene)
    shutil.copy(next((scene.folder / "other").glob("cache-*.db")), path)
    assert scene.attempt("cached").texts == scene.now


def test_a_cache_of_another_branch_is_fetched_anew(scene: Scene) -> None:
    path = in_step(scene)
    shutil.copy(next((scene.folder / "elsewhere").glob("cache-*.db")), path)
    assert scene.attempt("cached").texts == scene.now


def test_a_cache_later_than_the_pin_is_no_rollback(scene: Scene) -> None:
    path = in_step(scene)
    newer = path.read_bytes()
    scene.reset()
    path.write_bytes(newer)  # the pin is that of entry 10 again
    assert scene.attempt("cached").texts == scene.now


def test_a_cache_is_no_way_around_the_pin(scene: Scene) -> None:
    in_step(scene)
    pin = scene.pin("cached")
    scene.server.restore(scene.folder / "9.db")
    for path in (scene.folder / "seen").glob("cache-*"):
        shutil.copy(path, scene.folder / "cached")
    assert isinstance(scene.attempt("cached").error, KeyRecordDowngrade)
    assert scene.pin("cached") == pin


def test_what_this_device_alone_has_seen_is_kept_when_the_server_is_what_is_wrong(scene: Scene) -> None:
    path = in_step(scene)
    before = objects(path)
    scene.server.restore(scene.folder / "10.db")
    for _ in range(2):
        assert scene.attempt("cached").error is not None
    assert objects(path) == before


def test_a_linked_cache_is_refused_and_its_target_left_alone(scene: Scene, tmp_path: Path) -> None:
    path = in_step(scene)
    target = tmp_path / "target"
    target.write_bytes(b"precious")
    target.chmod(0o600)
    path.unlink()
    path.symlink_to(target)
    assert isinstance(scene.attempt("cached").error, UnsafeFile)
    path.unlink()
    path.hardlink_to(target)
    assert isinstance(scene.attempt("cached").error, UnsafeFile)
    assert target.read_bytes() == b"precious"


# Several at once.


def test_two_clients_share_one_file(scene: Scene) -> None:
    one, two = scene.open("cached"), scene.open("cached")
    for number in range(4):
        one.save(Draft(f"one {number}"))
        two.save(Draft(f"two {number}"))
    one.sync()
    assert {memory.id: memory.text for memory in one.memories} == {memory.id: memory.text for memory in two.memories}
    one.close()
    two.close()
    scene.server.honest()
    found = scene.attempt("cached")
    assert len(found.texts) == 4 + 8
    assert scene.server.requests() == ["GET /v1/account"]


def test_a_cache_that_another_process_holds_does_not_stop_anything(scene: Scene) -> None:
    path = in_step(scene)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    vault = scene.open("cached")
    vault.save(Draft("meanwhile"))
    holder.execute("ROLLBACK")
    holder.close()
    vault.save(Draft("and after"))
    vault.close()
    for _ in range(3):
        assert {"meanwhile", "and after"} <= set(scene.attempt("cached").texts.values())
    scene.server.honest()
    scene.attempt("cached")
    assert scene.server.requests() == ["GET /v1/account"]


def test_two_processes_share_one_file(scene: Scene) -> None:
    in_step(scene)
    code = (
        "import sys; from squirrel_mcp import opening; from squirrel_mcp.memory import Draft\n"
        "from squirrel_mcp.settings import Settings\n"
        "s = Settings.read(); v = opening.open_vault(s, opening.from_settings(s))\n"
        "[v.save(Draft(f'{sys.argv[1]} {n}')) for n in range(5)]; v.close()"
    )
    settings = scene.settings("cached")
    environment = {
        **os.environ,
        "SQUIRREL_DATA_DIR": str(settings.data_dir),
        "SQUIRREL_PASSPHRASE": settings.passphrase or "",
        "SQUIRREL_API_BASE_URL": settings.api_base_url or "",
        "SQUIRREL_API_KEY": settings.api_key or "",
    }
    children = [subprocess.Popen([sys.executable, "-c", code, name], env=environment) for name in ("red", "blue")]
    assert [child.wait() for child in children] == [0, 0]
    found = scene.attempt("cached")
    assert len(found.texts) == 4 + 10
    scene.server.honest()
    assert scene.attempt("cached").texts == found.texts
    assert scene.server.requests() == ["GET /v1/account"]
