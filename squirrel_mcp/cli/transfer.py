"""`export` and `import`: everything in one file, sealed or readable, and back."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from squirrel_mcp import passphrase, private_files
from squirrel_mcp.cli import asking
from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.cli.output import json_option, progress, show_facts, show_json
from squirrel_mcp.cli.session import has_account, open_vault, say_made
from squirrel_mcp.crypto import recovery
from squirrel_mcp.crypto.key_set import KeyRing
from squirrel_mcp.crypto.log import Head
from squirrel_mcp.errors import (
    ExportDamaged,
    InvalidInput,
    PassphraseMissing,
    SquirrelError,
    UpdateRequired,
    Verdict,
    WrongPassphrase,
)
from squirrel_mcp.portability import account_log, importing, plain_file, sealed_file
from squirrel_mcp.portability.incoming import Incoming
from squirrel_mcp.portability.plain_file import BadLine
from squirrel_mcp.portability.sealed_file import SealedExport
from squirrel_mcp.service import MemoryService
from squirrel_mcp.settings import Settings
from squirrel_mcp.sync.local import LocalStore
from squirrel_mcp.sync.pins import PinFolder
from squirrel_mcp.sync.store import Store
from squirrel_mcp.vault import Vault, utc_now

_SHOWN_LINES = 20  # bad lines named one by one

_READABLE = "The file will hold every memory as readable text, for whoever gets it. Write it?"


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--plain", is_flag=True, help="Write readable JSON lines, not sealed records.")
@click.option("--yes", is_flag=True, help="Do not ask before writing readable text.")
@click.option("--overwrite", is_flag=True, help="Replace the file if it is there.")
@json_option
def export(file: Path, plain: bool, yes: bool, overwrite: bool, as_json: bool) -> int:
    """Write everything to FILE, history included.

    The file is sealed as the vault is, and opens with the passphrase that the vault has now.
    """
    settings = Settings.read()
    _check_target(file, settings.data_dir, overwrite)
    if plain and not yes:
        if not asking.can_ask():
            raise InvalidInput("yes", "There is nobody to ask: use --yes to write readable text without a question.")
        if not asking.confirm(_READABLE):
            raise click.Abort
    with open_vault(settings) as vault, closing(_store(settings)) as store:
        damage = vault.verdict
        if damage is None:
            with progress("Reading") as tell:
                taken = account_log.take(store, vault, tell)
            content, raw = taken.content, b"" if plain else sealed_file.encode(taken.export)
        elif plain:
            content, raw = account_log.open_verified_part(store, vault, _pinned(settings, store)), b""
        else:
            asking.say(
                "Only a vault that is whole can be exported sealed; --plain writes what comes before the damage."
            )
            raise damage
    if plain:
        raw = b"".join(plain_file.encode(memory for each in content.revisions.values() for memory in each))
    private_files.replace(file, raw)
    if damage is None:
        _note_export(settings)
    _tell_export(file, plain, content, len(raw), damage, as_json)
    return Exit.OK if damage is None else Exit.STORE


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only tell what would be done.")
@click.option(
    "--skip-bad-lines", is_flag=True, help="Import the other lines of a file that has some that cannot be read."
)
@click.option(
    "--passphrase-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Holds the passphrase that the vault had when it was exported, if it is another one.",
)
@click.option("--recovery-code", is_flag=True, help="Open the export with its recovery code, which is asked for.")
@json_option
def import_file(
    file: Path,
    dry_run: bool,
    skip_bad_lines: bool,
    passphrase_file: Path | None,
    recovery_code: bool,
    as_json: bool,
) -> int:
    """Bring in what an export or a file of JSON lines holds.

    Nothing that is there is overwritten, nothing forgotten comes back, and the same file twice changes nothing.
    A line needs no more than {"text": "..."}.
    """
    settings = Settings.read()
    if not file.is_file():
        raise InvalidInput("file", f"{file} is not a plain file.")
    with open(file, "rb") as opened:
        is_sealed = opened.read(len(sealed_file.MAGIC)) == sealed_file.MAGIC
    bad: list[BadLine] = []
    if is_sealed:
        sealed = sealed_file.decode(file.read_bytes())
        incoming = _open_sealed(sealed, settings, passphrase_file, recovery_code)
    else:
        incoming, bad = _read_lines(file)
        for line in bad[:_SHOWN_LINES]:
            asking.say(f"Line {line.number} {line.problem}.")
        if len(bad) > _SHOWN_LINES:
            asking.say(f"{len(bad) - _SHOWN_LINES} more lines cannot be read.")
        if bad and not skip_bad_lines:
            asking.say("Nothing was imported; mend the lines, or use --skip-bad-lines to import the others.")
            if as_json:
                show_json({"imported": False, "badLines": _line_fields(bad)})
            return Exit.USAGE
    with _destination(settings, dry_run) as vault:
        planned = importing.plan(vault, incoming)
        if vault is not None and not dry_run:
            planned = _carry_out(vault, planned)
    _tell_import(planned, incoming, bad, dry_run, as_json)
    return Exit.CONFLICT if planned.ids("conflict") else Exit.OK


def _check_target(file: Path, data_dir: Path, overwrite: bool) -> None:
    """InvalidInput unless `file` may be written: outside the data folder, and where only a plain file is lost.

    It is written beside itself first, with `.new` after its name.
    """
    if str(file) == "-":
        raise InvalidInput("file", "An export is written to a file: give its name instead of -.")
    for path in (file, file.with_name(file.name + ".new")):
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue  # nothing is there; what else is wrong comes up when it is written
        if not overwrite:
            raise InvalidInput("file", f"{path} is there already: use --overwrite to replace it.")
        if not stat.S_ISREG(mode):
            raise InvalidInput("file", f"{path} is there and no plain file, which --overwrite does not replace.")
    folder = Path(os.path.realpath(file.parent))
    # Compared as folders and not as names, which some systems write in more than one way.
    if any(each.exists() and data_dir.exists() and each.samefile(data_dir) for each in (folder, *folder.parents)):
        raise InvalidInput("file", f"{file} is in the folder of the vault itself, {data_dir}; write it elsewhere.")


def _note_export(settings: Settings) -> None:
    """Remember when it was, if that works: the export is there in any case."""
    try:
        MemoryService(settings).note_export()
    except (SquirrelError, OSError) as error:
        why = str(error) if isinstance(error, SquirrelError) else error.strerror
        asking.say(f"Everything is exported, but `status` will not tell when: {why}")


def _store(settings: Settings) -> Store:
    """The store itself: an export asks for every revision, which no cache has."""
    if settings.api_base_url is None:
        return LocalStore(settings.vault_path)
    from squirrel_mcp import remote_vault

    return remote_vault.remote_store(settings)


def _pinned(settings: Settings, store: Store) -> Head | None:
    pins = PinFolder(settings.data_dir).by_route(store.route)
    return pins[0].pin.head if pins else None


@contextmanager
def _destination(settings: Settings, dry_run: bool) -> Iterator[Vault | None]:
    """The vault to import into, made if there is none; a dry run makes none."""
    is_new = not has_account(settings)
    if dry_run and is_new:
        yield None
        return
    with open_vault(settings, may_create=True) as vault:
        if is_new:
            say_made(settings)
        yield vault


def _open_sealed(sealed: SealedExport, settings: Settings, file: Path | None, by_code: bool) -> Incoming:
    """What it holds. ExportDamaged for what would be a verdict on a store: the vault here has nothing to do with it."""
    try:
        return account_log.open_export(sealed, _open_keys(sealed, settings, file, by_code))
    except UpdateRequired:
        raise
    except Verdict as error:
        raise ExportDamaged(f"The export is damaged or was altered. {error}") from None


def _open_keys(sealed: SealedExport, settings: Settings, file: Path | None, by_code: bool) -> KeyRing:
    """The keys of an export: with what was named, or the passphrase of this vault, or what a person types."""
    if by_code:
        return sealed.key_set.open(recovery.from_code(asking.line("Recovery code of the export")))
    if file is not None:
        settings = replace(settings, passphrase=None, passphrase_file=file)
    try:
        return sealed.key_set.open(passphrase.read(settings))
    except (WrongPassphrase, PassphraseMissing):
        if file is not None or not asking.can_ask():
            asking.say("The passphrase is that which the vault had when it was exported; --passphrase-file names it.")
            raise
    return asking.open_with_typed("Passphrase of the export", sealed.key_set.open)


def _read_lines(file: Path) -> tuple[Incoming, list[BadLine]]:
    size = file.stat().st_size
    with open(file, "rb") as lines:
        if lines.read(1) not in (b"", b"{", b"\xef", b" ", b"\t", b"\r", b"\n"):
            raise ExportDamaged("The file is neither a sealed export nor JSON lines.")
        lines.seek(0)
        with progress("Reading") as tell:
            found = plain_file.read(lines, now=utc_now(), progress=lambda done: tell(done, size))
    return found.incoming, found.bad


def _carry_out(vault: Vault, planned: importing.Plan) -> importing.Plan:
    total, stored = len(planned.writes), 0

    def note(done: int) -> None:
        nonlocal stored
        stored = done
        tell(done, total)

    try:
        with progress("Storing") as tell:
            return importing.carry_out(vault, planned, note)
    except BaseException:
        asking.say(f"{stored} of {total} revisions are stored; the same import goes on from there.")
        raise


def _tell_export(file: Path, plain: bool, content: Incoming, size: int, damage: Verdict | None, as_json: bool) -> None:
    revisions = sum(map(len, content.revisions.values()))
    if as_json:
        show_json(
            {
                "file": str(file),
                "form": "plain" if plain else "sealed",
                "complete": damage is None,
                "memories": len(content.revisions),
                "revisions": revisions,
                "damaged": content.damaged,
                "bytes": size,
            }
        )
        return
    click.echo(f"{len(content.revisions)} memories, {revisions} revisions, {size:,} bytes: {file}")
    if content.damaged:
        asking.say(f"Revisions of these memories do not open: {', '.join(content.damaged)}")
    if damage is not None:
        asking.say(f"This is what comes before the damage. {damage}")


def _tell_import(planned: importing.Plan, incoming: Incoming, bad: list[BadLine], dry_run: bool, as_json: bool) -> None:
    conflicts = planned.ids("conflict")
    if as_json:
        show_json(
            {
                "imported": not dry_run,
                "new": len(planned.ids("new")),
                "extended": len(planned.ids("extended")),
                "present": len(planned.ids("present")),
                "forgottenHere": len(planned.ids("forgotten")),
                "forgottenThere": incoming.forgotten,
                "revisions": len(planned.writes),
                "conflicts": conflicts,
                "damaged": incoming.damaged,
                "badLines": _line_fields(bad),
            }
        )
        return
    facts = [
        ("would be new" if dry_run else "new", len(planned.ids("new"))),
        ("would get more history" if dry_run else "got more history", len(planned.ids("extended"))),
        ("there already", len(planned.ids("present"))),
        ("forgotten here, and stay so", len(planned.ids("forgotten"))),
        ("forgotten there", incoming.forgotten),
        ("conflicts, left as they are here", len(conflicts)),
        ("with revisions that do not open", len(incoming.damaged)),
        ("lines left out", len(bad)),
    ]
    show_facts([(name, str(count)) for name, count in facts if count] or [("memories", "0")])
    for memory_id in conflicts:
        asking.say(f"Differs: {memory_id}")
    for memory_id in incoming.damaged:
        asking.say(f"A revision does not open: {memory_id}")


def _line_fields(bad: list[BadLine]) -> list[dict[str, Any]]:
    return [{"line": line.number, "problem": line.problem} for line in bad]
