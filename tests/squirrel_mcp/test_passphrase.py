"""Where the passphrase comes from, and what is refused."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import keyring
import keyring.backend
import pytest

from squirrel_mcp import passphrase
from squirrel_mcp.errors import PassphraseMissing, PassphraseRefused
from squirrel_mcp.settings import Settings


@pytest.fixture
def bare(tmp_path: Path) -> Settings:
    return Settings(data_dir=tmp_path)


class MemoryKeyring(keyring.backend.KeyringBackend):
    """A keyring that works and is nobody's own."""

    priority = 1.0  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.entries: dict[tuple[str, str], str] = {}

    def get_password(self, service: str, username: str) -> str | None:
        return self.entries.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.entries[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.entries[service, username]


@pytest.fixture
def own_keyring() -> MemoryKeyring:
    before, mine = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(mine)
    yield mine  # type: ignore[misc]
    keyring.set_keyring(before)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"secret words\n", "secret words"),
        (b"secret words\r\n", "secret words"),
        (b"secret words\n\n", "secret words\n"),
        (b"secret words\r", "secret words\r"),
        (b" secret words ", " secret words "),
        ("gehe\u0131m w\u00f6rter".encode(), "gehe\u0131m w\u00f6rter"),
    ],
)
def test_a_file_or_command_loses_one_line_end_and_nothing_else(
    bare: Settings, tmp_path: Path, content: bytes, expected: str
) -> None:
    file = tmp_path / "passphrase"
    file.write_bytes(content)
    assert passphrase.read(replace(bare, passphrase_file=file)) == expected
    show = "import sys, pathlib; sys.stdout.buffer.write(pathlib.Path(sys.argv[1]).read_bytes())"
    command = shlex.join([sys.executable, "-c", show, str(file)])
    assert passphrase.read(replace(bare, passphrase_command=command)) == expected


@pytest.mark.parametrize("content", [b"", b"\n", b"\xff\xfe\x00", b"${SECRET}", b"${SECRET}\n", b"x" * 70_000])
def test_a_bad_passphrase_is_refused_and_not_quoted(bare: Settings, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "passphrase"
    file.write_bytes(content)
    with pytest.raises(PassphraseRefused) as caught:
        passphrase.read(replace(bare, passphrase_file=file))
    assert "SECRET" not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__context__ is None


def test_the_variable_comes_before_file_command_and_keyring(
    bare: Settings, tmp_path: Path, own_keyring: MemoryKeyring
) -> None:
    file = tmp_path / "passphrase"
    file.write_text("from the file")
    assert passphrase.keep_in_keyring(bare, "from the keyring")
    settings = replace(bare, passphrase="from the variable", passphrase_file=file, passphrase_command="echo from it")
    assert passphrase.read(settings) == "from the variable"
    assert passphrase.read(replace(settings, passphrase=None)) == "from the file"
    assert passphrase.read(replace(settings, passphrase=None, passphrase_file=None)) == "from it"
    assert passphrase.read(bare) == "from the keyring"


def test_without_any_source_the_error_says_what_to_set(bare: Settings) -> None:
    with pytest.raises(PassphraseMissing, match="SQUIRREL_PASSPHRASE"):
        passphrase.read(bare)
    assert not passphrase.keep_in_keyring(bare, "no keyring here")


@pytest.mark.parametrize("command", ["false", "no-such-program-anywhere", "echo 'unclosed", ""])
def test_a_command_that_fails_is_named_but_not_quoted(bare: Settings, command: str) -> None:
    settings = replace(bare, passphrase_command=command + (" --token canary" if command == "false" else ""))
    with pytest.raises((PassphraseMissing, PassphraseRefused)) as caught:
        passphrase.read(settings)
    assert "canary" not in str(caught.value)


def test_a_missing_file_is_named(bare: Settings, tmp_path: Path) -> None:
    with pytest.raises(PassphraseMissing, match="nowhere"):
        passphrase.read(replace(bare, passphrase_file=tmp_path / "nowhere"))


def test_a_command_gets_no_secrets_and_no_shell(bare: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SQUIRREL_PASSPHRASE", "canary")
    monkeypatch.setenv("SQUIRREL_API_KEY", "canary")
    show = f'"{sys.executable}" -c "import os; print(sorted(k for k, v in os.environ.items() if v == \'canary\'))"'
    assert passphrase.read(replace(bare, passphrase_command=show)) == "[]"
    assert passphrase.read(replace(bare, passphrase_command="echo $HOME; echo `id`")) == "$HOME; echo `id`"


def test_a_command_that_hangs_is_given_up(bare: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    monkeypatch.setattr(passphrase, "COMMAND_TIMEOUT", 0.2)
    with pytest.raises(PassphraseMissing, match="did not answer"):
        passphrase.read(replace(bare, passphrase_command=f"cat {fifo}"))


def test_a_command_that_never_stops_printing_is_stopped(bare: Settings) -> None:
    with pytest.raises(PassphraseRefused, match="64 KiB"):
        passphrase.read(replace(bare, passphrase_command="yes"))


def test_what_is_no_plain_file_is_refused_without_a_hang(bare: Settings, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, Path("/dev/zero")):
        with pytest.raises(PassphraseMissing, match="no plain file"):
            passphrase.read(replace(bare, passphrase_file=path))
