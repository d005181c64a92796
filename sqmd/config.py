"""The settings: from a file, from variables, and where each comes from. Nothing else here reads the environment.

The first of these that sets a key counts: its SQMD_ variable, the file, the default. The file is the first of: the one
that --config names, the one that SQMD_CONFIG names, ~/.sqmd/config.yaml, ./config.yaml; files are not mixed.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqmd import config_values as kinds
from sqmd.config_file import Setting, read_settings, unknown
from sqmd.config_values import Kind, absolute, without_login
from sqmd.errors import ConfigError

DEFAULT = "default"
# The name that stands for whatever model the companion brings along.
COMPANION_MODEL = "companion"
_HOME_FILE = Path("~/.sqmd/config.yaml")
_HERE_FILE = Path("config.yaml")
_PREFIX = "SQMD_"
_FILE_VARIABLE = "SQMD_CONFIG"
_SHORT_NAMES = {"SQMD_DB_PATH": "paths.db_path", "SQMD_API_PORT": "api.port"}


def _setting(kind: Kind, default: object, note: str, *, secret: bool = False) -> Any:
    """A field whose default is written as it would be in the file."""
    metadata = {"kind": kind, "default": default, "note": note, "secret": secret}
    return field(default_factory=lambda: kind.read(default, Path()), metadata=metadata, repr=not secret)


@dataclass(frozen=True, slots=True)
class Paths:
    watch_dirs: tuple[Path, ...] = _setting(kinds.many(kinds.folder()), ["~/notes"], "folders with Markdown")
    db_path: str = _setting(kinds.place(), "~/.sqmd/lancedb", "a folder, or s3://bucket/folder")
    model_cache_dir: Path = _setting(kinds.folder(), "~/.sqmd/models", "downloaded models")  # noqa: RUF009 - a field() behind a call


@dataclass(frozen=True, slots=True)
class Embeddings:
    backend: str = _setting(kinds.choice("onnx", "ollama"), "onnx", "onnx or ollama")
    model: str = _setting(kinds.text(), COMPANION_MODEL, "companion: the one that is installed; or a name")
    batch_size: int = _setting(kinds.whole(1, 4096), 64, "chunks embedded at a time")
    ollama_base_url: str = _setting(kinds.url(), "http://localhost:11434", "with backend ollama")


@dataclass(frozen=True, slots=True)
class Chunking:
    max_tokens: int = _setting(
        kinds.whole(16, 8192), 512, "of a chunk, its breadcrumb included; never more than the model reads"
    )
    min_chars: int = _setting(kinds.whole(0, 100_000), 50, "shorter chunks join a neighbour in their section")
    include_breadcrumb: bool = _setting(kinds.truth(), True, "begin each chunk with its headings")
    overlap_tokens: int = _setting(kinds.whole(0, 8191), 64, "repeated from the chunk before")


@dataclass(frozen=True, slots=True)
class Search:
    default_top_k: int = _setting(kinds.whole(1, 100), 10, "results, 1 to 100")
    rrf_k: int = _setting(kinds.whole(1, 10_000), 60, "k of reciprocal rank fusion")
    rerank: bool = _setting(kinds.truth(), False, "let a cross-encoder order the best")
    rerank_model: str = _setting(kinds.text(), "cross-encoder/ms-marco-MiniLM-L-6-v2", "that cross-encoder")
    rerank_top_n: int = _setting(kinds.whole(1, 1000), 20, "how many it looks at")


@dataclass(frozen=True, slots=True)
class Watcher:
    enabled: bool = _setting(kinds.truth(), True, "index what changes while the server runs")
    debounce_ms: int = _setting(kinds.whole(0, 3_600_000), 3000, "wait until nothing changed for so long")
    extensions: tuple[str, ...] = _setting(kinds.many(kinds.extension()), [".md", ".mdx"], "of Markdown files")
    ignore_patterns: tuple[str, ...] = _setting(
        kinds.many(kinds.rule()),
        ["**/.git/**", "**/node_modules/**", "**/.obsidian/**"],
        "gitignore rules, anchored at the folder of watch_dirs",
    )
    poll: bool = _setting(kinds.truth(), False, "look every second; for network drives")


@dataclass(frozen=True, slots=True)
class Api:
    host: str = _setting(kinds.text(), "127.0.0.1", "address to listen at")
    port: int = _setting(kinds.whole(0, 65_535), 7832, "0: any that is free")
    api_key: str = _setting(kinds.text(empty=True), "", "if set, every request must bring it", secret=True)


@dataclass(frozen=True, slots=True)
class Mcp:
    transport: str = _setting(kinds.choice("stdio", "sse", "http"), "stdio", "stdio, sse or http")
    sse_port: int = _setting(kinds.whole(0, 65_535), 7833, "of sse and http")


@dataclass(frozen=True, slots=True)
class Config:
    """All settings, each valid by itself, paths absolute."""

    paths: Paths = field(default_factory=Paths)
    embeddings: Embeddings = field(default_factory=Embeddings)
    chunking: Chunking = field(default_factory=Chunking)
    search: Search = field(default_factory=Search)
    watcher: Watcher = field(default_factory=Watcher)
    api: Api = field(default_factory=Api)
    mcp: Mcp = field(default_factory=Mcp)


_SECTIONS: dict[str, type[Any]] = {
    "paths": Paths,
    "embeddings": Embeddings,
    "chunking": Chunking,
    "search": Search,
    "watcher": Watcher,
    "api": Api,
    "mcp": Mcp,
}


@dataclass(frozen=True, slots=True)
class Loaded:
    """`origins`: by "section.key", `default`, the name of a variable, or `file:line`. `file`: the one that was read."""

    config: Config
    origins: dict[str, str]
    file: Path | None

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """(section.key, value as text, origin) of every setting, for people.

        Of a secret only whether it is set; of a URL no user and password.
        """
        for name, each in _keys():
            section, _, key = name.partition(".")
            value = getattr(getattr(self.config, section), key)
            if each.metadata["secret"]:
                yield name, "(set)" if value else "(not set)", self.origins[name]
            else:
                yield name, _shown(value), self.origins[name]


def load(flag: Path | None = None, environ: Mapping[str, str] = os.environ, *, here: bool = True) -> Loaded:
    """The settings that are in force. ConfigError, in one line, for what cannot be used.

    here: whether ./config.yaml counts. A server that an agent starts in somebody's project is not to obey that project.

    Relative paths start at the folder of the file that names them; those of `flag` and of variables where we are.
    """
    keys = dict(_keys())
    values: dict[str, Any] = {}
    origins = dict.fromkeys(keys, DEFAULT)
    file = _file(flag, environ, here)
    for setting in read_settings(file, tuple(_SECTIONS)) if file else ():
        name = f"{setting.section}.{setting.key}"
        origins[name] = f"{file}:{setting.line}"
        values[name] = _from_file(file, setting, keys)
    for variable, name, raw in _variables(environ, keys):
        kind: Kind = keys[name].metadata["kind"]
        try:
            values[name] = kind.read(kind.parse(raw), Path())
        except ValueError as error:
            raise ConfigError(f"{variable}: {name} {error}.") from None
        origins[name] = variable
    config = _assembled(values)
    _check_together(config, origins)
    return Loaded(config, origins, file)


def write_template(path: Path, force: bool = False) -> None:
    """A file with every setting at its default. ConfigError where `path` exists, unless `force`.

    Only its owner may read it, because a key may be written into it.
    """
    target = _absolute(path, "--init")
    created = os.O_TRUNC if force else os.O_EXCL
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | created, 0o600), "w", encoding="utf-8") as file:
            file.write(template())
    except OSError as error:
        if isinstance(error, FileExistsError) and os.path.lexists(target):
            raise ConfigError(f"{target} exists already; --force writes over it.") from None
        raise ConfigError(f"{target} cannot be written: {error.strerror}.") from error


def template() -> str:
    """The text of that file."""
    lines = ["# Settings of sqmd. Every line is the default and may be left out."]
    for section in _SECTIONS:
        lines += ["", f"{section}:"]
        for name, each in _keys():
            if name.startswith(f"{section}."):
                lines.append(f"  {each.name}: {_yaml(each.metadata['default'])}  # {each.metadata['note']}")
    return "\n".join(lines) + "\n"


def _keys() -> Iterator[tuple[str, dataclasses.Field[Any]]]:
    for section, kind in _SECTIONS.items():
        for each in dataclasses.fields(kind):
            yield f"{section}.{each.name}", each


def _file(flag: Path | None, environ: Mapping[str, str], here: bool) -> Path | None:
    """The file to read. One that somebody names has to be there, and reading it says so."""
    if flag is not None:
        return _absolute(flag, "--config")
    named = _filled(environ, _FILE_VARIABLE)
    if named:
        return _absolute(Path(named), _FILE_VARIABLE)
    path = _absolute(_HOME_FILE, str(_HOME_FILE))
    if os.path.lexists(path) or not here:
        return path if os.path.lexists(path) else None
    path = _absolute(_HERE_FILE, str(_HERE_FILE))
    return path if os.path.lexists(path) and _may_be_ours(path) else None


def _may_be_ours(path: Path) -> bool:
    """Other programs have a file of this name too, which holds none of our sections."""
    try:
        text = path.read_text("utf-8-sig", "replace")
    except OSError:
        return True  # reading it says what is wrong
    return re.search(rf"^(?:\{{\s*)?[\"']?(?:{'|'.join(_SECTIONS)})[\"']?\s*:", text, re.MULTILINE) is not None


def _absolute(path: Path, what: str) -> Path:
    try:
        return absolute(path, Path())
    except ValueError as error:
        raise ConfigError(f"{what} {error}.") from None


def _from_file(file: Path | None, setting: Setting, keys: dict[str, dataclasses.Field[Any]]) -> Any:
    name = f"{setting.section}.{setting.key}"
    where = f"{file}:{setting.line}: {name}"
    if name not in keys:
        siblings = tuple(each.partition(".")[2] for each in keys if each.startswith(f"{setting.section}."))
        raise ConfigError(f"{where}: {unknown(setting.key, siblings)}.")
    kind: Kind = keys[name].metadata["kind"]
    try:
        return kind.read(setting.value, file.parent if file else Path())
    except ValueError as error:
        raise ConfigError(f"{where} {error}.") from None


def _variables(environ: Mapping[str, str], keys: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(variable, section.key, text) of those that are set; the two short names last, so that they win."""
    names = {_PREFIX + name.upper().replace(".", "__"): name for name in keys} | _SHORT_NAMES
    for variable in environ:
        if variable.startswith(_PREFIX) and variable not in names and variable != _FILE_VARIABLE:
            # A key that protects the API and is not read because of its spelling would be worse than this.
            raise ConfigError(f"{variable}: {unknown(variable, tuple(names))}.")
    for variable, name in names.items():
        raw = _filled(environ, variable)
        if raw:
            yield variable, name, raw


def _filled(environ: Mapping[str, str], variable: str) -> str:
    value = environ.get(variable, "").strip()
    if value.startswith("${"):
        raise ConfigError(f"{variable} is a placeholder that was never filled in.")
    return value


def _assembled(values: dict[str, Any]) -> Config:
    parts: dict[str, Any] = {}
    for section, kind in _SECTIONS.items():
        own = {name.partition(".")[2]: value for name, value in values.items() if name.startswith(f"{section}.")}
        try:
            parts[section] = kind(**own)
        except ValueError as error:  # of a default: there is no home folder
            raise ConfigError(f"{section}: a default {error}; name the path.") from None
    return Config(**parts)


def _check_together(config: Config, origins: dict[str, str]) -> None:
    """A default that does not fit a chosen max_tokens is lowered by the chunker; a chosen one is a mistake."""
    name = "chunking.overlap_tokens"
    if origins[name] != DEFAULT and config.chunking.overlap_tokens >= config.chunking.max_tokens:
        raise ConfigError(f"{origins[name]}: {name} must be less than chunking.max_tokens.")


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else without_login(str(value))


def _yaml(value: object) -> str:
    import json

    if isinstance(value, list):
        return f"[{', '.join(map(_yaml, value))}]"
    plain = isinstance(value, str) and value[:1] not in ("", "*")
    return str(value) if plain else json.dumps(value)
