"""The pages about sqmd fail the build when they are not true."""

from __future__ import annotations

import inspect
import json
import re
import tomllib
from collections.abc import Iterator

import click
import pytest

from sqmd import errors
from sqmd.cli.app import COMMANDS, program
from sqmd.cli.exits import MEANINGS
from sqmd.config import load, template
from sqmd.errors import ConfigError, SqmdError
from sqmd.mcp_server.tools import TOOLS
from tests.house.documents import documents
from tests.house.sources import ROOT

PAGE = ROOT / "docs/sqmd.md"
TROUBLE = ROOT / "docs/sqmd-troubleshooting.md"
_FENCE = re.compile(r"(?ms)^```([a-z]*)\n(.*?)^```$")
_COMMAND = re.compile(r"(?:\S*/|claude mcp add sqmd .* -- \S*/)?sqmd((?: .+)?)")
_PAGES = ("README.md", "docs/sqmd.md", "docs/sqmd-models.md", "docs/sqmd-troubleshooting.md")


def commands_shown(text: str) -> Iterator[str]:
    """The arguments of every `sqmd ...` that a page shows, in backticks or as a line of a block."""
    lines = [
        line.split("  ")[0] for language, block in _FENCE.findall(text) if not language for line in block.splitlines()
    ]
    inline = re.findall(r"`([^`\n]+)`", _FENCE.sub("", text))
    for candidate in [*inline, *lines]:
        found = _COMMAND.fullmatch(candidate.strip())
        if found:
            yield found[1].strip()


def wrong_in(arguments: str) -> str | None:
    """What of `sqmd ARGUMENTS` does not exist."""
    command: click.Command = program
    for word in re.sub(r'"[^"]*"', "TEXT", arguments).split():
        if word.startswith("-"):
            known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
            if word.strip("[],") not in known | {"--help"}:
                return f"there is no option {word}"
        elif command is program:
            if word not in COMMANDS:
                return f"there is no command {word}"
            found = program.get_command(click.Context(program), word)
            assert found is not None
            command = found
    return None


def test_every_command_that_a_page_shows_exists_with_its_options() -> None:
    shown = [(path.name, each) for path in documents() for each in commands_shown(path.read_text("utf-8"))]
    assert len(shown) > 20
    assert not [f"{name}: sqmd {each}: {wrong}" for name, each in shown if (wrong := wrong_in(each))]


def test_the_check_notices() -> None:
    text = '`sqmd serch x` and `sqmd index --pth y`\n\n```\nsqmd search "a --b c" --top-k 3   why\n```\n'
    assert [wrong_in(each) is None for each in commands_shown(text)] == [False, False, True]


def test_the_page_names_every_command_and_option() -> None:
    text = PAGE.read_text("utf-8")
    rows = {match[1]: match[0] for match in re.finditer(r"(?m)^\| `sqmd (\w+).*$", text)}
    assert rows.keys() == COMMANDS.keys()
    for name, row in rows.items():
        command = program.get_command(click.Context(program), name)
        assert command is not None
        names = {option for each in command.params if isinstance(each, click.Option) for option in each.opts}
        assert not [option for option in names - {"--config", "--help"} if option not in row], name


def test_the_table_of_settings_is_the_codes() -> None:
    expected: list[tuple[str, str, str]] = []
    section = ""
    for line in template().splitlines():
        if line.startswith("  "):
            setting, _, note = line.strip().partition("  # ")
            key, _, value = setting.partition(": ")
            expected.append((f"{section}.{key}", value, note))
        elif line.endswith(":"):
            section = line[:-1]
    shown = re.findall(r"(?m)^\| `(\w+\.\w+)` \| `(.*?)` \| (.*) \|$", PAGE.read_text("utf-8"))
    assert shown == expected


def test_the_table_of_exit_codes_is_the_codes() -> None:
    shown = re.findall(r"(?m)^\| (\d+) \| (.*) \|$", PAGE.read_text("utf-8"))
    assert shown == [(str(int(code)), meaning) for code, meaning in MEANINGS.items()]


def test_every_error_has_its_line_of_advice_and_there_are_no_others() -> None:
    kinds = [each for _, each in inspect.getmembers(errors, inspect.isclass) if issubclass(each, SqmdError)]
    of_the_front = {"usage", "file", "interrupted", "bug"}
    shown = set(re.findall(r"(?m)^\| `(\w+)` \|", TROUBLE.read_text("utf-8")))
    assert shown == {each.code for each in kinds if each is not SqmdError} | of_the_front


@pytest.mark.parametrize("page", _PAGES)
def test_every_variable_and_setting_that_a_page_names_is_one(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    for name in set(re.findall(r"\bSQMD_[A-Z_]+[A-Z]\b", text)) - {"SQMD_CONFIG", "SQMD_SECTION__KEY"}:
        try:
            load(None, {name: "1", "SQMD_CONFIG": "/dev/null"})
        except ConfigError as error:
            assert "no such setting" not in str(error)
    settings = set(load(None, {"SQMD_CONFIG": "/dev/null"}).origins)
    sections = "|".join({each.partition(".")[0] for each in settings})
    named = set(re.findall(rf"`((?:{sections})\.[a-z_]+)", text)) - {"config.yaml"}
    assert named <= settings


def test_the_tools_are_those_of_the_server_with_their_arguments() -> None:
    rows = dict(re.findall(r"(?m)^\| `(\w+)` \| (.*) \|$", PAGE.read_text("utf-8")))
    for name, tool in TOOLS.items():
        assert not [each for each in tool.input["properties"] if f"`{each}`" not in rows[name]]


@pytest.mark.parametrize("name", ["docs/sqmd.md", "README.md"])
def test_the_snippets_for_clients_can_be_read_and_start_the_server(name: str) -> None:
    found = []
    for language, block in _FENCE.findall((ROOT / name).read_text("utf-8")):
        if language == "json" and "sqmd" in block:
            found.append(json.loads(block)["mcpServers"]["sqmd"])
        elif language == "toml" and "sqmd" in block:
            found.append(tomllib.loads(block)["mcp_servers"]["sqmd"])
    assert len(found) == 2
    for each in found:
        assert each["command"].endswith("/.venv/bin/sqmd") and wrong_in(" ".join(each["args"])) is None
        assert each["env"].keys() == {"SQMD_PATHS__WATCH_DIRS"}
