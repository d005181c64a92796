"""Files of one owner: modes under any umask, links and strange files refused, old or new and never mixed."""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from squirrel_mcp import private_files
from squirrel_mcp.errors import StoreFull, StoreUnavailable, UnsafeFile


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "private"
    private_files.ensure_folder(path)
    return path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_modes_do_not_depend_on_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        private_files.ensure_folder(tmp_path / "f")
        private_files.create(tmp_path / "f" / "made")
        private_files.replace(tmp_path / "f" / "written", b"x")
        with private_files.lock(tmp_path / "f" / "lock"):
            pass
    finally:
        os.umask(before)
    assert mode(tmp_path / "f") == 0o700
    assert mode(tmp_path / "f" / "made") == mode(tmp_path / "f" / "written") == 0o600
    assert private_files.read(tmp_path / "f" / "written", 10) == b"x"


def test_links_are_refused_and_their_targets_untouched(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"untouched")
    victim.chmod(0o600)
    soft, hard = folder / "soft", folder / "hard"
    soft.symlink_to(victim)
    hard.hardlink_to(victim)
    for path in (soft, hard):
        with pytest.raises(UnsafeFile):
            private_files.check(path)
        with pytest.raises(UnsafeFile):
            private_files.read(path, 100)
        with pytest.raises(UnsafeFile), private_files.lock(path):
            pass
        private_files.replace(path, b"new")
        assert path.read_bytes() == b"new" and not path.is_symlink()
    assert victim.read_bytes() == b"untouched"


def test_a_link_where_the_temporary_file_goes_does_not_redirect_the_write(folder: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"untouched")
    (folder / "state.new").symlink_to(victim)
    private_files.replace(folder / "state", b"new")
    assert victim.read_bytes() == b"untouched"
    assert (folder / "state").read_bytes() == b"new"


def test_fifos_devices_folders_and_large_files_are_refused_without_a_hang(folder: Path) -> None:
    os.mkfifo(folder / "fifo", 0o600)
    (folder / "folder").mkdir(0o700)
    private_files.replace(folder / "large", b"x" * 101)
    for name in ("fifo", "folder", "large"):
        with pytest.raises(UnsafeFile):
            private_files.read(folder / name, 100)
    with pytest.raises(UnsafeFile):
        private_files.read(Path("/dev/zero"), 100)


@pytest.mark.parametrize("bits", [0o644, 0o640, 0o606, 0o660])
def test_a_file_open_to_others_is_refused(folder: Path, bits: int) -> None:
    path = folder / "file"
    private_files.replace(path, b"x")
    path.chmod(bits)
    with pytest.raises(UnsafeFile):
        private_files.read(path, 10)


def test_a_folder_that_others_can_write_or_that_is_a_link_is_refused(folder: Path, tmp_path: Path) -> None:
    folder.chmod(0o777)
    with pytest.raises(UnsafeFile):
        private_files.ensure_folder(folder)
    folder.chmod(0o755)
    private_files.ensure_folder(folder)
    (tmp_path / "link").symlink_to(folder)
    with pytest.raises(UnsafeFile):
        private_files.ensure_folder(tmp_path / "link")
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UnsafeFile):
        private_files.ensure_folder(tmp_path / "file")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_another_user_is_refused(folder: Path) -> None:
    path = folder / "file"
    private_files.replace(path, b"x")
    os.chown(path, 12345, 12345)
    with pytest.raises(UnsafeFile):
        private_files.read(path, 10)


def test_a_missing_file_is_none_and_no_error(folder: Path) -> None:
    assert private_files.read(folder / "none", 10) is None
    assert not private_files.check(folder / "none")


def test_a_write_that_does_not_fit_leaves_the_old_file_whole(folder: Path) -> None:
    path = folder / "file"
    private_files.replace(path, b"old")
    script = textwrap.dedent("""
        import resource, signal, sys
        from pathlib import Path
        from squirrel_mcp import private_files
        from squirrel_mcp.errors import StoreFull
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
        try:
            private_files.replace(Path(sys.argv[1]), b"x" * 5000)
        except StoreFull as error:
            print(error.code)
    """)
    result = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == StoreFull.code
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in folder.iterdir()] == ["file"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_eight_writers_and_a_killed_lock_holder_leave_one_whole_file(folder: Path) -> None:
    path = folder / "file"
    holder = subprocess.Popen(
        [
            sys.executable, "-c",
            "import sys, time; from pathlib import Path; from squirrel_mcp import private_files\n"
            "with private_files.lock(Path(sys.argv[1])):\n    print('held', flush=True); time.sleep(600)",
            str(folder / "lock"),
        ],
        stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None and holder.stdout.readline() == b"held\n"
    holder.kill()
    holder.wait()
    holder.stdout.close()

    def write(number: int) -> None:
        with private_files.lock(folder / "lock"):
            private_files.replace(path, bytes([number]) * 10_000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(64)))
    content = path.read_bytes()
    assert len(content) == 10_000 and len(set(content)) == 1


def test_a_lock_that_is_held_for_too_long_is_an_error_and_no_hang(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(private_files, "LOCK_TIMEOUT", 0.01)
    with (
        private_files.lock(folder / "lock"),
        pytest.raises(StoreUnavailable, match="Another process"),
        private_files.lock(folder / "lock"),
    ):
        pass


def test_a_folder_in_one_that_everybody_can_write_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(UnsafeFile):
        private_files.ensure_folder(tmp_path / "data")
    tmp_path.chmod(0o1777)  # as the system's own folder for temporary files is
    private_files.ensure_folder(tmp_path / "data")


def test_folders_on_the_way_are_private_too(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        private_files.ensure_folder(tmp_path / "a" / "b" / "c")
    finally:
        os.umask(before)
    assert [mode(tmp_path / part) for part in ("a", "a/b", "a/b/c")] == [0o700] * 3
