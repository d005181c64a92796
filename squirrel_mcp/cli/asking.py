"""Questions to a person at a terminal. They go to stderr or the terminal itself: stdout is for results."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable
from typing import TypeVar

import click

from squirrel_mcp.crypto import kdf
from squirrel_mcp.errors import InvalidInput, PassphraseRefused, WrongPassphrase

TRIES = 3
_T = TypeVar("_T")


def can_ask() -> bool:
    """Whether somebody sits at stdin."""
    return sys.stdin is not None and sys.stdin.isatty()


def can_show() -> bool:
    """Whether what is said reaches a person and not a file."""
    return can_ask() and sys.stderr.isatty()


def say(text: str = "") -> None:
    click.echo(text, err=True)


def confirm(question: str, *, default: bool = False) -> bool:
    return click.confirm(question, default=default, err=True)


def line(question: str) -> str:
    """What is typed is seen."""
    return str(click.prompt(question, err=True, prompt_suffix=": "))


def hidden(question: str) -> str:
    """What is typed is not seen."""
    return getpass.getpass(f"{question}: ")


def passphrase(question: str = "Passphrase") -> str:
    """Typed without echo, checked for form."""
    typed = hidden(question)
    kdf.normalise(typed)
    return typed


def new_passphrase(question: str = "New passphrase (12 characters or more)", *, may_be_empty: bool = False) -> str:
    """Typed twice without echo. With `may_be_empty`, Enter alone gives ""."""
    for _ in range(TRIES):
        typed = getpass.getpass(f"{question}: ")
        if not typed and may_be_empty:
            return ""
        try:
            kdf.check_new(typed)
        except PassphraseRefused as error:
            say(str(error))
            continue
        if getpass.getpass("The same once more: ") == typed:
            return typed
        say("The two differ.")
    raise InvalidInput("passphrase", "No new passphrase was given twice; nothing was changed.")


def open_with_typed(question: str, open_it: Callable[[str], _T], tries: int = TRIES) -> _T:
    """What `open_it` makes of a passphrase; who typed a wrong one may type another, `tries` in all."""
    for _ in range(tries - 1):
        try:
            return open_it(passphrase(question))
        except WrongPassphrase:
            say("That passphrase does not open it.")
    return open_it(passphrase(question))
