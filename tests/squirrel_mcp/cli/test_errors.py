"""Whatever goes wrong: one sentence, an exit code that means it, no traceback, nothing secret."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import click
import pytest

from squirrel_mcp import errors
from squirrel_mcp.cli import app, exits
from squirrel_mcp.cli.exits import Exit

from .conftest import Run

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    "args",
    [
        ("nonsense",),
        ("add",),
        ("add", "a", "--no-such-option"),
        ("search", "a", "--limit", "0"),
        ("list", "--order", "best"),
        ("client-config",),
        ("client-config", "--client", "emacs"),
        ("import", "no-such-file"),
        ("status", "--at", "-1"),
    ],
)
def test_wrong_arguments_are_one_sentence_and_code_2(run: Run, args: tuple[str, ...]) -> None:
    ran = run(*args)
    assert ran.code == Exit.USAGE and ran.out == ""
    assert len(ran.err.splitlines()) == 1 and "--help" in ran.err


def test_a_group_without_a_command_shows_its_help(run: Run) -> None:
    ran = run("recovery")
    assert ran.code == Exit.USAGE and "new" in ran.err and "use" in ran.err


def test_help_names_every_command_and_every_exit_code(run: Run) -> None:
    ran = run("--help")
    assert ran.code == Exit.OK
    assert all(f"  {name} " in ran.out for name in app.COMMANDS)
    assert all(f"  {int(code)} " in ran.out for code in Exit)


def test_the_docs_list_the_exit_codes_as_they_are() -> None:
    table = (ROOT / "docs/cli.md").read_text("utf-8").split("## Exit codes")[1]
    assert [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)] == list(Exit)
    assert all(f"| {int(code)} | {exits.MEANINGS[code]}" in table for code in Exit)


@pytest.mark.parametrize("command", app.COMMANDS)
def test_every_command_has_help_and_knows_json(run: Run, command: str) -> None:
    ran = run(command, "--help")
    assert ran.code == Exit.OK and ran.err == ""
    if "Commands:" not in ran.out:
        assert "--json" in ran.out


@pytest.mark.parametrize(
    "command",
    [
        ("passphrase", "change"),
        ("recovery", "new"),
        ("recovery", "use"),
        ("keys", "list"),
        ("keys", "create"),
        ("keys", "revoke"),
        ("account", "delete"),
    ],
)
def test_every_command_of_a_group_does_too(run: Run, command: tuple[str, str]) -> None:
    assert "--json" in run(*command, "--help").out


def test_the_version_is_told(run: Run) -> None:
    assert run("--version").out.startswith("squirrel-mcp ")


def test_every_error_of_the_package_has_an_exit_code() -> None:
    kinds = [
        kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.SquirrelError)
    ]
    assert len(kinds) > 20
    for kind in kinds:
        code = exits.of(kind.__new__(kind))
        assert code in (Exit.NOTHING, Exit.USAGE, Exit.LOCKED, Exit.STORE, Exit.CONFLICT)


def test_no_vault_yet_says_how_to_make_one(run: Run, data_dir: Path) -> None:
    for args in (
        ("search", "a"),
        ("list",),
        ("status",),
        ("show", "abcd"),
        ("export", "x"),
        ("rotate", "--no-recovery"),
    ):
        ran = run(*args)
        assert ran.code == Exit.STORE and "squirrel-mcp init" in ran.err
    assert not data_dir.exists()


def test_a_first_memory_makes_the_vault_as_a_first_start_does(run: Run, data_dir: Path) -> None:
    ran = run("add", "one")
    assert ran.code == Exit.OK
    assert str(data_dir / "vault.db") in ran.err and "`squirrel-mcp recovery new`" in ran.err
    assert run("add", "two").err == ""
    assert run("list", "--json").json["total"] == 2


@pytest.mark.usefixtures("vault_dir")
def test_a_wrong_missing_or_refused_passphrase_is_code_3(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for value in ("not the passphrase", "${SQUIRREL_PASSPHRASE}", ""):
        monkeypatch.setenv("SQUIRREL_PASSPHRASE", value)
        ran = run("list")
        assert ran.code == Exit.LOCKED and len(ran.err.splitlines()) == 1
        assert not value or value not in ran.err


@pytest.mark.usefixtures("vault_dir")
def test_json_output_is_json_when_it_is_an_error_too(run: Run) -> None:
    ran = run("show", "f" * 32, "--json")
    assert ran.code == Exit.NOTHING and ran.json["error"]["code"] == "not_found"
    assert len(ran.err.splitlines()) == 1
    assert run("nonsense", "--json").json["error"]["code"] == "usage"


def test_settings_that_cannot_be_used_are_code_2(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUIRREL_DATA_DIR", "relative")
    ran = run("list")
    assert ran.code == Exit.USAGE and "SQUIRREL_DATA_DIR" in ran.err


@pytest.mark.parametrize("error", [errors.ForkDetected, errors.ForeignKey, errors.KeyRecordDowngrade])
def test_what_an_agent_is_told_to_do_a_person_is_told_too(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: type[errors.SquirrelError]
) -> None:
    _fail_with(monkeypatch, error("It differs"))
    ran = run("status", "--json")
    assert ran.code == Exit.STORE and len(ran.err.splitlines()) == 1
    assert ran.err.startswith("It differs. ") and "`squirrel-mcp accept-rollback`" in ran.err
    assert ran.json["error"]["message"] == ran.err.rstrip()


@pytest.mark.usefixtures("vault_dir")
def test_status_tells_what_to_do_about_the_problem(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUIRREL_PASSPHRASE", "not the passphrase")
    assert "Put the right passphrase" in run("status", "--json").json["problem"]["message"]
    assert "Put the right passphrase" in " ".join(run("status").out.split())


def _fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command()
    @click.option("--json", is_flag=True, expose_value=False)
    def failing() -> None:
        raise error

    monkeypatch.setattr("squirrel_mcp.cli.status.status", failing)


def test_a_bug_is_a_sentence_without_the_text_of_the_exception(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_with(monkeypatch, ValueError("canary"))
    ran = run("status")
    assert ran.code == Exit.BUG and len(ran.err.splitlines()) == 1
    assert "ValueError" in ran.err and "SQUIRREL_LOG_LEVEL=debug" in ran.err and "canary" not in ran.err


def test_debug_tells_where_a_bug_happened_but_no_value(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUIRREL_LOG_LEVEL", "debug")
    _fail_with(monkeypatch, ValueError("canary"))
    ran = run("status")
    assert ran.code == Exit.BUG and "app.py:" in ran.err and "test_errors.py:" in ran.err
    assert "canary" not in ran.err and "Traceback" not in ran.err


def test_a_file_that_cannot_be_used_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_with(monkeypatch, OSError(errno.EIO, "Input/output error", "some-file"))
    ran = run("status")
    assert (ran.code, ran.err) == (Exit.STORE, "some-file cannot be used: Input/output error.\n")


def test_ctrl_c_ends_with_130_and_a_word(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    _fail_with(monkeypatch, KeyboardInterrupt())
    ran = run("status")
    assert ran.code == Exit.INTERRUPTED and ran.err.strip() == "Stopped."


@pytest.mark.parametrize("command", [("list",), ("status",), ("status", "--json"), ("list", "--json")])
@pytest.mark.parametrize("passphrase", ["not the right one", "", "${FILLED_IN_NEVER}"])
def test_a_command_does_not_speak_of_a_server_that_goes_on(
    run: Run, vault_dir: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], passphrase: str
) -> None:
    monkeypatch.setenv("SQUIRREL_PASSPHRASE", passphrase)
    ran = run(*command)
    assert ran.code == Exit.LOCKED and "memory server" not in ran.out + ran.err


@pytest.mark.parametrize("query", [("",), (" ",), ("", "\t")])
def test_an_empty_query_is_wrong_input(run: Run, vault_dir: Path, query: tuple[str, ...]) -> None:
    ran = run("search", *query)
    assert ran.code == Exit.USAGE and "empty" in ran.err and ran.out == ""


@pytest.mark.parametrize("command", [("show",), ("correct", "--category", "fact"), ("forget", "--yes")])
def test_an_id_that_is_too_short_says_of_what_to_give_more(run: Run, vault_dir: Path, command: tuple[str, ...]) -> None:
    ran = run(*command, "zzz")
    assert ran.code == Exit.USAGE and "first 4 hex digits" in ran.err
