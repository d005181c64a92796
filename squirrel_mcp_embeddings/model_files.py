"""Reads a model's files: each once, and what was checked is what is handed over.

The manifest is the package's own in any case. A folder of models that somebody else points to brings files and never
the hashes that they are judged by.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from mmap import mmap
from pathlib import Path
from typing import TypeAlias

from squirrel_mcp_embeddings import manifest
from squirrel_mcp_embeddings.errors import ModelUnavailable
from squirrel_mcp_embeddings.manifest import ManifestDamaged, Model, ModelFile

__all__ = ["LoadedFiles", "ModelUnavailable", "find", "listed", "own_home", "read", "read_tokenizer"]

# Python has a name for what holds bytes, memory-mapped files among them, from 3.12 on.
Buffer: TypeAlias = bytes | mmap

_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a fifo must not hang
_BINARY = getattr(os, "O_BINARY", 0)


@dataclass(frozen=True, slots=True)
class LoadedFiles:
    """A model and the bytes of its files, which are what the manifest says. Let go of them after loading.

    `beside` holds what the weights refer to as files of their own, by the name they use: none of the manifest's do.
    """

    model: Model
    weights: bytes
    tokenizer: bytes
    beside: Mapping[str, Buffer] = field(default_factory=dict)


def read(model_dir: Path | None, home: Path | None = None) -> LoadedFiles:
    """The first model of the manifest whose files are there. ModelUnavailable if there is none or a file differs.

    `model_dir` holds one folder per model, named by its id; None is the package's own. A model that differs is not
    stepped over: somebody altered it, and another in its place would hide that. `home` is the folder with the
    manifest, looked for if None.
    """
    model, folder = _first_there(model_dir, home)
    weights, tokenizer = (_checked(folder, file) for file in model.files)
    return LoadedFiles(model, weights, tokenizer)


def read_tokenizer(model_dir: Path | None, home: Path | None = None) -> bytes:
    """The tokenizer alone of what `read` would load: it counts without a hundred megabytes of weights."""
    model, folder = _first_there(model_dir, home)
    return _checked(folder, model.tokenizer)


def find(model_dir: Path | None, home: Path | None = None) -> Model:
    """The model that `read` would load, of which nothing is read."""
    return _first_there(model_dir, home)[0]


def listed(home: Path | None = None) -> tuple[Model, ...]:
    """All models of the manifest, whether they are there or not. ModelUnavailable."""
    return _manifest((own_home() if home is None else home) / manifest.NAME)


def _first_there(model_dir: Path | None, home: Path | None) -> tuple[Model, Path]:
    models = listed(home)
    folder = (own_home() if home is None else home) / "model" if model_dir is None else model_dir
    for model in models:
        if all(os.path.lexists(folder / model.id / file.path) for file in model.files):
            return model, folder / model.id
    raise ModelUnavailable(f"missing: {_missing(models, folder).name}")


def own_home() -> Path:
    """The folder that holds the manifest and `model/`: the package's in an install, the one above it in a checkout."""
    package = Path(__file__).resolve().parent
    return package if (package / manifest.NAME).exists() else package.parent


def _manifest(path: Path) -> tuple[Model, ...]:
    try:
        return manifest.parse(_read(path, manifest.MAX_BYTES))
    except (OSError, ManifestDamaged) as error:
        raise ModelUnavailable(f"manifest: {path.name}") from error


def _missing(models: tuple[Model, ...], folder: Path) -> ModelFile:
    """What to name: of a model that is there in part, what it lacks; else the weights of the first."""
    for model in models:
        lacking = [file for file in model.files if not os.path.lexists(folder / model.id / file.path)]
        if len(lacking) < len(model.files):
            return lacking[0]
    return models[0].weights


def _checked(folder: Path, file: ModelFile) -> bytes:
    path = folder / file.path
    try:
        real = path.resolve(strict=True)
        inside = real.is_relative_to(folder.parent.resolve() / folder.name)
        content = _read(real, file.size or manifest.MAX_FILE_BYTES) if inside else None
    except FileNotFoundError as error:
        # It was there a moment ago, or it is a link to nothing.
        raise ModelUnavailable(f"missing: {file.name}") from error
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle, before Python 3.13
        raise ModelUnavailable(f"integrity: {file.name}") from error
    if content is None or len(content) != (file.size or len(content)):
        raise ModelUnavailable(f"integrity: {file.name}")
    if hashlib.sha256(content).digest() != file.sha256:
        raise ModelUnavailable(f"integrity: {file.name}")
    return content


def _read(path: Path, most: int) -> bytes:
    """All bytes of a plain file, read once. OSError if it is none, a link, or larger than `most`."""
    with open(os.open(path, os.O_RDONLY | _NO_FOLLOW | _NO_WAIT | _BINARY), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > most:
            raise OSError("not a plain file of a size that it may have")
        # One more than there should be, so that a file that grows meanwhile is seen to be larger. Reading in one go
        # keeps a single copy.
        content = file.read(status.st_size + 1)
    if len(content) > most:
        raise OSError("larger than it may be")
    return content
