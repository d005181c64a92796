"""Finds the Markdown files below a folder, in an order that depends on their names alone."""

from __future__ import annotations

import os
import stat
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqmd.errors import NoSuchPath
from sqmd.ingest.ignore import IgnoreRules

_NO_TEXT = "its name is not Unicode"


@dataclass(frozen=True, slots=True)
class Found:
    """A file: its absolute path, when it changed (nanoseconds since 1970) and its size in bytes."""

    path: Path
    mtime_ns: int
    size: int


class Selection:
    """Which paths below `root` are Markdown that is not ignored; also for a path that is gone. It touches no disk.

    The ignore rules are anchored at `anchor`, which holds the root, or at the root itself.
    """

    def __init__(
        self, root: Path, extensions: Sequence[str], ignore_patterns: Sequence[str], anchor: Path | None = None
    ) -> None:
        self.root = Path(os.path.abspath(root))
        self._extensions = tuple(each.lower() for each in extensions)
        self._rules = IgnoreRules(ignore_patterns)
        self._above = self.root.relative_to(os.path.abspath(anchor or root)).parts

    def is_markdown(self, name: str) -> bool:
        """By its name's ending, in either case."""
        return name.lower().endswith(self._extensions)

    def ignores(self, relative: str, *, folder: bool) -> bool:
        """A path relative to the root, with slashes, by itself; what is in an ignored folder is to be left out too."""
        return self._rules.ignore("/".join((*self._above, relative)), folder=folder)

    def shuts(self, folder: Path) -> bool:
        """Whether what is in the root, or a folder below it, is left out: it, or a folder above it, is ignored."""
        parts = (*self._above, *folder.relative_to(self.root).parts)
        return any(self._rules.ignore("/".join(parts[:depth]), folder=True) for depth in range(1, len(parts) + 1))

    def holds(self, path: Path) -> bool:
        """Whether a scan would find this path if a file were there."""
        path = Path(os.path.abspath(path))
        if path == self.root or not path.is_relative_to(self.root) or not self.is_markdown(path.name):
            return False
        return not self.ignores(path.relative_to(self.root).as_posix(), folder=False) and not self.shuts(path.parent)


def anchor_of(root: Path, folders: Sequence[Path]) -> Path | None:
    """The innermost of these folders, if any, that is `root` or holds it."""
    holding = [folder for folder in folders if Path(os.path.abspath(root)).is_relative_to(folder)]
    return max(holding, key=lambda folder: len(folder.parts), default=None)


def scan(
    root: Path,
    extensions: Sequence[str],
    ignore_patterns: Sequence[str],
    skipped: Callable[[Path, str], None],
    *,
    anchor: Path | None = None,
) -> Iterator[Found]:
    """Every plain file that `Selection` holds; `root` may be a file, which then has to be one of its folder's.

    Links are followed. A folder is looked through once, under its own path if that is below the root, so links in a
    circle end; a link to a file that is found anyway is left out. `skipped` hears, with the reason, of what cannot be
    looked at. NoSuchPath if there is no root.
    """
    root = Path(os.path.abspath(root))
    try:
        status = os.stat(root)
    except (OSError, ValueError) as error:
        raise NoSuchPath(root) from error
    if not _is_text(str(root)):
        skipped(root, _NO_TEXT)
        return
    folder = root if stat.S_ISDIR(status.st_mode) else root.parent
    selection = Selection(folder, extensions, ignore_patterns, folder if anchor == root else anchor)
    if folder == root:
        if not selection.shuts(root):
            yield from _Walk(selection, skipped).files()
    elif not selection.is_markdown(root.name):
        skipped(root, "its ending is none of watcher.extensions")
    elif stat.S_ISREG(status.st_mode) and selection.holds(root):
        yield Found(root, status.st_mtime_ns, status.st_size)


class _Walk:
    """One scan of a folder. Links wait until everything that has a path of its own was seen."""

    def __init__(self, selection: Selection, skipped: Callable[[Path, str], None]) -> None:
        self._selection = selection
        self._skipped = skipped
        self._links: deque[tuple[str, os.stat_result]] = deque()
        self._folders: set[tuple[int, int]] = set()
        self._files: set[tuple[int, int]] = set()

    def files(self) -> Iterator[Found]:
        yield from self._below("", None)
        while self._links:
            relative, status = self._links.popleft()
            if stat.S_ISDIR(status.st_mode):
                yield from self._below(relative, status)
            elif _place(status) not in self._files and self._can_be_named(relative):
                yield self._found(relative, status)

    def _below(self, start: str, status: os.stat_result | None) -> Iterator[Found]:
        waiting = [(start, status)]
        while waiting:
            folder, status = waiting.pop()
            try:
                place = _place(status or os.stat(self._selection.root / folder))
                if place in self._folders:
                    continue
                self._folders.add(place)
                with os.scandir(self._selection.root / folder) as listing:
                    entries = sorted(listing, key=lambda entry: entry.name)
            except FileNotFoundError:  # it went meanwhile
                if not folder:
                    raise NoSuchPath(self._selection.root) from None
                continue
            except OSError as error:
                self._skipped(self._selection.root / folder, (error.strerror or "it cannot be listed").lower())
                continue
            inner: list[tuple[str, os.stat_result | None]] = []
            for entry in entries:
                relative = f"{folder}/{entry.name}" if folder else entry.name
                found = self._entry(relative, entry)
                if isinstance(found, Found):
                    yield found
                elif found:
                    inner.append((relative, None))
            waiting += reversed(inner)

    def _entry(self, relative: str, entry: os.DirEntry[str]) -> Found | bool:
        """The file that this is, or whether it is a folder to look through now."""
        selection = self._selection
        try:
            if not entry.is_symlink() and entry.is_dir():
                return not selection.ignores(relative, folder=True)
            if not selection.is_markdown(entry.name) and not entry.is_symlink():
                return False
            status = entry.stat()
        except FileNotFoundError:  # gone meanwhile, or a link to nothing
            return False
        except OSError as error:
            if not entry.is_symlink():  # a link in a circle is nobody's document
                self._skipped(selection.root / relative, (error.strerror or "it cannot be looked at").lower())
            return False
        folder = stat.S_ISDIR(status.st_mode)
        if not folder and not (stat.S_ISREG(status.st_mode) and selection.is_markdown(entry.name)):
            return False
        if selection.ignores(relative, folder=folder):
            return False
        if entry.is_symlink():
            self._links.append((relative, status))
            return False
        return self._can_be_named(relative) and self._found(relative, status)

    def _can_be_named(self, relative: str) -> bool:
        """Whether the index, which holds text, can hold this path; `skipped` hears of one that it cannot."""
        if not _is_text(relative):
            self._skipped(self._selection.root / relative, _NO_TEXT)
            return False
        return True

    def _found(self, relative: str, status: os.stat_result) -> Found:
        self._files.add(_place(status))
        return Found(self._selection.root / relative, status.st_mtime_ns, status.st_size)


def _place(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _is_text(name: str) -> bool:
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
