"""The TypeScript SDK's client and the Inspector's command line against a real process."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tests.squirrel_mcp.mcp_server.schema_lint import lint

from .conftest import PASSPHRASE
from .server_process import PATIENCE, SERVE, environment

pytestmark = pytest.mark.network

NODE = Path(__file__).with_name("node")
SERVER = [sys.executable, "-c", SERVE]


@pytest.fixture(scope="session")
def clients(request: pytest.FixtureRequest) -> Path:
    """The folder with the clients, installed as locked. Without node one line says so; in CI that is a failure."""
    lock, stamp = NODE / "package-lock.json", NODE / "node_modules" / "installed-from"
    if stamp.exists() and stamp.read_bytes() == lock.read_bytes():
        return NODE
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        missing(request, "there is no node here")
    install = subprocess.run(
        [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=NODE, capture_output=True, check=False
    )
    if install.returncode != 0:
        missing(request, "npm could not install them")
    stamp.write_bytes(lock.read_bytes())
    return NODE


def missing(request: pytest.FixtureRequest, why: str) -> NoReturn:
    said = f"The TypeScript and Inspector clients were NOT tested: {why}."
    if os.environ.get("CI"):
        pytest.fail(said)
    if (reporter := request.config.pluginmanager.get_plugin("terminalreporter")) is not None:
        reporter.write_line(f"\n{said}")
    pytest.skip(said)


def run(command: list[str], data_dir: Path) -> subprocess.CompletedProcess[bytes]:
    environ = environment(data_dir, SQUIRREL_PASSPHRASE=PASSPHRASE)
    return subprocess.run(command, env=environ, cwd=data_dir.parent, capture_output=True, timeout=PATIENCE, check=False)


def inspect(clients: Path, data_dir: Path, *arguments: str) -> Any:
    """What the Inspector's command line prints."""
    cli = clients / "node_modules" / "@modelcontextprotocol" / "inspector-cli" / "build" / "cli.js"
    result = run(["node", str(cli), "--cli", sys.executable, "-m", "squirrel_mcp.mcp_server", *arguments], data_dir)
    assert result.returncode == 0, result.stderr.decode()
    return json.loads(result.stdout)


def test_the_typescript_client_uses_everything(clients: Path, data_dir: Path) -> None:
    result = run(["node", str(clients / "day_of_use.mjs"), *SERVER], data_dir)
    assert result.returncode == 0, result.stderr.decode()
    assert result.stderr == b""  # Ajv warns of schemas that it does not know
    said = json.loads(result.stdout)
    assert said["problems"] == []
    assert len(said["tools"]) == 8
    assert said["saved"]["status"] == "saved"
    assert (said["updated"]["status"], said["updated"]["revision"]) == ("updated", 2)
    assert (said["conflict"]["status"], said["conflict"]["current"]["revision"]) == ("conflict", 2)
    (hit,) = said["found"]["hits"]
    assert (hit["text"], hit["semanticScore"], hit["tags"]) == ("The router is 10.0.9.1 👩\u200d💻", None, ["home"])
    assert [old["revision"] for old in said["got"]["history"]] == [1]
    assert said["resource"]["id"] == said["saved"]["id"] == said["listed"]["memories"][0]["id"]
    assert said["refused"]["isError"] and said["refused"]["content"][0]["text"].startswith("tags must be")
    assert said["half"]["isError"] and said["half"]["content"][0]["text"].startswith("text holds half")
    assert (said["missing"], said["templates"]) == (-32602, ["memory://{id}"])
    assert said["prompts"] == ["recall", "remember"] and "the router" in said["prompt"]
    assert (said["forgotten"]["status"], said["status"]["total"]) == ("forgotten", 0)


def test_the_inspector_lists_calls_and_reads(clients: Path, data_dir: Path) -> None:
    listed = inspect(clients, data_dir, "--method", "tools/list")["tools"]
    assert [fault for tool in listed for fault in lint(tool)] == []
    arguments = ["--tool-arg", "text=likes tea", 'tags=["drinks","home"]', "entity=Ada"]
    called = inspect(clients, data_dir, "--method", "tools/call", "--tool-name", "save_memory", *arguments)
    saved = called["structuredContent"]
    assert saved["status"] == "saved"
    query = ["--tool-name", "search_memory", "--tool-arg", "query=tea", "limit=3", "nearMisses=true"]
    (hit,) = inspect(clients, data_dir, "--method", "tools/call", *query)["structuredContent"]["hits"]
    assert (hit["tags"], hit["entity"]) == (["drinks", "home"], "Ada")
    read = inspect(clients, data_dir, "--method", "resources/read", "--uri", f"memory://{saved['id']}")
    assert json.loads(read["contents"][0]["text"])["text"] == "likes tea"
    assert len(inspect(clients, data_dir, "--method", "prompts/list")["prompts"]) == 2
