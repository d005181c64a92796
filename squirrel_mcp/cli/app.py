"""The commands by name, and the one place where what goes wrong becomes a sentence and an exit code."""

from __future__ import annotations

import io
import json
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import import_module
from typing import Any, cast

import click

from squirrel_mcp._version import __version__
from squirrel_mcp.advice import explained
from squirrel_mcp.cli.exits import MEANINGS, Exit, of
from squirrel_mcp.edition import BASE, Edition
from squirrel_mcp.errors import ConfigurationError, SquirrelError
from squirrel_mcp.escaping import escape
from squirrel_mcp.hardening import harden
from squirrel_mcp.settings import Settings

# In the order of --help. A command's module is loaded when it is used: most of them need little of the program.
COMMANDS = {
    "init": "init:init",
    "join": "join:join",
    "move": "move:move",
    "client-config": "client_config:client_config",
    "status": "status:status",
    "add": "writing:add",
    "search": "reading:search",
    "list": "reading:list_memories",
    "show": "reading:show",
    "correct": "writing:correct",
    "forget": "writing:forget",
    "export": "transfer:export",
    "import": "transfer:import_file",
    "passphrase": "passphrase:passphrase",
    "recovery": "recovery:recovery",
    "rotate": "rotate:rotate",
    "keys": "keys:keys",
    "account": "account:account",
    "accept-rollback": "rollback:accept_rollback",
    "demo": "demo:demo",
}


class _Program(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        return cast(click.Command, getattr(import_module(f"squirrel_mcp.cli.{module}"), attribute))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in MEANINGS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise _broken_pipe() from None  # before click, which takes it for a failure of the command


@click.group(cls=_Program)
@click.version_option(__version__, message="%(prog)s %(version)s")
def program() -> None:
    """Private, encrypted memory for agents, kept on this machine or on a server that cannot read it.

    Without arguments this is the MCP server, which an agent's program starts. Every command knows --json and --help.
    """


def run(
    args: Sequence[str], edition: Edition = BASE, commands: click.Command = program, name: str | None = None
) -> int:
    """Run one command line of the edition's program, or of another of its `commands`; the exit code. Never raises.

    name: how that one is started, where it is not the edition's own command.
    """
    if not _has_streams():
        return _fail(Exit.STORE, "file", "There is no standard output to write to; nothing was done.", args)
    _make_streams_safe()
    harden()
    try:
        try:
            result = commands.main(list(args), prog_name=name or edition.command, standalone_mode=False, obj=edition)
        finally:
            sys.stdout.flush()
        return int(result) if isinstance(result, int) else Exit.OK
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return Exit.USAGE
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else edition.command
        message = f"{' '.join(error.format_message().split()).rstrip('.')}. See `{command} --help`."
        return _fail(Exit.USAGE, "usage", message, args)
    except click.ClickException as error:
        return _fail(Exit.USAGE, "usage", error.format_message(), args)
    except SquirrelError as error:
        return _fail(of(error), error.code, str(error), args)
    except (click.Abort, KeyboardInterrupt):
        return _fail(Exit.INTERRUPTED, "interrupted", "Stopped.", args)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except BrokenPipeError:
        return _broken_pipe().exit_code
    except OSError as error:
        what = error.filename or "A file or the output"
        return _fail(Exit.STORE, "file", f"{what} cannot be used: {error.strerror}.", args)
    except Exception as error:  # noqa: BLE001 - the last border: a person gets a sentence, not a traceback
        return _fail(Exit.BUG, "bug", _explain(error), args)


def _has_streams() -> bool:
    """Whether there is a stdout; what else is missing (`<&-`, `2>&-`) is replaced by nothing.

    The descriptors are taken at once: a database that got the number of a missing one would be written to by `print`.
    """
    missing = [number for number in range(3) if not _is_open(number)]
    for number in missing:
        nothing = os.open(os.devnull, os.O_RDWR)
        if nothing != number:
            os.dup2(nothing, number)
            os.close(nothing)
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - as long as the process
    had_stdout = sys.stdout is not None
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    return had_stdout


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def _make_streams_safe() -> None:
    """What a console's code page lacks is written as an escape, and lines end with LF everywhere."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace", newline="\n")


def _fail(code: Exit, name: str, message: str, args: Sequence[str]) -> Exit:
    """What happened and what to do, on stderr; who asked for JSON gets it there too."""
    message = escape(explained(name, message.rstrip(), serving=False))
    _try_to_say(json.dumps({"error": {"code": name, "message": message}}) if "--json" in args else "", err=False)
    _try_to_say(message, err=True)
    return code


def _try_to_say(message: str, *, err: bool) -> None:
    """A stream that takes nothing (a full disk) leaves the exit code to tell."""
    try:
        if message:
            click.echo(message, err=err)
        (sys.stderr if err else sys.stdout).flush()
    except OSError:
        _silence(2 if err else 1)


def _explain(error: Exception) -> str:
    """What kind of error it was and, on request, where; never its text, which may quote a memory or a secret."""
    kind = type(error).__name__
    if not _wants_details():
        return f"This is a bug ({kind}): run it again with SQUIRREL_LOG_LEVEL=debug to see where it happened."
    frames = traceback.extract_tb(error.__traceback__)
    places = "".join(f"\n  {frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    return f"This is a bug ({kind}), which happened here:{places}\nNo value was printed."


def _wants_details() -> bool:
    try:
        return Settings.read().log_level <= logging.DEBUG
    except ConfigurationError:
        return False


def _broken_pipe() -> click.exceptions.Exit:
    _silence(1)
    return click.exceptions.Exit(Exit.BROKEN_PIPE)


def _silence(number: int) -> None:
    # What is still buffered would fail once more, with a message, when the interpreter ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)
