"""export and import as commands: files, questions, reports, exit codes."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from squirrel_mcp import opening
from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.errors import StoreFull
from squirrel_mcp.memory import Changes, Draft, Memory
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.portability import importing
from squirrel_mcp.service import MemoryService
from squirrel_mcp.settings import Settings
from squirrel_mcp.vault import Vault

from ..conftest import CHEAP, PASSPHRASE
from .conftest import Run

OTHER = "the passphrase of another vault"


@pytest.fixture
def lived_in(vault_dir: Path) -> Path:
    """Three memories, one of them corrected, and a forgotten one."""
    vault = opening.open_vault(Settings(data_dir=vault_dir), Unlocker(lambda: PASSPHRASE), parameters=CHEAP)
    for text in ("The router is 10.0.7.1", "Zoë likes tea ☕", "a third one", "soon forgotten"):
        vault.save(Draft(text, tags=("tag",)))
    first, *_, last = sorted(vault.memories, key=lambda memory: memory.text)
    vault.correct(first.id, Changes(text="The router is 10.0.9.1", reason="moved"))
    vault.forget(last.id)
    vault.close()
    return vault_dir


def _go_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, passphrase: str = OTHER) -> Path:
    monkeypatch.setenv("SQUIRREL_DATA_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("SQUIRREL_PASSPHRASE", passphrase)
    opening.open_vault(
        Settings(data_dir=tmp_path / "elsewhere"), Unlocker(lambda: passphrase), parameters=CHEAP
    ).close()
    return tmp_path / "elsewhere"


def _everything(run: Run) -> dict[str, object]:
    ids = [item["id"] for item in run("list", "--all", "--json").json["memories"]]
    return {memory_id: run("show", memory_id, "--history", "--json").json for memory_id in ids}


@pytest.mark.parametrize("options", [(), ("--plain", "--yes")])
def test_export_wipe_import_twice_gives_the_same_ids_tags_dates_and_history(
    run: Run, lived_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    before = _everything(run)
    file = tmp_path / "all.export"
    told = run("export", str(file), *options, "--json").json
    assert (told["memories"], told["revisions"], told["damaged"], told["complete"]) == (3, 4, [], True)
    assert told["bytes"] == file.stat().st_size and stat.S_IMODE(file.stat().st_mode) == 0o600

    _go_elsewhere(tmp_path, monkeypatch)
    (tmp_path / "was").write_text(PASSPHRASE)
    needed = () if options else ("--passphrase-file", str(tmp_path / "was"))
    first = run("import", str(file), *needed, "--json")
    assert (first.code, first.json["new"], first.json["revisions"], first.json["conflicts"]) == (Exit.OK, 3, 4, [])
    assert _everything(run) == before
    again = run("import", str(file), *needed, "--json").json
    assert (again["new"], again["present"], again["revisions"]) == (0, 3, 0)
    assert _everything(run) == before


def test_a_sealed_export_holds_nothing_readable_and_a_plain_one_does(run: Run, lived_in: Path, tmp_path: Path) -> None:
    run("export", str(tmp_path / "sealed"))
    run("export", str(tmp_path / "plain"), "--plain", "--yes")
    sealed, plain = (tmp_path / "sealed").read_bytes(), (tmp_path / "plain").read_text("utf-8")
    for word in ("router", "10.0.9.1", "Zoë", "tag", "moved"):
        assert word.encode() not in sealed and word in plain
    assert b"forgotten" not in sealed and "forgotten" not in plain


def test_an_export_is_remembered_and_status_tells_it(run: Run, lived_in: Path, tmp_path: Path) -> None:
    assert run("status", "--json").json["lastExport"] is None
    run("export", str(tmp_path / "x"))
    assert run("status", "--json").json["lastExport"] is not None


def test_readable_text_is_written_only_after_a_yes(run: Run, lived_in: Path, tmp_path: Path) -> None:
    ran = run("export", str(tmp_path / "x"), "--plain")
    assert ran.code == Exit.USAGE and "--yes" in ran.err and not (tmp_path / "x").exists()


def test_a_file_that_is_there_is_not_replaced_unasked(run: Run, lived_in: Path, tmp_path: Path) -> None:
    for name in ("x", "y.new"):
        (tmp_path / name).write_text("mine")
        ran = run("export", str(tmp_path / name.removesuffix(".new")))
        assert ran.code == Exit.USAGE and "--overwrite" in ran.err
        assert (tmp_path / name).read_text() == "mine"
    assert run("export", str(tmp_path / "x"), "--overwrite").code == Exit.OK
    assert (tmp_path / "x").read_bytes()[:4] == b"SQEX"


@pytest.mark.parametrize("name", ["vault.db", "vault.db-wal", "new", "pins/x", "VAULT.DB"])
@pytest.mark.parametrize("by_link", [False, True])
def test_an_export_never_writes_into_the_folder_of_the_vault(
    run: Run, lived_in: Path, tmp_path: Path, name: str, by_link: bool
) -> None:
    (tmp_path / "link").symlink_to(lived_in)
    folder = tmp_path / "link" if by_link else tmp_path / "data" / ".." / "data"
    before = _everything(run)
    for options in ((), ("--plain", "--yes")):
        ran = run("export", str(folder / name), "--overwrite", *options)
        assert ran.code == Exit.USAGE and len(ran.err.splitlines()) == 1
    assert _everything(run) == before


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no fifos here")
@pytest.mark.parametrize("suffix", ["", ".new"])
@pytest.mark.parametrize("kind", ["fifo", "link", "link to nothing", "link to the vault", "folder"])
def test_overwrite_replaces_plain_files_only(run: Run, lived_in: Path, tmp_path: Path, kind: str, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    (tmp_path / "mine").write_text("mine")
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case _:
            to = {"link": tmp_path / "mine", "link to nothing": tmp_path / "no"}.get(kind, lived_in / "vault.db")
            path.symlink_to(to)
    before = os.lstat(path)
    assert run("export", str(tmp_path / "x"), "--overwrite").code == Exit.USAGE
    assert os.path.samestat(before, os.lstat(path)) and (tmp_path / "mine").read_text() == "mine"


@pytest.mark.parametrize("name", ["last-export", "last-export.new"])
def test_an_export_that_cannot_be_noted_is_an_export_all_the_same(
    run: Run, lived_in: Path, tmp_path: Path, name: str
) -> None:
    (lived_in / name / "full").mkdir(parents=True)
    ran = run("export", str(tmp_path / "x"), "--json")
    assert (ran.code, ran.json["complete"]) == (Exit.OK, True) and len(ran.err.splitlines()) == 1
    status = run("status", "--json")
    assert (status.code, status.json["lastExport"]) == (Exit.OK, None)


@pytest.mark.parametrize("failure", [StoreFull("There is no space left."), FileExistsError(17, "File exists")])
def test_a_disk_that_fills_up_after_the_export_does_not_undo_it(
    run: Run, lived_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    def fail(_: MemoryService) -> None:
        raise failure

    monkeypatch.setattr(MemoryService, "note_export", fail)
    ran = run("export", str(tmp_path / "x"))
    assert ran.code == Exit.OK and "3 memories" in ran.out and len(ran.err.splitlines()) == 1


def test_an_export_into_a_folder_that_is_not_there_says_so(run: Run, lived_in: Path, tmp_path: Path) -> None:
    ran = run("export", str(tmp_path / "no" / "x"))
    assert ran.code == Exit.STORE and len(ran.err.splitlines()) == 1


def test_an_import_that_makes_the_vault_says_so(
    run: Run, lived_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("export", str(tmp_path / "x"), "--plain", "--yes")
    monkeypatch.setenv("SQUIRREL_DATA_DIR", str(tmp_path / "elsewhere"))
    ran = run("import", str(tmp_path / "x"), "--json")
    assert ran.json["new"] == 3
    assert str(tmp_path / "elsewhere" / "vault.db") in ran.err and "`squirrel-mcp recovery new`" in ran.err
    assert run("import", str(tmp_path / "x"), "--json").err == ""


def test_a_number_that_could_not_be_stored_is_a_bad_line(run: Run, lived_in: Path, tmp_path: Path) -> None:
    run("export", str(tmp_path / "x"), "--plain", "--yes")
    first, *others = (tmp_path / "x").read_text("utf-8").splitlines()
    (tmp_path / "x").write_text("\n".join([first[:-1] + ',"x":1e999}', *others]), "utf-8")
    ran = run("import", str(tmp_path / "x"), "--json")
    assert ran.code == Exit.USAGE and [line["line"] for line in ran.json["badLines"]] == [1]


def test_a_dry_run_tells_and_changes_nothing(
    run: Run, lived_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("export", str(tmp_path / "x"), "--plain", "--yes")
    monkeypatch.setenv("SQUIRREL_DATA_DIR", str(tmp_path / "elsewhere"))
    told = run("import", str(tmp_path / "x"), "--dry-run", "--json").json
    assert (told["imported"], told["new"], told["revisions"]) == (False, 3, 4)
    assert not (tmp_path / "elsewhere").exists()
    assert "would be new\t3" in run("import", str(tmp_path / "x"), "--dry-run").out


def test_an_import_makes_the_vault_if_there_is_none(
    run: Run, lived_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("export", str(tmp_path / "x"))
    monkeypatch.setenv("SQUIRREL_DATA_DIR", str(tmp_path / "elsewhere"))
    assert run("import", str(tmp_path / "x"), "--json").json["new"] == 3


def test_the_wrong_passphrase_for_an_export_makes_no_vault(
    run: Run, lived_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run("export", str(tmp_path / "x"))
    monkeypatch.setenv("SQUIRREL_DATA_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("SQUIRREL_PASSPHRASE", OTHER)
    ran = run("import", str(tmp_path / "x"))
    assert ran.code == Exit.LOCKED and "--passphrase-file" in ran.err
    assert not (tmp_path / "elsewhere").exists()


def test_a_conflict_is_named_and_left_and_ends_with_code_5(run: Run, lived_in: Path, tmp_path: Path) -> None:
    run("export", str(tmp_path / "x"), "--plain", "--yes")
    lines = [json.loads(line) for line in (tmp_path / "x").read_text("utf-8").splitlines()]
    lines[0]["text"] = "something else"
    (tmp_path / "y").write_text("\n".join(map(json.dumps, lines)))
    before = _everything(run)
    ran = run("import", str(tmp_path / "y"), "--json")
    assert ran.code == Exit.CONFLICT and ran.json["conflicts"] == [lines[0]["id"]]
    assert lines[0]["id"] in run("import", str(tmp_path / "y")).err
    assert _everything(run) == before


def test_what_was_forgotten_here_is_counted_and_does_not_come_back(run: Run, lived_in: Path, tmp_path: Path) -> None:
    run("export", str(tmp_path / "x"))
    memory_id = run("search", "tea", "--json").json["hits"][0]["id"]
    run("forget", memory_id, "--yes")
    told = run("import", str(tmp_path / "x"), "--json").json
    assert (told["forgottenHere"], told["forgottenThere"], told["present"]) == (1, 1, 2)
    assert run("show", memory_id).code == Exit.NOTHING


@pytest.mark.parametrize(("failure", "code"), [(StoreFull("There is no space."), 4), (KeyboardInterrupt(), 130)])
def test_an_import_that_is_stopped_says_how_far_it_came_and_goes_on(
    run: Run, vault_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: BaseException, code: int
) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text("".join(f'{{"text": "memory {number}"}}\n' for number in range(5)))
    really_put, calls = Vault.put_revisions, 0

    def put(vault: Vault, revisions: Sequence[Memory], unless_same: Collection[str] = ()) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise failure
        really_put(vault, revisions, unless_same)

    monkeypatch.setattr(importing, "_STEP", 2)
    monkeypatch.setattr(Vault, "put_revisions", put)
    ran = run("import", str(file))
    assert ran.code == code and "2 of 5 revisions are stored" in ran.err
    told = run("import", str(file), "--json").json
    assert (told["new"], told["present"]) == (3, 2)
    assert run("list", "--json").json["total"] == 5


def test_bad_lines_are_named_and_nothing_is_imported_unless_wanted(run: Run, vault_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text('{"text": "good"}\n{"text": 5}\nnonsense\n')
    ran = run("import", str(file), "--json")
    assert ran.code == Exit.USAGE and [line["line"] for line in ran.json["badLines"]] == [2, 3]
    assert "Line 2 has a text that is not a string." in ran.err and "Nothing was imported" in ran.err
    assert run("list").code == Exit.NOTHING
    ran = run("import", str(file), "--skip-bad-lines", "--json")
    assert (ran.code, ran.json["new"], len(ran.json["badLines"])) == (Exit.OK, 1, 2)
    assert "lines left out\t2" in run("import", str(file), "--skip-bad-lines").out


def test_very_many_bad_lines_do_not_fill_the_screen(run: Run, vault_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_text('{"text": 5}\n' * 1_000)
    ran = run("import", str(file))
    assert len(ran.err.splitlines()) < 30 and "980 more lines" in ran.err


@pytest.mark.parametrize("content", [b"\x00\x01\x02", b"SQEX", b"SQEX\x01" + bytes(200), b"PK\x03\x04"])
def test_a_file_that_is_no_export_is_refused_in_a_sentence(
    run: Run, vault_dir: Path, tmp_path: Path, content: bytes
) -> None:
    (tmp_path / "x").write_bytes(content)
    ran = run("import", str(tmp_path / "x"))
    assert ran.code == Exit.STORE and len(ran.err.splitlines()) == 1 and ran.out == ""


def test_an_altered_export_is_refused(run: Run, lived_in: Path, tmp_path: Path) -> None:
    run("export", str(tmp_path / "x"))
    raw = bytearray((tmp_path / "x").read_bytes())
    raw[len(raw) // 2] ^= 1
    (tmp_path / "x").write_bytes(raw)
    assert "check sum" in run("import", str(tmp_path / "x")).err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no fifos here")
def test_a_fifo_is_refused_and_does_not_hang(run: Run, vault_dir: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert run("import", str(tmp_path / "fifo")).code == Exit.USAGE


def test_after_damage_the_part_before_it_can_still_be_exported(run: Run, lived_in: Path, tmp_path: Path) -> None:
    # Entry 1 is the key set, 2 to 5 the memories; what is broken is the correction.
    with sqlite3.connect(lived_in / "vault.db") as database:
        (entry,) = database.execute("SELECT entry FROM log WHERE seq = 6").fetchone()
        database.execute("UPDATE log SET entry = ? WHERE seq = 6", (entry[:-1] + bytes([entry[-1] ^ 1]),))
    database.close()
    sealed = run("export", str(tmp_path / "sealed"))
    assert sealed.code == Exit.STORE and "entry 6" in sealed.err and not (tmp_path / "sealed").exists()
    plain = run("export", str(tmp_path / "plain"), "--plain", "--yes", "--json")
    assert plain.code == Exit.STORE and plain.json["complete"] is False and plain.json["memories"] >= 3
    assert "The router is 10.0.7.1" in (tmp_path / "plain").read_text("utf-8")
    assert run("status", "--json").json["lastExport"] is None


@pytest.mark.parametrize("options", [(), ("--plain", "--yes"), ("--overwrite",)])
def test_an_export_has_a_file_and_never_one_named_like_stdout(
    run: Run, lived_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    (empty := tmp_path / "empty").mkdir()
    monkeypatch.chdir(empty)
    ran = run("export", "-", *options)
    assert ran.code == Exit.USAGE and "give its name" in ran.err and ran.out == ""
    assert not list(empty.iterdir())
