"""How the parts are: the database, the model that computes vectors, the watcher."""

from __future__ import annotations

import threading
import time
from typing import Any

from sqmd.errors import NotIndexed, SqmdError
from sqmd.service import Service

_SECONDS = 10.0  # so long what was found out about the embedder holds: asking it computes, or calls another server


class States:
    """Asked by any thread."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._asking = threading.Lock()
        self._embedder, self._until = "ok", 0.0

    def now(self) -> dict[str, Any]:
        """`Health` without the time."""
        db, embedder = self._database_state(), self._embedder_state()
        well = db in ("ok", NotIndexed.code) and embedder == "ok"
        return {
            "status": "ok" if well else "degraded",
            "db": db,
            "embedder": embedder,
            "watcher": self._watcher_state(),
        }

    def _database_state(self) -> str:
        try:
            return "ok" if self._service.status().indexed else NotIndexed.code
        except SqmdError as error:
            return error.code

    def _embedder_state(self) -> str:
        with self._asking:
            if time.monotonic() >= self._until:
                try:
                    self._service.embedder.embed_query("health")
                    self._embedder = "ok"
                except SqmdError as error:
                    self._embedder = error.code
                self._until = time.monotonic() + _SECONDS
            return self._embedder

    def _watcher_state(self) -> str:
        if self._service.watching:
            return "running"
        return "stopped" if self._service.config.watcher.enabled else "disabled"
