"""What the environment asks for. The only module that reads it."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from squirrel_mcp.errors import ConfigurationError

SECRET_VARIABLES = ("SQUIRREL_PASSPHRASE", "SQUIRREL_API_KEY")
_LOG_LEVELS = ("debug", "info", "warning", "error", "critical")


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one process. Secrets are kept out of the repr."""

    data_dir: Path
    passphrase: str | None = field(default=None, repr=False)
    passphrase_file: Path | None = None
    passphrase_command: str | None = field(default=None, repr=False)
    api_base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    https_proxy: str | None = field(default=None, repr=False)
    cache_dir: Path = field(default_factory=lambda: default_cache_dir())
    embeddings: bool = True
    model_dir: Path | None = None
    log_level: int = logging.WARNING

    @property
    def vault_path(self) -> Path:
        """The embedded vault's file."""
        return self.data_dir / "vault.db"

    @classmethod
    def read(cls, environ: Mapping[str, str] = os.environ) -> Settings:
        """ConfigurationError, naming the variable and never its value, for what cannot be used."""
        data_dir = environ.get("SQUIRREL_DATA_DIR")
        cache_dir = environ.get("SQUIRREL_MEMORY_CACHE_DIR")
        model_dir = environ.get("SQUIRREL_MEMORY_MODEL_DIR")
        file = environ.get("SQUIRREL_PASSPHRASE_FILE")
        ca_file = environ.get("SQUIRREL_CA_FILE")
        base_url, api_key = _filled(environ, "SQUIRREL_API_BASE_URL"), _filled(environ, "SQUIRREL_API_KEY")
        if api_key is not None and base_url is None:
            # Falling back to a local vault would put memories where their owner does not look for them.
            raise ConfigurationError("SQUIRREL_API_KEY is set but SQUIRREL_API_BASE_URL is not; a server needs both.")
        return cls(
            data_dir=_absolute("SQUIRREL_DATA_DIR", data_dir) if data_dir else default_data_dir(),
            passphrase=environ.get("SQUIRREL_PASSPHRASE") or None,
            passphrase_file=_absolute("SQUIRREL_PASSPHRASE_FILE", file) if file else None,
            passphrase_command=environ.get("SQUIRREL_PASSPHRASE_COMMAND") or None,
            api_base_url=base_url,
            api_key=api_key,
            ca_file=_absolute("SQUIRREL_CA_FILE", ca_file) if ca_file else None,
            https_proxy=environ.get("SQUIRREL_HTTPS_PROXY") or None,
            cache_dir=_absolute("SQUIRREL_MEMORY_CACHE_DIR", cache_dir) if cache_dir else default_cache_dir(environ),
            embeddings=_switch(environ, "SQUIRREL_MEMORY_EMBEDDINGS"),
            model_dir=_absolute("SQUIRREL_MEMORY_MODEL_DIR", model_dir) if model_dir else None,
            log_level=_log_level(environ.get("SQUIRREL_LOG_LEVEL")),
        )


def default_data_dir() -> Path:
    """The platform's folder for data of this user and program."""
    from platformdirs import user_data_path

    return user_data_path("squirrel-mcp", appauthor=False)


def default_cache_dir(environ: Mapping[str, str] = os.environ) -> Path:
    """The platform's folder for what may be lost at any time; the companion's vectors lie in one of ours below it."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    named = Path(environ.get("XDG_CACHE_HOME", ""))
    return named if named.is_absolute() else Path.home() / ".cache"  # a relative one is to be ignored, says XDG


def child_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The environment for a program started from here: ours without the secrets."""
    return {name: value for name, value in environ.items() if name not in SECRET_VARIABLES}


def _filled(environ: Mapping[str, str], name: str) -> str | None:
    value = environ.get(name, "").strip()
    if value.startswith("${"):
        raise ConfigurationError(f"{name} is a placeholder that was never filled in.")
    return value or None


def _switch(environ: Mapping[str, str], name: str) -> bool:
    """On unless it is 0. Nothing else is guessed at: who meant `off` must not find it on."""
    value = environ.get(name, "").strip()
    if value not in ("", "0", "1"):
        raise ConfigurationError(f"{name} must be 0 or 1.")
    return value != "0"


def _absolute(name: str, value: str) -> Path:
    if value.startswith("${"):
        raise ConfigurationError(f"{name} is a placeholder that was never filled in.")
    path = Path(value).expanduser()
    if not path.is_absolute():
        # A client starts servers in a folder of its choice: a relative path would be another place each time.
        raise ConfigurationError(f"{name} must be an absolute path.")
    return path


def _log_level(value: str | None) -> int:
    name = (value or "warning").strip().lower()
    if name not in _LOG_LEVELS:
        raise ConfigurationError(f"SQUIRREL_LOG_LEVEL must be one of {', '.join(_LOG_LEVELS)}.")
    return logging.getLevelNamesMapping()[name.upper()]
