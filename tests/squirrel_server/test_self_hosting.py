"""docs/self-hosting.md and deploy/: every option that they show exists, and every one that exists is shown."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from squirrel_server.cli import main

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/self-hosting.md").read_text("utf-8")
DEPLOYED = ("squirrel-server.service", "compose.yaml", "Dockerfile")
FILES = ["docs/self-hosting.md", *(f"deploy/{name}" for name in DEPLOYED)]
COMMANDS: dict[str, click.Command] = dict(main.commands)


def options(command: click.Command) -> set[str]:
    return {name for parameter in command.params for name in parameter.opts if name.startswith("--")}


def test_every_command_and_every_option_is_shown() -> None:
    for name, command in COMMANDS.items():
        assert re.search(rf"`(?:squirrel-server )?{name}\b", PAGE) or f"squirrel-server {name}" in PAGE
        missing = {option for option in options(command) if f"{option}" not in PAGE}
        assert not missing, f"squirrel-server {name}: the page does not show {missing}"


@pytest.mark.parametrize("file", FILES)
def test_every_option_that_is_shown_exists(file: str) -> None:
    text = (ROOT / file).read_text("utf-8")
    known = set().union(*map(options, COMMANDS.values()))
    foreign = set("--now --pty --wait --build --from --no-cache-dir --system --uid --no-create-home".split())
    foreign |= {"--no-deps", "--to", "--invite", "--start-over"}  # of pip, and of `squirrel-mcp move`
    shown = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text))
    assert shown <= known | foreign, shown - known - foreign


def test_what_the_unit_starts_is_a_command_line() -> None:
    unit = (ROOT / "deploy/squirrel-server.service").read_text("utf-8")
    (line,) = re.findall(r"(?m)^ExecStart=\S+ (.*)$", unit)
    name, *arguments = shlex.split(line)
    parsed = COMMANDS[name].make_context(name, arguments).params
    assert parsed["tls_self_signed"] and parsed["data_dir"] == Path("/var/lib/squirrel-server")


def test_the_defaults_on_the_page_are_the_commands() -> None:
    shown = {parameter.name: parameter.default for parameter in COMMANDS["serve"].params}
    assert f"| {shown['host']}, {shown['port']} |" in PAGE
    assert f"| {shown['key_rate']} |" in PAGE and f"| {shown['address_rate']} |" in PAGE
