"""A server process from its start to its end.

Order of a start: the pipes are claimed and signals handled before anything else is imported; the SDK is imported
without garbage collection; the first answer goes out; only then, in a thread, the service is imported, the process
hardened and the vault opened.
"""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, BinaryIO, NoReturn

from squirrel_mcp.edition import BASE, Edition
from squirrel_mcp.errors import SquirrelError
from squirrel_mcp.mcp_server.logs import log_to_stderr, watch_failures, where

if TYPE_CHECKING:
    from squirrel_mcp.mcp_server.notices import Notices
    from squirrel_mcp.service import MemoryService

CLOSING = 0.75  # seconds that the store has to close; it is safe against being killed at any time


def main(edition: Edition = BASE) -> NoReturn:
    """Serve over stdio until stdin ends or a signal comes."""
    ending = Ending()
    ending.watch_signals()
    watch_failures()
    try:
        code = _serve(ending, edition)
    # A border: whatever happens, it ends here, without the text of the exception.
    except BaseException as error:  # noqa: BLE001
        logging.getLogger(__name__).error("the server ended: %s", where(error))
        code = 1
    ending.now(code)


def _serve(ending: Ending, edition: Edition) -> int:
    gc.disable()  # a fifth of the SDK's import is spent on looking for garbage in what stays anyway
    try:
        stdin, stdout = claim_streams()
    except OSError:
        logging.getLogger(__name__).error("there is no stdin or stdout to serve on")
        return 2
    log_to_stderr()
    import anyio

    from squirrel_mcp.mcp_server.app import build_server
    from squirrel_mcp.mcp_server.notices import Notices
    from squirrel_mcp.mcp_server.wire import Wire

    notices = Notices()
    if stdin.isatty():
        commands = f"`{edition.command} --help` lists the commands for people."
        notices.say(f"memory: waiting for an MCP client on stdin; {commands}")
    opening = Opening(notices, edition)
    ending.close = opening.close
    server = build_server(opening.service, notices, after_success=opening.report_success)
    wire = Wire(stdin, stdout, after_first_answer=opening.start)
    gc.enable()
    gc.freeze()
    anyio.run(wire.serve, server)
    return 0


def claim_streams() -> tuple[BinaryIO, BinaryIO]:
    """The pipes to the client, under descriptors that nothing else knows.

    What prints, in this process or in a child, reaches stderr instead, and what reads finds an empty input. OSError
    where the process was started without the two.
    """
    stdin, stdout = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    try:
        os.dup2(2, 1)
    except OSError:  # no stderr either
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.close(silence)
    sys.stdout = sys.stderr
    return os.fdopen(stdin, "rb"), os.fdopen(stdout, "wb")


class Opening:
    """Makes the service, opens its vault behind the first answer, and says how that went."""

    def __init__(self, notices: Notices, edition: Edition) -> None:
        self._notices, self._edition = notices, edition
        self._service: MemoryService | None = None
        self._lock = threading.Lock()
        self._is_new = self._reported = False

    def service(self) -> MemoryService:
        """ConfigurationError where the settings do not allow one."""
        with self._lock:
            if self._service is None:
                from squirrel_mcp.service import MemoryService
                from squirrel_mcp.settings import Settings

                settings = Settings.read()
                self._is_new = settings.api_base_url is None and not settings.vault_path.exists()
                self._service = MemoryService(settings, edition=self._edition, say=self._notices.say)
            return self._service

    def start(self) -> None:
        """Open in a thread of its own."""
        threading.Thread(target=self._open, name="opening", daemon=True).start()

    def report_success(self) -> None:
        """Say the start-up line once there is something to say."""
        if not self._reported:
            self._report()

    def close(self) -> None:
        if self._service is not None:
            self._service.close()

    def _open(self) -> None:
        from squirrel_mcp.hardening import harden

        harden()
        try:
            service = self.service()
            gc.disable()
            try:
                service.open()
                self._report()
                service.warm()
            finally:
                gc.enable()
                gc.freeze()
        except SquirrelError as error:
            self._notices.trouble(error.code, str(error))

    def _report(self) -> None:
        from squirrel_mcp.mcp_server.notices import startup_line

        status = self.service().status()
        self._reported = status.unlocked
        self._notices.say(startup_line(status, self._edition))
        if self._is_new and status.unlocked and not status.recovery_code:
            from squirrel_mcp.advice import NO_RECOVERY_CODE

            self._notices.say(f"memory: {NO_RECOVERY_CODE}")


class Ending:
    """Ends the process within two seconds, whatever its threads are doing.

    The interpreter's own end waits for worker threads, and a signal handler may interrupt code that holds a lock. So
    handlers only write to a pipe; a thread that was there all along closes what can be closed, and then `os._exit`.
    """

    def __init__(self) -> None:
        self.close: Callable[[], None] = lambda: None
        self._requests, self._request = os.pipe()
        threading.Thread(target=self._wait, name="ending", daemon=True).start()

    def watch_signals(self) -> None:
        """SIGTERM ends with 0, the others with 128 + n; a second signal ends at once."""
        for name in ("SIGTERM", "SIGINT", "SIGHUP", "SIGBREAK"):
            if hasattr(signal, name):
                signal.signal(getattr(signal, name), self._on_signal)

    def now(self, code: int) -> NoReturn:
        os.write(self._request, bytes([code]))
        while True:
            threading.Event().wait()

    def _on_signal(self, number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        os.write(self._request, bytes([0 if number == signal.SIGTERM else 128 + number]))

    def _wait(self) -> None:
        code = os.read(self._requests, 1)[0]
        closing = threading.Thread(target=self.close, daemon=True)
        closing.start()
        closing.join(CLOSING)
        os._exit(code)
