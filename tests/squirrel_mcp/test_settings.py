"""What the environment says, and what of it is shown."""

from __future__ import annotations

import dataclasses
import logging
import os
from pathlib import Path

import pytest

from squirrel_mcp.errors import ConfigurationError
from squirrel_mcp.settings import Settings, child_environment, default_data_dir


def test_an_empty_environment_means_the_platforms_own_folder() -> None:
    settings = Settings.read({})
    assert settings.data_dir == default_data_dir()
    assert settings.passphrase is None and settings.log_level == logging.WARNING


def test_values_are_read_and_empty_ones_are_absent() -> None:
    settings = Settings.read(
        {
            "SQUIRREL_DATA_DIR": "~/squirrel",
            "SQUIRREL_PASSPHRASE": "",
            "SQUIRREL_PASSPHRASE_FILE": "~/passphrase",
            "SQUIRREL_PASSPHRASE_COMMAND": "pass show squirrel",
            "SQUIRREL_LOG_LEVEL": "Debug",
        }
    )
    assert settings == Settings(
        data_dir=Path.home() / "squirrel",
        passphrase_file=Path.home() / "passphrase",
        passphrase_command="pass show squirrel",
        log_level=logging.DEBUG,
    )


@pytest.mark.parametrize(
    "environ",
    [
        {"SQUIRREL_LOG_LEVEL": "loud canary"},
        {"SQUIRREL_DATA_DIR": "relative/canary"},
        {"SQUIRREL_DATA_DIR": "${DATA_canary}"},
        {"SQUIRREL_PASSPHRASE_FILE": "canary.txt"},
        {"SQUIRREL_PASSPHRASE_FILE": "./canary.txt"},
        {"SQUIRREL_PASSPHRASE_FILE": "${FILE_canary}"},
        {"SQUIRREL_CA_FILE": "canary.pem"},
        {"SQUIRREL_MEMORY_CACHE_DIR": "canary"},
        {"SQUIRREL_MEMORY_MODEL_DIR": "canary"},
        {"SQUIRREL_MEMORY_EMBEDDINGS": "canary off"},
        {"SQUIRREL_API_BASE_URL": "${SQUIRREL_canary}"},
        {"SQUIRREL_API_KEY": "sqn_canary"},
    ],
)
def test_what_cannot_be_used_is_named_without_its_value(environ: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Settings.read(environ)
    assert next(iter(environ)) in str(caught.value)
    assert "canary" not in str(caught.value)


def test_secrets_are_in_no_repr() -> None:
    settings = Settings.read({"SQUIRREL_PASSPHRASE": "canary words", "SQUIRREL_PASSPHRASE_COMMAND": "echo canary"})
    assert "canary" not in repr(settings) + str(settings) + f"{settings}"
    assert "canary" not in repr(dataclasses.replace(settings, log_level=1))


def test_child_processes_lack_the_secrets() -> None:
    environ = {"SQUIRREL_PASSPHRASE": "x", "SQUIRREL_API_KEY": "y", "PATH": os.defpath}
    assert child_environment(environ) == {"PATH": os.defpath}
