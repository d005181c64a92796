"""What the base does with vector files it cannot read: those of the account go, everything else stays."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from squirrel_mcp import deleting, vector_files
from squirrel_mcp.crypto.key_set import KeyRing, RetiredKey
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp.settings import Settings
from squirrel_mcp.vector_files import FOLDER
from tests.squirrel_mcp.conftest import OpenVault

OURS, RETIRED, THEIRS = Dek(b"\1" * 32), Dek(b"\2" * 32), Dek(b"\3" * 32)
RING = KeyRing((RetiredKey(RETIRED, 1, bytes(32)),), OURS)


def header(dek: Dek) -> bytes:
    return b"SQVC\1\0\0\0" + dek.kid + bytes(56)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / FOLDER
    path.mkdir(mode=0o700)
    return path


def left(folder: Path) -> set[str]:
    """What is there, the lock files aside: those that writers may hold are left."""
    return {path.name for path in folder.iterdir() if path.suffix != ".lock"}


def test_the_files_of_every_key_of_the_account_go_and_no_others(folder: Path, tmp_path: Path) -> None:
    for name, content in {
        "memory-vectors-one.bin": header(OURS) + b"rows",
        "memory-vectors-two.bin": header(RETIRED),
        "memory-vectors-two.bin.new": header(OURS),  # of a writer that was killed
        "memory-vectors-bare.bin": header(OURS)[:24],
        "memory-vectors-theirs.bin": header(THEIRS),
        "memory-vectors-short.bin": header(OURS)[:23],
        "memory-vectors-empty.bin": b"",
        "memory-vectors-strange.bin": b"SQPN" + header(OURS)[4:],
        "another.bin": header(OURS),
    }.items():
        (folder / name).write_bytes(content)
    (folder / "memory-vectors-open.bin").write_bytes(header(OURS))
    (folder / "memory-vectors-open.bin").chmod(0o666)
    vector_files.drop(tmp_path, RING)
    assert left(folder) == {
        "memory-vectors-theirs.bin",
        "memory-vectors-short.bin",
        "memory-vectors-empty.bin",
        "memory-vectors-strange.bin",
        "another.bin",
    }


def test_who_knows_one_key_id_deletes_what_that_key_made(folder: Path, tmp_path: Path) -> None:
    for name, dek in (("ours", OURS), ("retired", RETIRED)):
        (folder / f"memory-vectors-{name}.bin").write_bytes(header(dek))
    vector_files.drop_of(tmp_path, [OURS.kid])
    assert left(folder) == {"memory-vectors-retired.bin"}


def test_links_fifos_and_folders_are_passed_over_without_a_hang(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(header(OURS))
    (folder / "memory-vectors-link.bin").symlink_to(victim)
    os.mkfifo(folder / "memory-vectors-fifo.bin")
    (folder / "memory-vectors-folder.bin").mkdir()
    (folder / "memory-vectors-ours.bin").write_bytes(header(OURS))
    vector_files.drop(tmp_path, RING)
    assert left(folder) == {"memory-vectors-link.bin", "memory-vectors-fifo.bin", "memory-vectors-folder.bin"}
    assert victim.read_bytes() == header(OURS)


def test_of_a_hard_link_the_name_in_our_folder_goes_and_the_content_stays(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(header(OURS))
    (folder / "memory-vectors-link.bin").hardlink_to(victim)
    vector_files.drop(tmp_path, RING)
    assert left(folder) == set() and victim.read_bytes() == header(OURS)


def test_a_folder_that_is_a_link_is_not_followed(folder: Path, tmp_path: Path) -> None:
    (folder / "memory-vectors-ours.bin").write_bytes(header(OURS))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / FOLDER).symlink_to(folder)
    vector_files.drop(tmp_path / "cache", RING)
    assert left(folder) == {"memory-vectors-ours.bin"}


def test_no_folder_is_no_error(tmp_path: Path) -> None:
    vector_files.drop(tmp_path, RING)
    (tmp_path / FOLDER).write_bytes(b"a file")
    vector_files.drop(tmp_path, RING)
    vector_files.drop(tmp_path / FOLDER, RING)
    assert os.listdir(tmp_path) == [FOLDER]


def test_deleting_an_account_deletes_its_vector_files(settings: Settings, open_vault: OpenVault) -> None:
    vault = open_vault()
    vault.rotate(settings.passphrase or "", None)
    first = vault.ring.retired[0].dek
    folder = settings.cache_dir / FOLDER
    folder.mkdir(parents=True)
    for name, dek in (("current", vault.ring.current), ("first", first), ("of another account", THEIRS)):
        (folder / f"memory-vectors-{name}.bin").write_bytes(header(dek))
    deleting.delete(settings, vault)
    assert left(folder) == {"memory-vectors-of another account.bin"}


def test_the_one_to_keep_stays_and_what_its_owner_is_writing(folder: Path, tmp_path: Path) -> None:
    kept = {"memory-vectors-mine.bin", "memory-vectors-mine.bin.new"}
    for name in (*kept, "memory-vectors-other.bin"):
        (folder / name).write_bytes(header(OURS))
    vector_files.drop(tmp_path, RING, keep=folder / "memory-vectors-mine.bin")
    assert left(folder) == kept
