"""The companion as a process, and what it keeps on disk, read by a second reader that shares no code with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from squirrel_mcp import opening
from squirrel_mcp.crypto.key_set import KeyRing
from squirrel_mcp.settings import Settings
from squirrel_mcp.vault import Vault
from squirrel_mcp_embeddings.manifest import Model
from squirrel_mcp_embeddings.memory_text import TEXT_FORMAT
from tests.vectors import independent_vector_file_reader as reader

from .conftest import PASSPHRASE
from .server_process import PATIENCE, ServerProcess, environment

SERVE = "from squirrel_mcp_embeddings.cli import main; main()"
BY_BASE, BY_COMPANION = "squirrel_mcp", "squirrel_mcp_embeddings"


@dataclass(frozen=True, slots=True)
class Companion:
    """One vault, the model of this checkout, and the folder for vectors below the home of every process."""

    data_dir: Path
    model: Model

    @property
    def home(self) -> Path:
        return self.data_dir.parent

    @property
    def cache_dir(self) -> Path:
        """Named to the processes, as platforms have it in different places."""
        return self.home / "cache"

    @property
    def ready(self) -> bytes:
        """The line that tells of the model."""
        return f"memory: local embeddings ready ({self.model.id})\n".encode()

    def environment(self, **variables: str) -> dict[str, str]:
        given = {"SQUIRREL_PASSPHRASE": PASSPHRASE, "SQUIRREL_MEMORY_CACHE_DIR": str(self.cache_dir), **variables}
        return environment(self.data_dir, **given)

    def serve(self, *, code: str = SERVE, **variables: str) -> ServerProcess:
        """A server that has answered `initialize`; use it as a context."""
        server = ServerProcess(self.environment(**variables), code=code)
        server.initialize()
        return server

    def run(self, package: str, *args: str, code: int = 0) -> Any:
        """The JSON that a command of the base or the companion prints."""
        ran = subprocess.run(
            [sys.executable, "-m", package, *args, "--json"],
            env=self.environment(), cwd=self.home, capture_output=True, encoding="utf-8", timeout=PATIENCE,
        )  # fmt: skip
        assert ran.returncode == code, ran
        return json.loads(ran.stdout)

    def open(self) -> Vault:
        """The vault in this process, to be closed."""
        settings = Settings(data_dir=self.data_dir, passphrase=PASSPHRASE)
        return opening.open_vault(settings, opening.from_settings(settings))

    def memories(self) -> dict[str, int]:
        """Revision by id; whole and sound."""
        vault = self.open()
        try:
            assert vault.verdict is None and not vault.damaged
            return {memory.id: memory.revision for memory in vault.memories}
        finally:
            vault.close()

    def rows(self) -> dict[str, int]:
        """Revision by id, of every row in the file: also of dead ones, the last of which counts. {} without a file."""
        vault = self.open()
        account, ring = vault.account_id, vault.ring
        vault.close()
        model = (self.model.id, self.model.weights.sha256, self.model.dimension, TEXT_FORMAT)
        deks = _secrets(ring)
        path = self.cache_dir / "squirrel-notes" / reader.file_name(deks[0], account, model)
        if not path.exists():
            return {}
        rows = reader.read(path.read_bytes(), account, deks, model)
        assert rows is not None, "the file is not what docs/protocol.md says"
        return {memory_id.hex(): revision for memory_id, revision, _ in rows}

    def wait_for_rows(self, *memory_ids: str) -> None:
        """Until the file holds these and no others; it is written behind the answers."""
        until = time.monotonic() + PATIENCE
        while self.rows().keys() != set(memory_ids):
            assert time.monotonic() < until, self.rows()
            time.sleep(0.05)

    def kept(self) -> set[str]:
        """The names of all files in the cache folder, but for the locks."""
        files = {path for path in self.cache_dir.rglob("*") if path.is_file()}
        return {path.name for path in files if path.suffix != ".lock"}


def ahead(folder: Path) -> dict[str, str]:
    """The variable that has modules in `folder` found before ours and before what is installed."""
    path = environment(folder)["PYTHONPATH"]
    return {"PYTHONPATH": f"{folder}{os.pathsep}{path}"}


def _secrets(ring: KeyRing) -> list[bytes]:
    """Every DEK, the first of the account first."""
    return [*(key.dek.secret() for key in ring.retired), ring.current.secret()]
