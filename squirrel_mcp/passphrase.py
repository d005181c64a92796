"""Where the passphrase comes from: the variable, a file, a command or the OS keyring, in that order.

The source is read anew each time it is needed: a passphrase that was wrong is right as soon as its source is.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
from pathlib import Path

from squirrel_mcp.crypto import kdf
from squirrel_mcp.errors import PassphraseMissing, PassphraseRefused
from squirrel_mcp.settings import Settings, child_environment

COMMAND_TIMEOUT = 30.0  # seconds; time enough for a person to touch a security key
_KEYRING_SERVICE = "squirrel-mcp"
_MAX_BYTES = 64 * 1024


def read(settings: Settings) -> str:
    """The passphrase, checked for form. PassphraseMissing when no source has one, PassphraseRefused for a bad one."""
    if settings.passphrase is not None:
        passphrase = settings.passphrase
    elif settings.passphrase_file is not None:
        passphrase = _from_file(settings.passphrase_file)
    elif settings.passphrase_command is not None:
        passphrase = _from_command(settings.passphrase_command)
    else:
        passphrase = _from_keyring(settings.data_dir)
    kdf.normalise(passphrase)
    return passphrase


def keep_in_keyring(settings: Settings, passphrase: str) -> bool:
    """Store it in the OS keyring for this data folder; False where the machine has no usable keyring."""
    import keyring
    import keyring.errors

    try:
        keyring.set_password(_KEYRING_SERVICE, str(settings.data_dir), passphrase)
        # Asked again, since the null backend takes everything and keeps nothing.
        return keyring.get_password(_KEYRING_SERVICE, str(settings.data_dir)) == passphrase
    except (keyring.errors.KeyringError, OSError, RuntimeError):
        return False


def drop_from_keyring(settings: Settings) -> bool:
    """Remove this data folder's passphrase from the OS keyring; False where there was none, or it stays."""
    import keyring
    import keyring.errors

    if not is_in_keyring(settings):
        return False
    try:
        keyring.delete_password(_KEYRING_SERVICE, str(settings.data_dir))
    except (keyring.errors.KeyringError, OSError, RuntimeError):
        return False
    return True


def is_in_keyring(settings: Settings) -> bool:
    """Whether the OS keyring holds one for this data folder, whatever source comes first."""
    return _ask_keyring(settings.data_dir) is not None


def _from_file(path: Path) -> str:
    try:
        # Opening a fifo would wait for a writer, perhaps for ever.
        if not path.is_file():
            raise PassphraseMissing(f"The passphrase file {path} is not there, or no plain file.")
        with open(path, "rb") as file:
            return _decode(file.read(_MAX_BYTES + 1))
    except OSError as error:
        reason = error.strerror
    raise PassphraseMissing(f"The passphrase file {path} cannot be read: {reason}.")


def _from_command(command: str) -> str:
    arguments: str | list[str] = command if os.name == "nt" else _split(command)
    try:
        process = subprocess.Popen(
            arguments,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=child_environment(),
        )
    except (OSError, ValueError):
        failure = "could not be started"
    else:
        printed = _first_bytes(process)
        if printed is None:
            failure = f"did not answer within {COMMAND_TIMEOUT:.0f} seconds"
        elif process.returncode == 0 or len(printed) > _MAX_BYTES:
            return _decode(printed)
        else:
            failure = f"ended with exit code {process.returncode}"
    # The command itself is not quoted: people put secrets into command lines.
    raise PassphraseMissing(f"The command in SQUIRREL_PASSPHRASE_COMMAND {failure}.")


def _first_bytes(process: subprocess.Popen[bytes]) -> bytes | None:
    """What it prints, up to one byte too many; None if that takes too long. The process has ended afterwards."""
    printed: list[bytes] = []

    def read() -> None:
        assert process.stdout is not None
        # Closed here: where a child of the command keeps the pipe, this ends long after everybody has gone on.
        with process.stdout:
            printed.append(process.stdout.read(_MAX_BYTES + 1))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        reader.join(COMMAND_TIMEOUT)
        if not printed:
            return None
        if len(printed[0]) <= _MAX_BYTES:
            process.wait(COMMAND_TIMEOUT)
        return printed[0]
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _split(command: str) -> list[str]:
    try:
        arguments = shlex.split(command)
    except ValueError:
        arguments = []
    if not arguments:
        raise PassphraseMissing("SQUIRREL_PASSPHRASE_COMMAND is no command, or has an unclosed quotation.")
    return arguments


def _ask_keyring(data_dir: Path) -> str | None:
    import keyring
    import keyring.errors

    try:
        return keyring.get_password(_KEYRING_SERVICE, str(data_dir))
    except (keyring.errors.KeyringError, OSError, RuntimeError):
        return None


def _from_keyring(data_dir: Path) -> str:
    passphrase = _ask_keyring(data_dir)
    if passphrase is None:
        raise PassphraseMissing(
            "There is no passphrase: set SQUIRREL_PASSPHRASE (or SQUIRREL_PASSPHRASE_FILE, "
            "SQUIRREL_PASSPHRASE_COMMAND), or run `squirrel-mcp init`."
        )
    return passphrase


def _decode(raw: bytes) -> str:
    if len(raw) > _MAX_BYTES:
        raise PassphraseRefused("The passphrase is longer than 64 KiB: its source is probably another file.")
    # Editors and `echo` end a line; only that one line end is not part of the passphrase.
    raw = raw.removesuffix(b"\n").removesuffix(b"\r") if raw.endswith(b"\n") else raw
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        pass
    raise PassphraseRefused("The passphrase is not valid UTF-8 text.")
