"""`sqmd status`, `sqmd config`, and which settings count."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqmd.cli.exits import Exit
from sqmd.config import load

from .conftest import Run


def rows(out: str) -> dict[str, str]:
    return dict(line.split("\t", 1) for line in out.splitlines())


def test_status_tells_what_is_there(run: Run, indexed: Path, home: Path) -> None:
    (indexed / "bad.md").write_bytes(b"caf\xe9")
    run("index")
    found = rows(run("status").out)
    assert found["database"] == str(home / ".sqmd/lancedb") and found["watch dirs"] == str(indexed)
    assert (found["files"], found["chunks"], found["chunks with vectors"], found["errors"]) == ("2", "3", "3", "1")
    assert found["error"].startswith(str(indexed / "bad.md")) and found["embedder"] == "fake"
    assert run("status", "--json").json["errors"][0]["path"] == str(indexed / "bad.md")


def test_status_before_the_first_index_is_no_error(run: Run, notes: Path) -> None:
    ran = run("status")
    assert ran.code == 0 and "not indexed yet: run sqmd index --path DIR" in ran.out
    assert run("status", "--json").json["indexed"] is False


def test_a_damaged_database_is_one_line(run: Run, indexed: Path, home: Path) -> None:
    for manifest in (home / ".sqmd/lancedb").rglob("*.manifest"):
        manifest.write_bytes(b"")
    ran = run("status", "--json")
    assert ran.code == Exit.UNUSABLE and ran.err.count("\n") == 1 and "Traceback" not in ran.err


def test_config_writes_a_file_once_and_over_it_only_by_force(run: Run, home: Path) -> None:
    path = home / "my.yaml"
    assert run("config", "--init", path).code == 0
    assert load(path).config == load().config
    path.write_text("search:\n  rrf_k: 7\n", "utf-8")
    ran = run("config", "--init", path)
    assert ran.code == Exit.USAGE and "--force" in ran.err and "rrf_k: 7" in path.read_text("utf-8")
    assert run("config", "--init", path, "--force").code == 0 and "rrf_k: 60" in path.read_text("utf-8")


def test_config_shows_values_and_where_each_comes_from_and_no_key(
    run: Run, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = home / "my.yaml"
    path.write_text("search:\n  rrf_k: 7\napi:\n  api_key: verysecret\n", "utf-8")
    monkeypatch.setenv("SQMD_API_PORT", "9000")
    for args in (("config", "--config", path), ("--config", path, "config", "--show")):
        ran = run(*args)
        found = rows(ran.out)
        assert found["search.rrf_k"] == f"7\t{path}:2" and found["api.port"] == "9000\tSQMD_API_PORT"
        assert found["chunking.max_tokens"] == "512\tdefault" and "verysecret" not in ran.out
    assert run("config", "--config", path, "--json").json["api.api_key"]["value"] == "(set)"


@pytest.mark.parametrize("command", [("index",), ("search", "x"), ("context", "x"), ("serve",), ("mcp",), ("status",)])
def test_every_command_takes_a_file_and_says_in_one_line_what_is_wrong_with_it(
    run: Run, home: Path, command: tuple[str, ...]
) -> None:
    path = home / "my.yaml"
    path.write_text("search:\n  rrf_q: 7\n", "utf-8")
    for args in ((*command, "--config", path), ("--config", path, *command)):
        ran = run(*args)
        assert ran.code == Exit.USAGE and ran.err.startswith(f"{path}:2: search.rrf_q") and ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "args",
    [("config", "--force"), ("config", "--init", "--force"), ("config", "--init", "x", "--show"), ("nonsense",), ()],
)
def test_wrong_usage_is_told(run: Run, args: tuple[str, ...]) -> None:
    assert run(*args).code == Exit.USAGE
