"""stderr is for a person: each line once, nothing that acts on a terminal."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from squirrel_mcp.edition import BASE
from squirrel_mcp.mcp_server.logs import watch_failures, where
from squirrel_mcp.mcp_server.notices import Notices, startup_line
from squirrel_mcp.service import MemoryService, Status


@pytest.mark.parametrize(
    ("status", "line"),
    [
        (Status(True, "local vault x"), "memory: local vault x, search by words"),
        (
            Status(True, "local vault x", problem=("log_damaged", "The log is damaged.")),
            "memory: local vault x, search by words; The log is damaged.",
        ),
        (
            Status(False, "local vault x", problem=("vault_missing", "It is gone.")),
            "memory: It is gone. (vault_missing)",
        ),
    ],
)
def test_the_start_up_line_says_where_and_how_or_why_not(status: Status, line: str) -> None:
    assert startup_line(status, BASE) == line


def test_the_start_up_line_of_the_companion_promises_meaning_too() -> None:
    line = startup_line(Status(True, "local vault x"), replace(BASE, by_meaning=True))
    assert line == "memory: local vault x, search by words and meaning"


def test_each_line_is_said_once_and_on_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    notices = Notices()
    notices.say("memory: one\x1b[31m\nline")
    notices.say("memory: one\x1b[31m\nline")
    notices.trouble("wrong_passphrase", "The passphrase is wrong.")
    notices.trouble("wrong_passphrase", "The passphrase is wrong.")
    first, second = capsys.readouterr().err.splitlines()
    assert first == "memory: one\\u{1b}[31m line"
    assert second.startswith("memory: The passphrase is wrong. ") and second.endswith("(wrong_passphrase)")


def test_nothing_is_said_without_end(capsys: pytest.CaptureFixture[str]) -> None:
    notices = Notices()
    for number in range(1_000):
        notices.say(f"memory: {number}")
    assert len(capsys.readouterr().err.splitlines()) == 100


def test_a_closed_stderr_is_no_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    with open("/dev/null", "w", encoding="utf-8") as closed:
        pass
    monkeypatch.setattr(sys, "stderr", closed)
    Notices().say("memory: nobody hears this")


def test_the_recovery_note_waits_until_it_can_be_known(service: MemoryService) -> None:
    class Locked(MemoryService):
        def __init__(self) -> None:
            pass

        def status(self) -> Status:
            return Status(False, "local vault", problem=("wrong_passphrase", "It is wrong."))

    notices = Notices()
    assert notices.recovery_code(Locked()) == ""
    assert "recovery new" in notices.recovery_code(service)
    assert notices.recovery_code(service) == ""


@pytest.fixture
def hooks() -> Iterator[None]:
    kept = sys.excepthook, sys.unraisablehook
    yield
    sys.excepthook, sys.unraisablehook = kept


@pytest.mark.usefixtures("hooks")
def test_what_nobody_catches_is_told_without_its_text(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    watch_failures()
    try:
        raise ValueError("canary")
    except ValueError as error:
        place = where(error)
        sys.excepthook(ValueError, error, error.__traceback__)
        with caplog.at_level(logging.ERROR):
            threading.excepthook(threading.ExceptHookArgs((ValueError, error, error.__traceback__, None)))
    assert place.startswith("ValueError at test_notices.py:")
    assert place in caplog.text and "canary" not in caplog.text
