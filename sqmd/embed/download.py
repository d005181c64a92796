"""Brings files of a model from the hub, once: what arrives is what the table pins, or nothing is kept."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from sqmd.errors import EmbedderDown
from squirrel_mcp_embeddings.manifest import MAX_FILE_BYTES

if TYPE_CHECKING:
    import httpx

    from sqmd.embed.catalog import HubModel
    from squirrel_mcp_embeddings.manifest import ModelFile

HUB = "https://huggingface.co"
CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0
TRIES = 4

Report = Callable[[int], None]  # is told how many bytes of the running file are there


def bring(model: HubModel, files: Sequence[ModelFile], folder: Path, hub: str = HUB) -> None:
    """See to it that `files` are in `folder`; what is there already is left alone. EmbedderDown where that fails."""
    if not _missing(files, folder):
        return
    import filelock

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(folder / ".lock"):  # two at once would write into the same .part
            _bring(model, _missing(files, folder), folder, hub)
    except OSError as error:
        raise EmbedderDown(f"{model.name} cannot be kept in {folder} ({error.strerror or error}).") from error


def _missing(files: Sequence[ModelFile], folder: Path) -> list[ModelFile]:
    return [file for file in files if not os.path.lexists(folder / file.path)]


def _bring(model: HubModel, files: Sequence[ModelFile], folder: Path, hub: str) -> None:
    with _client(model) as client, _progress(model, files, folder) as started:
        for file in files:
            target = folder / file.path
            target.parent.mkdir(parents=True, exist_ok=True)
            url = f"{hub}/{model.repository}/resolve/{model.commit}/{file.path}"
            _Download(model, file, client, url, target).run(started(file))


class _Download:
    """One file on its way."""

    def __init__(self, model: HubModel, file: ModelFile, client: httpx.Client, url: str, target: Path) -> None:
        self._model, self._file, self._client, self._url, self._target = model, file, client, url, target
        self._part = target.with_name(f"{target.name}.part")

    def run(self, report: Report) -> None:
        """The target, whole and checked. A part of an earlier attempt is completed; if that is wrong, anew, once."""
        went_on = self._so_far() > 0
        self._complete(report)
        if went_on and not self._is_right():
            self._part.unlink(missing_ok=True)
            self._complete(report)
        if not self._is_right():
            self._part.unlink(missing_ok=True)
            raise self._wrong()
        os.replace(self._part, self._target)

    def _so_far(self) -> int:
        return self._part.stat().st_size if self._part.exists() else 0

    def _is_right(self) -> bool:
        with self._part.open("rb") as content:
            return hashlib.file_digest(content, "sha256").digest() == self._file.sha256

    def _complete(self, report: Report) -> None:
        """Load what is missing. A connection that breaks is taken up again as long as bytes come."""
        import httpx

        failures = 0
        while (before := self._so_far()) != self._file.size:
            try:
                return self._load_rest(before, report)
            except httpx.RequestError as error:
                grown = self._so_far() > before
                failures = 1 if grown else failures + 1
                # Where nothing ever came there is no point in patience.
                if failures >= (TRIES if before or grown else 1):
                    raise self._unreachable(error) from error

    def _load_rest(self, before: int, report: Report) -> None:
        most = self._file.size or MAX_FILE_BYTES
        # Compressed bytes could not be counted, nor gone on with.
        headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={before}-"} if before else {})}
        with self._client.stream("GET", self._url, headers=headers) as response:
            if before and response.status_code == 416:
                return  # nothing is missing, so the hash will tell
            if response.status_code not in (200, 206):
                raise EmbedderDown(
                    f"The hub answered {response.status_code} for {self._file.name} of {self._model.name}: "
                    "try again later, or choose another model."
                )
            goes_on = response.status_code == 206 and _starts_at(response, before)
            if response.status_code == 206 and not goes_on:
                raise self._wrong()
            done = before if goes_on else 0
            with self._part.open("ab" if goes_on else "wb") as out:
                for chunk in response.iter_raw():
                    done += len(chunk)
                    if done > most:
                        break  # longer than it may be: the hash will be wrong
                    out.write(chunk)
                    report(done)
        if done > most:
            self._part.unlink()
            raise self._wrong()

    def _wrong(self) -> EmbedderDown:
        return EmbedderDown(
            f"What the hub sent as {self._file.name} of {self._model.name} is not the file that sqmd knows, and was "
            "not kept: try again, or find out what stands between here and there."
        )

    def _unreachable(self, error: Exception) -> EmbedderDown:
        return EmbedderDown(
            f"The hub cannot be reached to download {self._model.name} ({str(error) or type(error).__name__}): try "
            "again with a network; what is here already is kept."
        )


def _starts_at(response: httpx.Response, before: int) -> bool:
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return found is not None and int(found[1]) == before


def _client(model: HubModel) -> httpx.Client:
    """Follows redirects: the hub sends large files from another host. Which one does not matter, the hash decides.

    trust_env, unlike elsewhere: where there is a proxy it is the way out, and nothing of the user's is sent.
    """
    import httpx

    timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
    try:
        return httpx.Client(trust_env=True, follow_redirects=True, timeout=timeout)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise EmbedderDown(
            f"{model.name} cannot be downloaded: the proxy that the environment names cannot be used ({error})."
        ) from error


@contextmanager
def _progress(model: HubModel, files: Sequence[ModelFile], folder: Path) -> Iterator[Callable[[ModelFile], Report]]:
    """A bar for each file on stderr, or a line where that is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    console = Console(stderr=True)
    size = sum(file.size or 0 for file in files)
    console.print(
        f"Downloading {', '.join(file.name for file in files)} of {model.name} to {folder}, this once"
        f"{f': {size / 1e6:,.0f} MB' if size > 1e6 else ''}.",
        highlight=False,
        markup=False,
        soft_wrap=True,
    )
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress:

        def started(file: ModelFile) -> Report:
            task = progress.add_task(file.name, total=file.size)
            return lambda done: progress.update(task, completed=done)

        yield started
