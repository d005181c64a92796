"""Files that only their owner can read, that no link redirects, and that are either old or new, never mixed.

Modes and ownership are checked where the platform has them; on Windows the profile's permissions protect the
folder.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from squirrel_mcp.errors import StoreFull, StoreUnavailable, UnsafeFile

LOCK_TIMEOUT = 10.0  # seconds; a writer holds the lock for milliseconds
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a fifo must not hang
_BINARY = getattr(os, "O_BINARY", 0)
_HAS_OWNERS = hasattr(os, "geteuid")


def ensure_folder(path: Path) -> None:
    """Make the folder with mode 0700; UnsafeFile if it is a link, somebody else's or writable by others."""
    with explained(path):
        try:
            for parent in reversed(path.parents):
                if not parent.exists():
                    parent.mkdir(mode=0o700, exist_ok=True)
                    os.chmod(parent, 0o700)
            path.mkdir(mode=0o700)
        except FileExistsError:
            pass
        else:
            os.chmod(path, 0o700)  # the umask may have taken bits away, even the owner's
        status = os.lstat(path)
        above = os.stat(path.parent)
    if not stat.S_ISDIR(status.st_mode):
        raise UnsafeFile(f"{path} is not a folder of its own: a link or a file stands in its place.")
    _check_owner(path, status, forbidden=0o022)
    if _HAS_OWNERS and above.st_mode & 0o002 and not above.st_mode & stat.S_ISVTX:
        raise UnsafeFile(f"{path.parent} lets every user replace what is in it: run `chmod o-w {path.parent}`.")


def check(path: Path) -> bool:
    """Whether the file is there; UnsafeFile unless it is a plain file with one name that only we can use."""
    with explained(path):
        try:
            status = os.lstat(path)
        except FileNotFoundError:
            return False
    _check_file(path, status)
    return True


def create(path: Path) -> None:
    """An empty file with mode 0600; FileExistsError if anything stands there."""
    with explained(path):
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o600)
        try:
            _own_mode(fd)
        finally:
            os.close(fd)


def read(path: Path, max_bytes: int) -> bytes | None:
    """The content, or None if there is no such file; UnsafeFile for what `check` refuses or a longer file."""
    with explained(path):
        file = open_file(path)
        if file is None:
            return None
        with io.BufferedReader(file) as reader:
            if os.fstat(file.fileno()).st_size > max_bytes:
                raise UnsafeFile(f"{path} is larger than such a file can be.")
            return reader.read(max_bytes)


def open_file(path: Path, *, write: bool = False) -> io.FileIO | None:
    """The file, unbuffered and perhaps to be changed in place, or None; UnsafeFile for what `check` refuses.

    What its reads and writes raise becomes one of our errors inside `explained`.
    """
    with explained(path):
        try:
            fd = os.open(path, (os.O_RDWR if write else os.O_RDONLY) | _NO_FOLLOW | _NO_WAIT | _BINARY)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EMLINK):
                raise UnsafeFile(f"{path} is a link; a file is expected there.") from None
            raise
        try:
            _check_file(path, os.fstat(fd))
            return io.FileIO(fd, "r+" if write else "r")
        except BaseException:
            os.close(fd)
            raise


def replace(path: Path, content: bytes) -> None:
    """Write the whole file durably, atomically, mode 0600. Callers serialise writers with `lock`."""
    replace_with(path, (content,))


def replace_with(path: Path, parts: Iterable[bytes]) -> None:
    """`replace` by content that comes in parts, so that no more than one of them need be in memory."""
    temporary = path.with_name(path.name + ".new")
    with explained(path):
        temporary.unlink(missing_ok=True)  # left by a writer that was killed
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _BINARY, 0o600)
        try:
            with open(fd, "wb") as file:
                _own_mode(fd)
                file.writelines(parts)
                file.flush()
                os.fsync(fd)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)


@contextmanager
def lock(path: Path, timeout: float | None = None) -> Iterator[None]:
    """Hold the lock file `path` against other processes and threads.

    StoreUnavailable after `timeout` seconds (`LOCK_TIMEOUT` if not given).

    The operating system lets go of it when its holder is killed.
    """
    import filelock

    check(path)
    held = filelock.FileLock(path, timeout=LOCK_TIMEOUT if timeout is None else timeout, mode=0o600)
    with explained(path):
        try:
            held.acquire()
        except filelock.Timeout:
            raise StoreUnavailable(f"Another process has held {path} for too long; try again.") from None
    try:
        yield
    finally:
        held.release()


def _check_file(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise UnsafeFile(f"{path} is not a plain file.")
    if status.st_nlink > 1:
        raise UnsafeFile(f"{path} has a second name (a hard link); remove the other one.")
    _check_owner(path, status, forbidden=0o077)


def _check_owner(path: Path, status: os.stat_result, forbidden: int) -> None:
    if not _HAS_OWNERS:
        return
    if status.st_uid != os.geteuid():
        raise UnsafeFile(f"{path} belongs to another user.")
    if status.st_mode & forbidden:
        mode = f"{stat.S_IMODE(status.st_mode):o}"
        raise UnsafeFile(f"{path} is open to other users (mode {mode}): run `chmod go= {path}`.")


def _own_mode(fd: int) -> None:
    if hasattr(os, "fchmod"):
        os.fchmod(fd, 0o600)


def _sync_folder(folder: Path) -> None:
    if os.name == "nt":
        return  # folders cannot be opened there; the rename itself is journalled
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """StoreFull or StoreUnavailable, with a sentence about `path`, for what the system refuses."""
    try:
        yield
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StoreFull(f"There is no space left to write {path}.") from None
        what = "written" if error.errno == errno.EROFS else "used"
        raise StoreUnavailable(f"{path} cannot be {what}: {error.strerror}.") from None
