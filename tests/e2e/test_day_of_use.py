"""A full day at the command line, then a search for every word and secret of it in all that was written: absent."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from squirrel_mcp import opening
from squirrel_mcp.crypto import recovery
from squirrel_mcp.settings import Settings

from .conftest import PASSPHRASE
from .server_process import ServerProcess, environment

TEXTS = {name: f"canary-{name}-7319-ochre" for name in ("text", "corrected", "forgotten", "tool", "draft")}
FIELDS = {name: f"canary-{name}-4402-umber" for name in ("entity", "tag", "keyword", "source", "reason", "category")}
QUERY = "finch-5518-sienna"
SECOND, THIRD, FOURTH = (f"canary-passphrase-{number}-ivory" for number in ("two", "three", "four"))


class Day:
    """Runs commands one after the other; keeps all that was said on stderr, and on stdout where nothing was asked."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.passphrase_file = folder / "passphrase"
        self.use(PASSPHRASE)
        self.said = b""

    def use(self, passphrase: str) -> None:
        self.passphrase_file.write_text(passphrase)

    def environment(self) -> dict[str, str]:
        return environment(
            self.folder / "data",
            SQUIRREL_LOG_LEVEL="debug",
            SQUIRREL_PASSPHRASE_FILE=str(self.passphrase_file),
        )

    def run(self, *args: str, code: int = 0, asked: bool = False, stdin: str = "") -> Any:
        """The JSON that a command prints. `asked`: its output shows memories because that is what it is for."""
        command = [sys.executable, "-m", "squirrel_mcp", *args, "--json"]
        ran = subprocess.run(command, env=self.environment(), input=stdin.encode(), capture_output=True, check=False)
        assert ran.returncode == code, ran.stderr.decode()
        self.said += ran.stderr if asked else ran.stderr + ran.stdout
        return json.loads(ran.stdout)

    def files(self) -> dict[Path, bytes]:
        """Everything in the data folder and among temporary files, and the sealed exports."""
        folders = (self.folder / "data", self.folder / "exports", self.folder / "tmp")
        return {path: path.read_bytes() for folder in folders for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Day:
    for folder in ("exports", "tmp"):
        (tmp_path / folder).mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return Day(tmp_path)


def test_nothing_of_a_full_day_of_use_lies_about_in_clear(day: Day) -> None:
    code = recovery.generate()
    at_work = _live_through(day, code)
    secrets = [*TEXTS.values(), *FIELDS.values(), QUERY, PASSPHRASE, SECOND, THIRD, FOURTH, recovery.to_code(code)]
    written = {f"{path.name} (at work)": content for path, content in at_work.items()}
    written |= {path.name: content for path, content in day.files().items()} | {"stderr": day.said}
    assert {"vault.db", "vault.db-wal (at work)", "one", "two", "stderr"} <= written.keys()
    for secret in secrets:
        for form in _forms(secret):
            found = [name for name, content in written.items() if form in content]
            assert not found, f"{secret} is in {found}"
    assert not any(code in content for content in written.values())


def _live_through(day: Day, code: bytes) -> dict[Path, bytes]:
    """The day. Gives what lay on disk while a server was at work: its WAL is gone afterwards."""
    day.run("init", "--no-recovery")
    options = [f"--{name}={value}" for name, value in FIELDS.items() if name != "reason"]
    memory_id = day.run("add", TEXTS["text"], *options)["id"]
    gone = day.run("add", "-", stdin=TEXTS["forgotten"])["id"]
    day.run("search", QUERY, code=1, asked=True)
    day.run("search", TEXTS["text"], asked=True)
    day.run("correct", memory_id, TEXTS["corrected"], "--reason", FIELDS["reason"])
    day.run("correct", memory_id, TEXTS["draft"], "--expected-revision", "1", code=5, asked=True)
    day.run("forget", gone, "--yes")
    day.run("export", str(day.folder / "exports" / "one"))

    with ServerProcess(day.environment()) as server:
        server.initialize()
        server.call("save_memory", text=TEXTS["tool"], tags=[FIELDS["tag"]])
        server.call("search_memory", query=QUERY)
        at_work = day.files()
    day.said += server.stderr.all()

    _change(day, SECOND, "passphrase", "change")
    _change(day, THIRD, "rotate", "--no-recovery")
    settings = Settings(data_dir=day.folder / "data", passphrase=THIRD)
    vault = opening.open_vault(settings, opening.from_settings(settings))
    vault.set_recovery(code)  # a person at a terminal does this; the tests of the prompts do, too
    vault.close()
    (day.folder / "code").write_text(recovery.to_code(code))
    _change(day, FOURTH, "recovery", "use", "--code-file", str(day.folder / "code"))
    day.run("export", str(day.folder / "exports" / "two"))
    day.run("import", str(day.folder / "exports" / "two"))
    day.run("import", str(day.folder / "exports" / "one"), code=3)  # sealed under an earlier passphrase
    # What is searched for is there to be found, where it was asked for.
    plain = day.folder / "plain"
    day.run("export", str(plain), "--plain", "--yes")
    assert TEXTS["corrected"].encode() in plain.read_bytes() and FIELDS["tag"].encode() in plain.read_bytes()
    return at_work


def _change(day: Day, passphrase: str, *args: str) -> None:
    new = day.folder / "new-passphrase"
    new.write_text(passphrase)
    day.run(*args, "--new-passphrase-file", str(new))
    day.use(passphrase)


def _forms(secret: str) -> list[bytes]:
    """As it is, in UTF-16, in hex, and in base64 at each of the three offsets, less what its neighbours change."""
    raw = secret.encode()
    shifted = (base64.b64encode(b"\0" * shift + raw)[4:-4] for shift in range(3))
    return [raw, secret.encode("utf-16-le"), raw.hex().encode(), *shifted]
