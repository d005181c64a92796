"""`status`: whether the vault opens, what is in it, and the fingerprint that two devices can compare."""

from __future__ import annotations

from typing import Any

import click

from squirrel_mcp.advice import explained
from squirrel_mcp.cli.exits import Exit, of
from squirrel_mcp.cli.output import json_option, local_time, show_facts, show_json
from squirrel_mcp.cli.session import PassphraseSource, edition, new_service, open_vault, require_vault, retry
from squirrel_mcp.errors import ConfigurationError, SquirrelError
from squirrel_mcp.memory import format_time
from squirrel_mcp.service import Status
from squirrel_mcp.settings import Settings


@click.command()
@click.option(
    "--at", "seq", type=click.IntRange(min=1), metavar="SEQ", help="Print the fingerprint as it was at this entry."
)
@json_option
def status(seq: int | None, as_json: bool) -> int:
    """Tell whether the vault opens, and what is in it.

    Two devices that print the same fingerprint for the same entry have seen the same history.
    """
    settings = Settings.read()
    if seq is not None:
        with open_vault(settings, may_be_offline=True) as vault:
            fingerprint = vault.fingerprint(seq)
        if as_json:
            show_json({"seq": seq, "fingerprint": fingerprint})
        else:
            click.echo(fingerprint)
        return Exit.OK
    require_vault(settings)
    source = PassphraseSource(settings)
    service = new_service(settings, source)
    code = Exit.OK
    try:
        retry(source, service.open)
    except SquirrelError as error:
        code = of(error)
    try:
        if code is Exit.OK and edition().by_meaning:
            service.warm()  # whether there is a model is part of the answer
        found = service.status()
    finally:
        service.close()
    if found.problem is not None and code is Exit.OK:
        code = Exit.STORE
    key_id = _key_id(settings)
    if as_json:
        show_json(_fields(found, key_id))
    else:
        show_facts(_facts(found, key_id))
    return code


def _key_id(settings: Settings) -> str | None:
    """The public part of the API key in use; None without a server, or for a key that is none."""
    if settings.api_key is None:
        return None
    from squirrel_mcp.sync.api_key import ApiKey

    try:
        return ApiKey(settings.api_key).id
    except ConfigurationError:
        return None


def _is_stale(found: Status) -> bool:
    """Whether it is told from what this device has seen, without having asked now."""
    return found.problem is not None and found.problem[0] == "stale"


def _fields(found: Status, key_id: str | None) -> dict[str, Any]:
    """All keys are always there; what is not known is null."""
    problem = {"code": found.problem[0], "message": explained(*found.problem, serving=False)} if found.problem else None
    return {
        "unlocked": found.unlocked,
        "place": found.place,
        "keyId": key_id,
        "problem": problem,
        "total": found.total,
        "counts": found.counts,
        "damaged": found.damaged,
        "fingerprint": found.fingerprint or None,
        "recoveryCode": found.recovery_code if found.unlocked else None,
        "lastSync": format_time(found.last_sync) if found.last_sync else None,
        "stale": _is_stale(found),
        "lastExport": format_time(found.last_export) if found.last_export else None,
        "ranking": found.ranking,
        "model": found.model,
        "embedded": found.embedded,
        "version": found.version,
    }


def _facts(found: Status, key_id: str | None) -> list[tuple[str, str]]:
    facts = [("vault", found.place), ("API key", key_id or ""), ("unlocked", "yes" if found.unlocked else "no")]
    if found.problem:
        facts.append(("problem", explained(*found.problem, serving=False)))
    if found.unlocked:
        if _is_stale(found):
            facts.append(("as of", local_time(found.last_sync) if found.last_sync else "unknown"))
        counts = ", ".join(f"{count} {category}" for category, count in found.counts.items())
        facts += [
            ("memories", f"{found.total} ({counts})" if counts else str(found.total)),
            ("damaged", ", ".join(found.damaged)),
            ("fingerprint", found.fingerprint),
            ("recovery code", "yes" if found.recovery_code else "no: make one with `squirrel-mcp recovery new`"),
            ("last export", local_time(found.last_export) if found.last_export else "never"),
            ("ranking", f"{found.ranking} ({found.model})" if found.model else found.ranking),
            ("embedded", str(found.embedded) if found.model else ""),
        ]
    return [*facts, ("version", found.version)]
