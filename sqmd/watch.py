"""Follows folders: what changes in them is indexed a moment after it has come to rest.

The operating system tells what changed (watchfiles). Every half a minute that is compared with what is there; where a
change was not told, as on most network drives, the folder is looked through every second from then on.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqmd import original
from sqmd.changes import Check, Native, Snapshot, looked_through, snapshot, told_by_the_system
from sqmd.errors import IndexBusy, NoSuchPath, NotIndexed, SqmdError

if TYPE_CHECKING:
    from types import TracebackType

    from sqmd.config import Config
    from sqmd.indexer import Summary
    from sqmd.service import Service

CHECK_SECONDS = 30.0
POLL_SECONDS = 1.0
_READY = 2.0  # seconds that a server waits until every change is noticed
_TICK = 0.2  # seconds until somebody who waits looks whether it is over
_TURN = 1.0  # seconds until it is asked again whether another process still indexes
_RETRY = 30.0  # seconds after a failure that will not be over at once
_AT_MOST = 10  # debounce times: who writes without a pause is indexed nevertheless
_ENDING = 2.0  # seconds that the threads have to end in; an indexing is safe against being cut off


class Indexes(Protocol):
    """What a watcher needs of the service."""

    config: Config
    watching: bool

    def index(
        self, paths: Sequence[Path], *, stop: Callable[[], bool] | None = None, vectors: bool = True
    ) -> Summary: ...

    def paths(self, prefix: str = "") -> list[str]: ...

    def is_indexed(self) -> bool: ...


class Watcher:
    """Watches `roots`, folders or files, from `start` to `stop`; also a context.

    say: is told, once each, what goes wrong. indexed: is given the summary of each run. rescan: begin with a run, for
    what changed before.
    """

    def __init__(
        self,
        service: Indexes,
        roots: Sequence[Path],
        *,
        say: Callable[[str], None],
        indexed: Callable[[Summary], None] = lambda _: None,
        rescan: bool = False,
        native: Native | None = None,
        check_seconds: float = CHECK_SECONDS,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:
        self._service = service
        self.stopped = threading.Event()
        self._said: set[str] = set()
        self._say = say
        self._indexed = indexed
        source, times = native or told_by_the_system, (check_seconds, poll_seconds)
        folders = service.config.paths.watch_dirs  # whose names the index has, whatever link leads there
        distinct = dict.fromkeys(original.placed(root, folders) for root in roots)
        self._roots = [_Root(root, self, service, source, times, rescan) for root in distinct]
        self._without_vectors = threading.Event()
        work = [*(each.run for each in self._roots), self._fill]
        self._threads = [threading.Thread(target=each, name="watching", daemon=True) for each in work]

    def start(self) -> None:
        self._service.watching = True
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Returns when all has come to rest, or after a few seconds."""
        self.stopped.set()
        self._service.watching = False
        deadline = time.monotonic() + _ENDING
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def ready(self, timeout: float | None = None) -> bool:
        """Wait until whatever changes from now on is noticed."""
        return all(root.ready.wait(timeout) for root in self._roots)

    def __enter__(self) -> Watcher:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def say_once(self, message: str) -> None:
        if message not in self._said:
            self._said.add(message)
            self._say(message)

    def report(self, summary: Summary) -> None:
        for path, reason in summary.failed:
            self.say_once(f"{path}: {reason}")
        if summary.chunks:
            self._without_vectors.set()
        self._indexed(summary)

    def rescan(self, why: str) -> None:
        """A run over everything failed elsewhere: say so, and try it again in a while."""
        self.say_once(why)
        self._without_vectors.set()
        for root in self._roots:
            root.look_again(_RETRY)

    def rescan_others(self, one: _Root) -> None:
        for root in self._roots:
            if root is not one:
                root.look_again(0.0)

    def _fill(self) -> None:
        """Compute the vectors of what was indexed. It takes long, and text that changes meanwhile goes first."""
        while not self.stopped.is_set():
            if not self._without_vectors.wait(_TICK):
                continue
            self._without_vectors.clear()
            wait = 0.0
            try:
                self._indexed(self._service.index((), stop=self.stopped.is_set))
            except IndexBusy:
                wait = _TURN
            except SqmdError as error:
                self.say_once(str(error))
                wait = _RETRY
            # A border: as where the text is indexed.
            except Exception as error:  # noqa: BLE001
                self.say_once(f"Vectors could not be computed ({type(error).__name__}); it is tried again.")
                wait = _RETRY
            if wait:
                self._without_vectors.set()
                self.stopped.wait(wait)


class _Root:
    """One root in a thread of its own. What is to be done is `_files`, or `_all` of it."""

    def __init__(
        self,
        root: Path,
        watcher: Watcher,
        service: Indexes,
        source: Native,
        seconds: tuple[float, float],
        rescan: bool,
    ) -> None:
        from sqmd.ingest.scan import Selection, anchor_of

        self._watcher, self._service, self._source = watcher, service, source
        self._root, self._stopped = root, watcher.stopped
        settings = service.config.watcher
        self._settings = settings
        self._anchor = anchor_of(root, service.config.paths.watch_dirs)
        self._selection = Selection(root, settings.extensions, settings.ignore_patterns, self._anchor)
        self._debounce = settings.debounce_ms / 1000
        self._check_seconds, self._poll_seconds = seconds
        self._polling = settings.poll
        self.ready = threading.Event()
        self._wanted: float | None = None
        self._files: set[Path] = set()
        self._all = rescan
        self._first = self._last = time.monotonic() if rescan else 0.0
        self._not_before = 0.0
        self._is_file = False

    def run(self) -> None:
        away = False
        while not self._stopped.is_set():
            if not os.path.exists(self._root):  # unlike Path.exists it raises nothing, such as for a drive that fails
                # It may be a drive that is unplugged: what is indexed of it stays.
                self._watcher.say_once(f"{self._root} is not there; it is watched as soon as it is.")
                away = True
                self.ready.set()
                self._stopped.wait(self._poll_seconds)
                continue
            if away:
                away = False
                self._note_all()
            self._is_file = os.path.isfile(self._root)
            try:
                self._follow(
                    looked_through(self._snapshot, self._stopped, self._poll_seconds)
                    if self._polling
                    else self._native()
                )
            # A border: of watchfiles, such as too many folders for the system, or a mistake, which ends no watching.
            except Exception as error:  # noqa: BLE001
                if not os.path.exists(self._root):
                    continue
                if self._polling:
                    self._watcher.say_once(f"{self._root} cannot be watched at present: {_reason(error)}.")
                    self._stopped.wait(self._poll_seconds)
                else:
                    self._poll(f"the system cannot tell its changes ({_reason(error)})")

    def _follow(self, changes: Iterator[set[Path]]) -> None:
        """Until the root goes or is another one, or the way of watching changes."""
        check: Check | None = None
        told: set[Path] = set()
        for paths in changes:
            if self._stopped.is_set():
                return
            self.ready.set()
            told |= paths
            if self._note(paths):
                return
            self._index_if_due()
            if not os.path.exists(self._root):
                return
            if self._polling:
                continue
            if check is None:  # not before the system tells: what is in here may not have been told
                check = Check(self._snapshot(), self._check_seconds)
            elif check.is_due():
                if check.untold(self._snapshot(), told):
                    self._poll("its changes are not told by the system")
                    return
                told = set()

    def _poll(self, why: str) -> None:
        self._polling = True
        self._note_all()
        self._watcher.say_once(f"{self._root} is looked through every second: {why}.")

    def _snapshot(self) -> Snapshot:
        return snapshot(self._root, self._settings, self._anchor)

    def _native(self) -> Iterator[set[Path]]:
        folder = self._root if os.path.isdir(self._root) else self._root.parent
        real = os.path.realpath(folder)
        for paths in self._source(folder, not self._is_file, self._stopped):
            # Systems differ in whether they tell the path that was asked for or the one behind the links.
            yield {folder / path.relative_to(real) if path.is_relative_to(real) else path for path in paths}

    def _note(self, paths: Iterable[Path]) -> bool:
        """Take in what changed; whether the root itself did, so that it has to be watched anew."""
        known: list[str] | None = None
        for path in paths:
            if self._is_file:
                if path == self._root:
                    self._note_file(path)
            elif path == self._root:
                self._note_all()
                return True
            elif not path.is_relative_to(self._root):  # behind a link to another folder
                if self._selection.is_markdown(path.name):
                    self._note_all()
            elif self._selection.shuts(path.parent):
                continue
            elif os.path.isdir(path):
                # It came, with what is in it, or its permissions changed.
                if any(map(self._selection.holds, _files_below(path))):
                    self._note_all()
            elif self._selection.holds(path):
                self._note_file(path)
            elif not os.path.exists(path):
                # Perhaps a folder that went with what was in it.
                known = self._known() if known is None else known
                if any(each.startswith(f"{path}{os.sep}") for each in known):
                    self._note_all()
        return False

    def _note_file(self, path: Path) -> None:
        if os.path.islink(path) or not os.path.exists(path):
            self._note_all()  # only with the others is it seen what moved, and which links count
        else:
            self._files.add(path)
            self._touch()

    def _note_all(self) -> None:
        self._all = True
        self._touch()

    def _touch(self) -> None:
        self._last = time.monotonic()
        self._first = self._first or self._last

    def _known(self) -> list[str]:
        try:
            return self._service.paths(str(self._root))
        except NotIndexed:
            pass
        except SqmdError:  # it cannot tell at present
            self._note_all()
        return []

    def _index_if_due(self) -> None:
        if self._wanted is not None:
            seconds, self._wanted = self._wanted, None
            self._again(set(), True, seconds)
        now = time.monotonic()
        rests = now - self._last >= self._debounce or now - self._first >= _AT_MOST * self._debounce
        if not self._first or not rests or now < self._not_before:
            return
        files, everything = self._files, self._all
        self._files, self._all, self._first = set(), False, 0.0
        try:
            if not everything and not self._service.is_indexed():
                everything = True  # somebody deleted it, and one file is not all that was in it
                self._watcher.rescan_others(self)
            paths = [self._root] if everything else sorted(files)
            self._watcher.report(self._service.index(paths, stop=self._stopped.is_set, vectors=False))
        except NoSuchPath:  # it went while it waited
            self._note_all()
        except IndexBusy:
            self._again(files, everything, max(self._debounce, _TURN))
        except SqmdError as error:
            self._watcher.say_once(str(error))
            self._again(files, everything, _RETRY)
        # A border: a mistake in one run is not to end the watching. Its text may quote a document.
        except Exception as error:  # noqa: BLE001
            self._watcher.say_once(f"{self._root} was not indexed ({type(error).__name__}); it is tried again.")
            self._again(files, everything, _RETRY)

    def look_again(self, seconds: float) -> None:
        """At all of it, after so long; from another thread."""
        self._wanted = seconds

    def _again(self, files: set[Path], everything: bool, seconds: float) -> None:
        self._files |= files
        self._all |= everything
        self._not_before = time.monotonic() + seconds
        self._touch()


@contextmanager
def following(service: Service, say: Callable[[str], None]) -> Iterator[None]:
    """What a server does beside serving: a run over `watch_dirs` in the background, and then what changes in them.

    With the watcher disabled there is a run only where nothing is indexed yet.
    """
    roots = service.config.paths.watch_dirs
    if not service.config.watcher.enabled:
        begin(service, say, only_first=True)
        yield
        return
    with Watcher(service, roots, say=say) as watcher:
        watcher.ready(_READY)  # before the run, so that nothing is missed between the two
        begin(service, say, failed=watcher.rescan)
        yield


def begin(
    service: Service,
    say: Callable[[str], None],
    *,
    only_first: bool = False,
    failed: Callable[[str], None] | None = None,
) -> None:
    """Start a run over those of `watch_dirs` that are there. failed: told why, if it fails; `say` otherwise."""
    try:
        if only_first and service.status().indexed:
            return
    except SqmdError as error:
        say(str(error))
        return
    present = [root for root in service.config.paths.watch_dirs if os.path.exists(root)]
    if present:
        service.trigger(present, then=lambda job: (failed or say)(job.failure) if job.failure else None)


def _files_below(folder: Path) -> Iterator[Path]:
    for parent, _, names in os.walk(folder):
        yield from (Path(parent) / name for name in names)


def _reason(error: Exception) -> str:
    if not isinstance(error, OSError | RuntimeError):
        return type(error).__name__  # a mistake, whose text may quote a document
    return getattr(error, "strerror", None) or str(error).split("\n")[0].rstrip(".") or type(error).__name__
