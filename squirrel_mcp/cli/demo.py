"""`demo`: the whole thing once, through a real MCP connection, in a vault that is thrown away afterwards.

Each step checks what it shows: a demonstration that only prints would also print when nothing works.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from squirrel_mcp.cli.client_config import own_launch, snippet_fields
from squirrel_mcp.cli.client_snippets import Launch, snippet
from squirrel_mcp.cli.demo_store import StoreView, files_with
from squirrel_mcp.cli.exits import Exit
from squirrel_mcp.cli.output import Column, json_option, show_boxed, show_json
from squirrel_mcp.cli.session import edition
from squirrel_mcp.settings import child_environment

if TYPE_CHECKING:
    from mcp import Client

_TIMEOUT = 60.0  # seconds for one call; on a busy machine the first one waits for the key derivation

_SAVED: tuple[dict[str, Any], ...] = (
    {"text": "Keep answers short, and use metric units.", "category": "instruction", "tags": ["style"]},
    {"text": "Ada cannot eat peanuts; her EpiPen is in the hall drawer.", "entity": "Ada", "tags": ["allergy"]},
    {"text": "The staging database runs on db2.internal, port 5433.", "entity": "staging", "category": "project"},
    {"text": "The guest wifi is called Acorn until the end of May.", "entity": "wifi"},
)
_CORRECTED = "The staging database runs on db3.internal, port 5433."
_QUESTIONS = ("What must Ada not eat?", "port of the staging database")
_IN_OTHER_WORDS = "wireless network name"  # not one of these is in the memory that it finds


class _Failed(Exception):
    """A step did not do what it says."""


class _Vault(NamedTuple):
    folder: Path
    passphrase: str

    def must_not_hold(self, step: str, wanted: list[bytes]) -> int:
        """How many files were searched; _Failed if one of them holds any of the bytes."""
        searched, found = files_with(self.folder, wanted)
        if found:
            raise _Failed(f"{step}: {', '.join(path.name for path in found)} holds what it must not hold.")
        return searched


class _Screen:
    """Shows what happens as it happens, or keeps it for one JSON object at the end."""

    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet
        self.steps: list[dict[str, Any]] = []

    def say(self, text: str) -> None:
        self.steps.append({"said": text})
        if not self._quiet:
            click.echo(f"{text}\n")

    def table(self, title: str, columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
        names = [column.title or "when" for column in columns]
        self.steps.append({"title": title, "rows": [dict(zip(names, row, strict=True)) for row in rows]})
        if not self._quiet:
            show_boxed(title, columns, rows)


@click.command()
@json_option
def demo(as_json: bool) -> int:
    """Show what it does, in a throwaway vault.

    Starts the server as an agent's program would, and shows what is saved, what the store sees of it, and how it is
    found, corrected and forgotten.
    """
    with tempfile.TemporaryDirectory(prefix="squirrel-demo-", ignore_cleanup_errors=True) as folder:
        started = time.monotonic()
        screen = _Screen(quiet=as_json)
        vault = _Vault(Path(folder), f"acorn {folder[-8:]} is for this demo only")
        problem = asyncio.run(_connect(vault, screen))
        if problem:
            click.echo(f"The demo failed. {problem}", err=True)
            return Exit.STORE
        seconds = time.monotonic() - started
    found = snippet("claude-desktop", Launch(*own_launch(), passphrase_from="keyring"), sys.platform)
    if as_json:
        show_json({"ok": True, "seconds": seconds, "steps": screen.steps, "clientConfig": snippet_fields(found)})
        return Exit.OK
    click.echo(f"All of it was checked, in {seconds:.1f} s; the vault of this demo is deleted.")
    click.echo(f"`{edition().command} init` makes yours, and prints what your client needs; for Claude Desktop:")
    click.echo(found.content, nl=False)
    return Exit.OK


async def _connect(vault: _Vault, screen: _Screen) -> str:
    """Start the server and show it; what went wrong, or ""."""
    from mcp import Client, MCPError, StdioServerParameters
    from mcp.client.stdio import stdio_client

    # -P: what lies in the current folder is not this program; where this one lies, its server does too.
    command, log = ["-P", "-m", edition().package], vault.folder / "stderr.log"
    server = StdioServerParameters(command=sys.executable, args=command, env=_environment(vault))
    try:
        with open(log, "w", encoding="utf-8") as errors:
            async with Client(stdio_client(server, errors), read_timeout_seconds=_TIMEOUT) as client:
                try:
                    await _show(client, vault, screen)
                except _Failed as failure:
                    return str(failure)
    except (MCPError, OSError, ExceptionGroup):
        last = log.read_text("utf-8", "replace").splitlines()[-1:] or ["It said nothing."]
        return f"The server does not answer. {last[0]}"
    return ""


def _environment(vault: _Vault) -> dict[str, str]:
    """Ours, but for the vault; the one of whoever runs the demo is not touched."""
    ours = {name: value for name, value in child_environment().items() if not name.startswith("SQUIRREL_")}
    here = str(Path(__file__).resolve().parents[2])
    return {
        **ours,
        "PYTHONPATH": os.pathsep.join(filter(None, (here, ours.get("PYTHONPATH")))),
        "SQUIRREL_DATA_DIR": str(vault.folder / "data"),
        "SQUIRREL_MEMORY_CACHE_DIR": str(vault.folder / "cache"),
        "SQUIRREL_PASSPHRASE": vault.passphrase,
    }


async def _show(client: Client, vault: _Vault, screen: _Screen) -> None:
    tools = await client.list_tools()
    screen.say(f"A client started the server and was offered {len(tools.tools)} tools.")

    ids = [(await _call(client, "save_memory", **memory))["id"] for memory in _SAVED]
    rows = [[memory.get("category", "fact"), memory.get("entity", ""), memory["text"]] for memory in _SAVED]
    screen.table("1. Saved", (Column("category"), Column("entity"), Column("text", long=True)), rows)

    with StoreView(vault.folder / "data") as store:
        records = store.records()
        if len(records) != len(_SAVED):
            raise _Failed(f"{len(records)} records are in the store, not {len(_SAVED)}.")
        columns = (Column("entry"), Column("id"), Column("time"), Column("bytes"), Column("ciphertext", long=True))
        rows = [[str(r.seq), r.memory_id, r.time, str(len(r.sealed)), r.ciphertext[:16].hex(" ", 4)] for r in records]
        screen.table("2. What the store sees of it", columns, rows)
        secrets = [word.encode() for memory in _SAVED for word in (memory["text"], *memory.get("tags", ()))]
        searched = vault.must_not_hold("Saved", [*secrets, b"db2.internal", b"peanuts", vault.passphrase.encode()])
        screen.say(f"Searched {searched} files for the texts, the tags and the passphrase: in none of them.")

        await _show_found(client, screen)
        steps = itertools.count(4)
        if edition().by_meaning:
            await _show_meaning(client, screen, next(steps))
        await _show_corrected(client, screen, next(steps), ids[2])
        await _show_forgotten(client, screen, next(steps), ids[3])
        gone = next(record.sealed for record in records if record.memory_id == ids[3][:8])
        if any(record.memory_id == ids[3][:8] for record in store.records()):
            raise _Failed("The forgotten record is still in the store.")
        searched = vault.must_not_hold("Forgotten", [gone[at : at + 32] for at in range(0, len(gone) - 32, 32)])
        screen.say(f"Searched {searched} files for its {len(gone)} sealed bytes: not one piece of 32 is left.")


async def _show_found(client: Client, screen: _Screen) -> None:
    rows = []
    for question in _QUESTIONS:
        answer = await _call(client, "search_memory", query=question, limit=1)
        if not answer["hits"]:
            raise _Failed(f"Nothing was found for: {question}")
        hit = answer["hits"][0]
        rows.append([question, f"{hit['lexicalScore']:.2f}", hit["text"]])
    screen.table("3. Found by words", (Column("asked"), Column("score"), Column("found", long=True)), rows)


async def _show_meaning(client: Client, screen: _Screen, step: int) -> None:
    deadline = time.monotonic() + _TIMEOUT
    while True:
        answer = await _call(client, "search_memory", query=_IN_OTHER_WORDS, limit=1)
        if answer["ranking"] == "hybrid" or time.monotonic() > deadline:
            break
        if (await _call(client, "memory_status"))["embedded"] == 0 and "not available" in answer["note"]:
            screen.say(f"{step}. {answer['note']}")
            return
        await asyncio.sleep(0.1)  # the model is loaded behind the answers
    hit = (answer["hits"] or [{"lexicalScore": 0, "semanticScore": 0, "text": ""}])[0]
    if hit["text"] != _SAVED[3]["text"] or hit["lexicalScore"]:
        raise _Failed(f"Nothing was found by meaning for: {_IN_OTHER_WORDS}")
    rows = [[_IN_OTHER_WORDS, f"{hit['lexicalScore']:.2f}", f"{hit['semanticScore']:.2f}", hit["text"]]]
    columns = (Column("asked"), Column("words"), Column("meaning"), Column("found", long=True))
    screen.table(f"{step}. Found by meaning, without a word in common", columns, rows)


async def _show_corrected(client: Client, screen: _Screen, step: int, memory_id: str) -> None:
    await _call(client, "update_memory", id=memory_id, text=_CORRECTED, reason="it moved")
    now = (await _call(client, "search_memory", query="db2 staging database", limit=1))["hits"][0]
    memory = await _call(client, "get_memory", id=memory_id, history=True)
    if now["id"] != memory_id or now["text"] != _CORRECTED or len(memory["history"]) != 1:
        raise _Failed("The corrected memory is not what is found, or its history is missing.")
    rows = [[str(each["revision"]), each["text"], each.get("reason", "")] for each in (memory, *memory["history"])]
    columns = (Column("revision"), Column("text", long=True), Column("why"))
    screen.table(f"{step}. Corrected, with its history", columns, rows)


async def _show_forgotten(client: Client, screen: _Screen, step: int, memory_id: str) -> None:
    query = "guest wifi Acorn"
    before = await _call(client, "search_memory", query=query)
    reply = await _call(client, "forget_memory", id=memory_id)
    after = await _call(client, "search_memory", query=query)
    gone = await client.call_tool("get_memory", {"id": memory_id})
    if len(before["hits"]) != 1 or reply["status"] != "forgotten" or after["hits"] or not gone.is_error:
        raise _Failed("The forgotten memory is still there.")
    rows = [
        [query, "before", str(len(before["hits"])), str(before["searched"])],
        [query, "after", str(len(after["hits"])), str(after["searched"])],
    ]
    screen.table(f"{step}. Forgotten", (Column("asked"), Column(""), Column("found"), Column("searched")), rows)


async def _call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    if result.is_error or not isinstance(result.structured_content, dict):
        said = " ".join(getattr(content, "text", "") for content in result.content)
        raise _Failed(f"{tool} answered: {said}")
    return result.structured_content
