"""Docs that fail the build when they are not true."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from tests.house.documents import (
    PROGRAM,
    Claim,
    anchors,
    claimed_commands,
    commands_in,
    links,
    named_variables,
    variables_in,
)
from tests.house.sources import ROOT

SKILL = ROOT / "skills/squirrel-memory/SKILL.md"


@pytest.fixture(scope="session")
def root_command() -> click.Group:
    """The one group of commands in squirrel_mcp.cli that no other group holds."""
    cli = importlib.import_module("squirrel_mcp.cli")
    modules = [cli] + [
        importlib.import_module(found.name) for found in pkgutil.walk_packages(cli.__path__, "squirrel_mcp.cli.")
    ]
    groups = {id(each): each for module in modules for each in vars(module).values() if isinstance(each, click.Group)}
    held = {id(command) for group in groups.values() for _, command in subcommands(group)}
    (root,) = [group for key, group in groups.items() if key not in held]
    return root


def subcommands(group: click.Group) -> Iterator[tuple[str, click.Command]]:
    """The commands directly in `group`, by name."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield name, command


def leaves(group: click.Group, prefix: str = "") -> Iterator[str]:
    """Every command that does something, such as "passphrase change"."""
    for name, command in subcommands(group):
        if command.hidden:
            continue
        if isinstance(command, click.Group):
            yield from leaves(command, f"{prefix}{name} ")
        else:
            yield prefix + name


def wrong_in(root: click.Group, arguments: str) -> str | None:
    """What of `squirrel-mcp ARGUMENTS` does not exist; None if all of it does."""
    command: click.Command = root
    for word in arguments.split():
        if word.startswith("-") and word != "-":
            option = word.partition("=")[0].strip("[]")
            known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
            if option not in known | {"--help"}:
                return f"there is no option {option}"
        elif isinstance(command, click.Group):
            found = command.get_command(click.Context(command), word)
            if found is None:
                return f"there is no command {word}"
            command = found
    return None


def test_every_command_in_the_docs_exists_with_its_options(root_command: click.Group) -> None:
    wrong = [
        f"{claim.file}: `{PROGRAM} {claim.text}`: {problem}"
        for claim in claimed_commands()
        if (problem := wrong_in(root_command, claim.text))
    ]
    assert not wrong, "\n".join(wrong)


def test_every_command_is_in_the_docs(root_command: click.Group) -> None:
    claimed = [claim.text for claim in claimed_commands()]
    missing = [
        leaf
        for leaf in leaves(root_command)
        if not any(text == leaf or text.startswith(f"{leaf} ") for text in claimed)
    ]
    assert not missing, f"no document shows {missing}"


def test_a_command_is_found_where_it_is_shown() -> None:
    text = "Run `squirrel-mcp status --at SEQ`.\n\n```\n.venv/bin/squirrel-mcp recovery new   a code\nother\n```\n"
    assert list(commands_in(text)) == ["status --at SEQ", "recovery new"]


def test_every_variable_in_the_docs_is_read_by_the_settings_and_the_other_way_round() -> None:
    read = variables_in((ROOT / "squirrel_mcp/settings.py").read_text("utf-8"))
    named = named_variables()
    invented = {name: file for name, file in named.items() if name not in read}
    assert not invented, f"the docs name what nothing reads: {invented}"
    undocumented = read - variables_in((ROOT / "docs/configuration.md").read_text("utf-8"))
    assert not undocumented, f"docs/configuration.md does not name {undocumented}"


@pytest.mark.parametrize("link", links(), ids=lambda link: f"{link.file} -> {link.text}")
def test_a_link_leads_somewhere(link: Claim) -> None:
    target, _, anchor = link.text.partition("#")
    path = (ROOT / link.file).parent / target if target else ROOT / link.file
    assert path.exists(), f"{link.file} links to {link.text}, which is not there"
    assert not anchor or anchor in anchors(path), f"{path.name} has no heading for #{anchor}"


def test_the_skill_has_the_front_matter_that_clients_read() -> None:
    # The Agent Skills format: name is the folder's, at most 64 of [a-z0-9-]; description at most 1,024 characters.
    front = re.match(r"---\nname: ([a-z0-9-]{1,64})\ndescription: (.{1,1024})\n---\n", SKILL.read_text("utf-8"))
    assert front
    assert front[1] == SKILL.parent.name


def test_the_demo_in_the_readme_is_what_the_demo_prints() -> None:
    command = [sys.executable, str(ROOT / "scripts/readme_demo.py"), "--check"]
    result = subprocess.run(command, capture_output=True, encoding="utf-8")
    assert result.returncode == 0, result.stderr
