"""What is asked of a person: in which order, without echo, and with nothing changed until the answer was right."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from squirrel_mcp import opening
from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.memory import Draft
from squirrel_mcp.opening import Unlocker
from squirrel_mcp.service import MemoryService, Status
from squirrel_mcp.settings import Settings
from tests.e2e.account_server import account_server

from ..conftest import CHEAP, PASSPHRASE

pty = pytest.importorskip("pty", reason="there are no pseudo terminals here")
from .terminal import Terminal  # noqa: E402 - it needs pty

FIRST = "first words to get in"
SECOND = "second words to get in"
_CODE = re.compile(r"(?:[0-9A-Z]{4}-){8}[0-9A-Z*~$=]")
_API_KEY = re.compile(r"sqn_\w{12}_\w{43}_\w{6}")
_KEYRING = """
import json, pathlib
from keyring.backend import KeyringBackend

FILE = pathlib.Path(__file__).with_name("keyring.json")

class FileKeyring(KeyringBackend):
    priority = 1

    def get_password(self, service, username):
        return json.loads(FILE.read_text()).get(service + username) if FILE.exists() else None

    def set_password(self, service, username, password):
        FILE.write_text(json.dumps({service + username: password}))
"""

Start = Callable[..., Terminal]
Ask = Callable[[str], Status]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """No passphrase anywhere, no keyring."""
    return {**os.environ, "SQUIRREL_DATA_DIR": str(tmp_path / "data")}


@pytest.fixture
def with_keyring(environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """A keyring that works, kept in a file."""
    folder = tmp_path / "keyring"
    folder.mkdir()
    (folder / "file_keyring.py").write_text(_KEYRING)
    path = os.pathsep.join(filter(None, (str(folder), environment.get("PYTHONPATH"))))
    environment |= {"PYTHONPATH": path, "PYTHON_KEYRING_BACKEND": "file_keyring.FileKeyring"}
    return environment


@pytest.fixture
def start(environment: dict[str, str]) -> Iterator[Start]:
    """Starts a command at a terminal of its own."""
    started: list[Terminal] = []

    def start_it(*args: str) -> Terminal:
        started.append(Terminal(*args, environment=environment))
        return started[-1]

    yield start_it
    for terminal in started:
        terminal.kill()


@pytest.fixture
def status(tmp_path: Path) -> Ask:
    """What the vault is like for who has this passphrase."""

    def ask(passphrase: str) -> Status:
        service = MemoryService(Settings(data_dir=tmp_path / "data", passphrase=passphrase))
        try:
            return service.status()
        finally:
            service.close()

    return ask


@pytest.fixture
def vault_dir(tmp_path: Path) -> Path:
    """One memory is in the vault."""
    settings = Settings(data_dir=tmp_path / "data")
    vault = opening.open_vault(settings, Unlocker(lambda: PASSPHRASE), parameters=CHEAP)
    vault.save(Draft("The router is 10.0.7.1"))
    vault.close()
    return settings.data_dir


def _code_on(terminal: Terminal) -> str:
    shown = terminal.wait_for("symbols): ")
    (code,) = set(_CODE.findall(shown))
    return str(code)


def _confirm(terminal: Terminal) -> str:
    code = _code_on(terminal)
    terminal.type(code[-6:].lower())
    return code


def test_init_asks_twice_confirms_the_code_and_keeps_the_passphrase_in_the_keyring(
    with_keyring: dict[str, str], start: Start, status: Ask
) -> None:
    terminal = start("init", "--client", "cursor")
    terminal.answer("characters or more): ", "short")
    terminal.wait_for("too short")
    terminal.answer("characters or more): ", FIRST)
    terminal.answer("once more: ", SECOND)
    terminal.wait_for("differ")
    terminal.answer("characters or more): ", FIRST)
    terminal.answer("once more: ", FIRST)
    code = _code_on(terminal)
    terminal.type("AAAA-A")
    terminal.wait_for("not how it ends")
    terminal.answer("symbols): ", code[-6:])
    terminal.answer("keyring? [Y/n]: ", "y")
    terminal.wait_for("~/.cursor/mcp.json")
    assert terminal.end() == Exit.OK
    assert FIRST not in terminal.screen and SECOND not in terminal.screen
    assert "SQUIRREL_PASSPHRASE" not in terminal.screen  # the server finds it in the keyring
    assert terminal.screen.count(code) == 1
    assert status(FIRST).recovery_code
    opened = start("list")  # without being asked for anything
    assert opened.end() == Exit.NOTHING and "Passphrase" not in opened.screen

    # The code is the other way in, and the keyring follows.
    terminal = start("recovery", "use")
    terminal.answer("Recovery code: ", code[:-1])
    terminal.answer("Recovery code: ", code.lower().replace("-", " "))
    terminal.answer("characters or more): ", SECOND)
    terminal.answer("once more: ", SECOND)
    terminal.wait_for("keyring holds the new")
    assert terminal.end() == Exit.OK and SECOND not in terminal.screen
    assert status(SECOND).unlocked and not status(FIRST).unlocked
    opened = start("list")
    assert opened.end() == Exit.NOTHING


def test_init_on_a_vault_that_is_there_says_so_and_changes_nothing(vault_dir: Path, start: Start, status: Ask) -> None:
    before = {path: path.read_bytes() for path in vault_dir.iterdir()}
    terminal = start("init")
    terminal.wait_for("already; nothing was changed.")
    assert terminal.end() == Exit.CONFLICT
    assert {path: path.read_bytes() for path in vault_dir.iterdir()} == before


def test_a_code_that_is_not_confirmed_makes_nothing(start: Start, tmp_path: Path) -> None:
    terminal = start("init")
    for question in ("characters or more): ", "once more: "):
        terminal.answer(question, FIRST)
    for _ in range(3):
        terminal.answer("symbols): ", "WRONG")
    terminal.wait_for("not confirmed")
    assert terminal.end() == Exit.USAGE and not (tmp_path / "data").exists()


@pytest.mark.parametrize("at", ["characters or more): ", "once more: ", "symbols): "])
def test_ctrl_c_at_any_question_of_init_makes_nothing(start: Start, tmp_path: Path, at: str) -> None:
    terminal = start("init")
    for question in ("characters or more): ", "once more: ", "symbols): "):
        terminal.wait_for(question)
        if question == at:
            break
        terminal.type(FIRST)
    assert terminal.end_with_ctrl_c() == Exit.INTERRUPTED
    assert terminal.screen.endswith("Stopped.\n") and "Traceback" not in terminal.screen
    assert not (tmp_path / "data").exists()


def test_without_a_source_the_passphrase_is_asked_for_and_a_wrong_one_again(vault_dir: Path, start: Start) -> None:
    terminal = start("search", "router")
    terminal.answer("Passphrase: ", "not this one")
    terminal.wait_for("does not open it")
    terminal.answer("Passphrase: ", PASSPHRASE)
    assert "10.0.7.1" in terminal.wait_for("10.0.7.1")
    assert terminal.end() == Exit.OK and PASSPHRASE not in terminal.screen


def test_three_wrong_ones_are_enough(vault_dir: Path, start: Start) -> None:
    terminal = start("list")
    for _ in range(3):
        terminal.answer("Passphrase: ", "not this one")
    assert terminal.end() == Exit.LOCKED


def test_a_first_memory_at_a_terminal_asks_for_a_new_passphrase_twice(start: Start, status: Ask) -> None:
    terminal = start("add", "one")
    terminal.answer("characters or more): ", FIRST)
    terminal.answer("once more: ", FIRST)
    terminal.wait_for("saved")
    assert terminal.end() == Exit.OK and status(FIRST).total == 1


def test_passphrase_change_asks_for_the_old_one_and_the_new_one_twice(
    vault_dir: Path, start: Start, status: Ask
) -> None:
    terminal = start("passphrase", "change")
    terminal.answer("Passphrase: ", PASSPHRASE)
    terminal.answer("characters or more): ", FIRST)
    terminal.answer("once more: ", FIRST)
    terminal.wait_for("passphrase is changed")
    terminal.wait_for("configuration of your clients")
    assert terminal.end() == Exit.OK
    assert FIRST not in terminal.screen and PASSPHRASE not in terminal.screen
    assert status(FIRST).total == 1 and not status(PASSPHRASE).unlocked


def test_two_that_differ_three_times_change_nothing(vault_dir: Path, start: Start, status: Ask) -> None:
    terminal = start("passphrase", "change")
    terminal.answer("Passphrase: ", PASSPHRASE)
    for _ in range(3):
        terminal.answer("characters or more): ", FIRST)
        terminal.answer("once more: ", SECOND)
    assert terminal.end() == Exit.USAGE and status(PASSPHRASE).unlocked


def test_a_new_recovery_code_is_valid_once_it_is_confirmed(vault_dir: Path, start: Start, status: Ask) -> None:
    terminal = start("recovery", "new")
    terminal.answer("Passphrase: ", PASSPHRASE)
    _code_on(terminal)
    assert not status(PASSPHRASE).recovery_code
    assert terminal.end_with_ctrl_c() == Exit.INTERRUPTED and not status(PASSPHRASE).recovery_code
    terminal = start("recovery", "new")
    terminal.answer("Passphrase: ", PASSPHRASE)
    _confirm(terminal)
    terminal.wait_for("valid now")
    assert terminal.end() == Exit.OK and status(PASSPHRASE).recovery_code


def test_a_rotation_keeps_the_passphrase_on_enter_and_makes_a_new_code(
    vault_dir: Path, start: Start, status: Ask
) -> None:
    terminal = start("rotate")
    terminal.answer("Passphrase: ", PASSPHRASE)
    terminal.wait_for("copied before")
    terminal.answer("keeps the present one): ", "")
    code = _confirm(terminal)
    terminal.wait_for("rotated")
    assert terminal.end() == Exit.OK and status(PASSPHRASE).recovery_code
    terminal = start("recovery", "use")
    terminal.answer("Recovery code: ", code)
    terminal.answer("characters or more): ", FIRST)
    terminal.answer("once more: ", FIRST)
    assert terminal.end() == Exit.OK and status(FIRST).total == 1


def test_no_is_an_answer(vault_dir: Path, start: Start, status: Ask, tmp_path: Path) -> None:
    terminal = start("export", str(tmp_path / "x"), "--plain")
    terminal.answer("[y/N]: ", "n")
    assert terminal.end() == Exit.INTERRUPTED and not (tmp_path / "x").exists()
    memory_id = _id_in(vault_dir)
    terminal = start("forget", memory_id)
    terminal.answer("Passphrase: ", PASSPHRASE)
    assert "10.0.7.1" in terminal.wait_for("[y/N]: ")
    terminal.type("n")
    terminal.wait_for("Not forgotten")
    assert terminal.end() == Exit.INTERRUPTED and status(PASSPHRASE).total == 1
    terminal = start("forget", memory_id)
    terminal.answer("Passphrase: ", PASSPHRASE)
    terminal.answer("[y/N]: ", "y")
    assert terminal.end() == Exit.OK and status(PASSPHRASE).total == 0


def test_people_get_tables_and_progress(
    vault_dir: Path, start: Start, environment: dict[str, str], tmp_path: Path
) -> None:
    environment["SQUIRREL_PASSPHRASE"] = PASSPHRASE
    memory_id = _id_in(vault_dir)
    for args, shown in (
        (("list",), ("category", memory_id[:8], "10.0.7.1")),
        (("search", "router"), ("score", "10.0.7.1")),
        (("show", memory_id[:8], "--history"), (memory_id, "revision")),
        (("status",), ("fingerprint", "1 fact")),
        (("export", str(tmp_path / "x")), ("1 memories",)),
        (("import", str(tmp_path / "x")), ("there already",)),
        (("list", "--json"), ('  "memories": [',)),
    ):
        terminal = start(*args)
        assert terminal.end() == Exit.OK
        assert all(word in terminal.screen for word in shown)
    assert "\x1b[" in start_and_end(start, "list") and "\x1b[" not in start_and_end(start, "list", "--json")


def start_and_end(start: Start, *args: str) -> str:
    terminal = start(*args)
    terminal.end()
    return terminal.screen


def _id_in(folder: Path) -> str:
    vault = opening.open_vault(Settings(data_dir=folder), Unlocker(lambda: PASSPHRASE))
    (memory,) = vault.memories
    vault.close()
    return memory.id


def test_an_account_on_a_server_from_its_invite_to_its_end(
    start: Start, environment: dict[str, str], tmp_path: Path
) -> None:
    with account_server(tmp_path / "server") as server:
        invite = server.invite()
        terminal = start("init", "--api", server.origin)
        terminal.answer("Invite: ", invite)
        terminal.answer("characters or more): ", FIRST)
        terminal.answer("once more: ", FIRST)
        terminal.wait_for("symbols): ")
        # The code was not confirmed: nothing was asked of the server, and the invite is as good as before.
        assert terminal.end_with_ctrl_c() == Exit.INTERRUPTED and not (tmp_path / "data").exists()
        assert invite not in terminal.screen

        terminal = start("init", "--api", server.origin)
        terminal.answer("Invite: ", invite)
        terminal.answer("characters or more): ", FIRST)
        terminal.answer("once more: ", FIRST)
        recovery_code = _confirm(terminal)
        terminal.answer("keyring? [Y/n]: ", "n")
        assert terminal.end() == Exit.OK
        (key,) = set(_API_KEY.findall(terminal.screen))
        assert terminal.screen.count(key) == 2 and FIRST not in terminal.screen  # for the client and for the shell
        environment |= {"SQUIRREL_API_BASE_URL": server.origin, "SQUIRREL_API_KEY": key}

        terminal = start("keys", "create", "--join")
        terminal.answer("Passphrase: ", FIRST)
        assert terminal.end() == Exit.OK
        (code,) = re.findall(r"sqj1_[\w-]+", terminal.screen)
        terminal = start("join")
        terminal.answer("Join code: ", code)
        terminal.answer("Passphrase: ", "not this one")
        terminal.wait_for("does not open it")
        terminal.answer("Passphrase: ", FIRST)
        terminal.answer("keyring? [Y/n]: ", "n")
        assert terminal.end() == Exit.OK
        assert code not in terminal.screen and "Fingerprint: 1:" in terminal.screen

        terminal = start("recovery", "use")
        terminal.answer("Recovery code: ", recovery_code)
        terminal.answer("characters or more): ", SECOND)
        terminal.answer("once more: ", SECOND)
        terminal.wait_for("passphrase is valid")
        assert terminal.end() == Exit.OK

        terminal = start("account", "delete")
        terminal.answer("Passphrase: ", SECOND)
        terminal.answer(f"type {server.origin}: ", "yes")
        assert terminal.end() == Exit.INTERRUPTED and "nothing was erased" in terminal.screen
        terminal = start("account", "delete")
        terminal.answer("Passphrase: ", SECOND)
        terminal.answer(f"type {server.origin}: ", server.origin)
        terminal.wait_for("Erased: 0 memories")
        assert terminal.end() == Exit.OK


def test_a_move_explains_and_asks(vault_dir: Path, start: Start, tmp_path: Path, status: Ask) -> None:
    with account_server(tmp_path / "server") as server:
        for answer, code in (("n", Exit.INTERRUPTED), ("y", Exit.OK)):
            terminal = start("move", "--to", server.origin, "--invite", server.invite())
            terminal.answer("Passphrase: ", PASSPHRASE)
            assert "1 memories" in terminal.wait_for("Move them? [y/N]: ")
            assert status(PASSPHRASE).total == 1
            terminal.type(answer)
            assert terminal.end() == code
        (key,) = set(_API_KEY.findall(terminal.screen))
        assert terminal.screen.index(key) < terminal.screen.index("is moved to")
        assert not status(PASSPHRASE).unlocked
