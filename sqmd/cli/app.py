"""The commands by name, and the one place where what goes wrong becomes a sentence and an exit code."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import click

from sqmd.cli.exits import MEANINGS, Exit, of
from sqmd.errors import SqmdError
from sqmd.escaping import visible_line
from sqmd.stderr import kind_and_place

# In the order of --help. A command's module is loaded when it is used.
COMMANDS = {
    "index": "index:index",
    "search": "search:search",
    "context": "search:context",
    "serve": "servers:serve",
    "mcp": "servers:mcp",
    "status": "status:status",
    "config": "settings:config",
}


class _Program(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].partition(":")
        return cast(click.Command, getattr(import_module(f"sqmd.cli.{module}"), attribute))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), meaning) for code, meaning in MEANINGS.items()])

    def make_context(self, *args: Any, **settings: Any) -> click.Context:
        with _seen_before_click():  # --help and --version print in here
            return super().make_context(*args, **settings)

    def invoke(self, ctx: click.Context) -> Any:
        with _seen_before_click():
            return super().invoke(ctx)


def _print_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"sqmd {version('sqmd')}")
        context.exit()


@click.group(cls=_Program)
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="The settings to use, a YAML file.")
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="And exit.")
@click.pass_context
def program(context: click.Context, config_file: Path | None) -> None:
    """Search your Markdown, by words and by meaning, without a byte of it leaving this machine.

    Begin with `sqmd index --path DIR`, then `sqmd search "what you look for"`.
    """
    context.obj = config_file


def run(args: Sequence[str]) -> int:
    """Run one command line; the exit code. Never raises."""
    _open_what_is_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # What a console's code page lacks is written as an escape, and lines end with LF everywhere.
            stream.reconfigure(errors="backslashreplace", newline="\n")
    try:
        try:
            result = program.main(list(args), prog_name="sqmd", standalone_mode=False)
        finally:
            sys.stdout.flush()
        return int(result) if isinstance(result, int) else Exit.OK
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return Exit.USAGE
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else "sqmd"
        message = f"{error.format_message().rstrip('.')}. See `{command} --help`."
        return _fail(Exit.USAGE, "usage", message, args)
    except click.ClickException as error:
        return _fail(Exit.USAGE, "usage", error.format_message(), args)
    except SqmdError as error:
        return _fail(of(error), error.code, str(error), args)
    except (click.Abort, KeyboardInterrupt):
        return _fail(Exit.INTERRUPTED, "interrupted", "Stopped.", args)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except BrokenPipeError:
        return _broken_pipe().exit_code
    except OSError as error:
        where = f"{error.filename} cannot be used" if error.filename else "Something cannot be used"
        return _fail(Exit.UNUSABLE, "file", f"{where}: {error.strerror or type(error).__name__}.", args)
    except Exception as error:  # noqa: BLE001 - the last border: a person gets a sentence, not a traceback
        return _fail(Exit.BUG, "bug", f"This is a bug ({kind_and_place(error)}); please report it.", args)


def _open_what_is_closed() -> None:
    """Of a shell's `>&-`: nowhere instead, also so that no file of the index gets a descriptor that is written to."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - for as long as the process lives
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - the same


def _fail(code: Exit, name: str, message: str, args: Sequence[str]) -> Exit:
    """What happened and what to do, on stderr; who asked for JSON gets it on stdout too."""
    message = visible_line(message)
    try:
        if "--json" in args:
            click.echo(json.dumps({"error": {"code": name, "message": message}}))
        click.echo(message, err=True)
    except BrokenPipeError:
        _broken_pipe()
    return code


@contextmanager
def _seen_before_click() -> Iterator[None]:
    """A broken pipe is an exit code of its own; click takes it for a failure of the command."""
    try:
        yield
    except BrokenPipeError:
        raise _broken_pipe() from None


def _broken_pipe() -> click.exceptions.Exit:
    # What is still buffered would fail once more, with a message, when the interpreter ends.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return click.exceptions.Exit(Exit.BROKEN_PIPE)
