"""What several commands take, and the service that they call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from sqmd.config import Config, Loaded
    from sqmd.service import Service

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead.")


def config_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """`--config FILE`, after the command as well as before it."""

    def chosen(context: click.Context, _: click.Parameter, given: Path | None) -> Path | None:
        return given or context.obj

    option = click.option(
        "--config",
        "config_file",
        type=click.Path(path_type=Path),
        callback=chosen,
        help="The settings to use, a YAML file.",
    )
    return option(command)


def loaded(config_file: Path | None, *, here: bool = True) -> Loaded:
    """The settings and where each comes from. ConfigError. here: whether ./config.yaml counts."""
    from sqmd.config import load

    return load(config_file, here=here)


@contextmanager
def opened(config: Config) -> Iterator[Service]:
    """A service for one command."""
    from sqmd.service import Service

    service = Service(config)
    try:
        yield service
    finally:
        service.close()
