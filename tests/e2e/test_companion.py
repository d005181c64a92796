"""The companion through real processes and the real model: found by meaning, nothing lost, nothing left behind."""

from __future__ import annotations

import os
import platform
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from squirrel_mcp.memory import Memory
from squirrel_mcp_embeddings import model_files
from squirrel_mcp_embeddings.errors import ModelUnavailable
from squirrel_mcp_embeddings.manifest import Model
from tests.squirrel_mcp_embeddings import without_sockets

from . import server_process
from .companion import BY_BASE, BY_COMPANION, SERVE, Companion, ahead
from .conftest import Start
from .server_process import ROOT, ServerProcess

COFFEE = "Ana takes oat milk in her coffee"
ROUTER = "The router stands in the attic"
BIRTHDAY = "Tom was born on the ninth of May"
DRINK = "What does she like to drink in the morning?"  # shares no word with any of them


@pytest.fixture(scope="session")
def model() -> Model:
    """The model that users get. Without one these tests are skipped, and fail where CI is set."""
    try:
        return model_files.read(None).model
    except ModelUnavailable as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{error} Run scripts/fetch_model.py.")


@pytest.fixture
def companion(data_dir: Path, model: Model) -> Companion:
    return Companion(data_dir, model)


def fill(server: ServerProcess, *texts: str) -> list[str]:
    """Save, with an end behind which every memory has its vector; the ids."""
    server.stderr.wait_for(lambda line: line.startswith(b"memory: local embeddings"))
    ids = [str(server.call("save_memory", text=text)["id"]) for text in texts]
    server.call("search_memory", query="anything")
    return ids


def found(server: ServerProcess, query: str, **arguments: Any) -> list[str]:
    return [hit["text"] for hit in server.call("search_memory", query=query, **arguments)["hits"]]


class TestTheStartUpLine:
    """Said once, at every level, and right."""

    @pytest.mark.parametrize("level", ["debug", "info", "warning", "error", "critical"])
    def test_names_the_model(self, companion: Companion, level: str) -> None:
        self.check(companion, companion.ready, SQUIRREL_LOG_LEVEL=level)

    @pytest.mark.parametrize("level", ["debug", "critical"])
    @pytest.mark.parametrize("reason", ["off", "missing: model.onnx", "integrity: model.onnx", "runtime"])
    def test_names_the_reason(self, companion: Companion, reason: str, level: str) -> None:
        folder = companion.home / "elsewhere"
        folder.mkdir()
        variables = {"SQUIRREL_LOG_LEVEL": level}
        match reason.partition(":")[0]:
            case "off":
                variables["SQUIRREL_MEMORY_EMBEDDINGS"] = "0"
            case "missing":
                variables["SQUIRREL_MEMORY_MODEL_DIR"] = str(folder)
            case "integrity":
                variables["SQUIRREL_MEMORY_MODEL_DIR"] = str(folder)
                weights = self.copy_of_the_model(companion.model, folder)
                os.truncate(weights, 0)
                os.truncate(weights, companion.model.weights.size or 1)  # as large as it should be, and of zeros
            case "runtime":
                # What a wheel for another platform does, or one that does not find its libraries.
                (folder / "onnxruntime.py").write_text("raise ImportError('libonnxruntime.so: cannot open')")
                variables |= ahead(folder)
        self.check(companion, lexical(reason), **variables)

    def test_names_a_damaged_manifest(self, companion: Companion) -> None:
        folder = companion.home / "copy"
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / "squirrel_mcp_embeddings", folder / "squirrel_mcp_embeddings", ignore=ignore)
        (folder / "model-manifest.json").write_text('{"models": "all of them"}')
        self.check(companion, lexical("manifest: model-manifest.json"), **ahead(folder))

    def test_names_the_runtime_whatever_its_import_raises(self, companion: Companion) -> None:
        folder = companion.home / "elsewhere"
        folder.mkdir()
        (folder / "onnxruntime.py").write_text("raise OSError('a library of it was built for another processor')")
        self.check(companion, lexical("runtime"), **ahead(folder))

    def check(self, companion: Companion, line: bytes, **variables: str) -> None:
        with companion.serve(**variables) as server:
            server.stderr.wait_for(lambda each: each == line)
            server.call("save_memory", text=COFFEE)
            for _ in range(2):
                answer = server.call("search_memory", query="coffee")
            assert (answer["ranking"] == "hybrid") == (line == companion.ready)
            assert answer.get("note", "").endswith("this answer ranks by words only.") == (line != companion.ready)
            assert [hit["text"] for hit in answer["hits"]] == [COFFEE]
            assert server.end() == 0
            said = server.stderr.all().splitlines(keepends=True)
            assert said.count(line) == 1
            assert [each for each in said if b"embeddings" in each] == [line]
            assert len([each for each in said if b", search by words and meaning" in each]) == 1
            if variables.get("SQUIRREL_LOG_LEVEL") == "critical":
                assert len(said) == 2

    def copy_of_the_model(self, model: Model, folder: Path) -> Path:
        """The weights' path; the weights are still to be written."""
        weights, tokenizer = (folder / model.id / file.path for file in (model.weights, model.tokenizer))
        for path in (weights, tokenizer):
            path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / "model" / model.id / model.tokenizer.path, tokenizer)
        weights.touch()
        return weights


def lexical(reason: str) -> bytes:
    return f"memory: local embeddings were not loaded ({reason}); memory search is lexical only\n".encode()


def test_the_first_answers_are_those_of_the_base_and_wait_for_nothing(start: Start, companion: Companion) -> None:
    watched = f"""
import sys
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name in ("squirrel_mcp.service", "squirrel_mcp_embeddings.hybrid", "onnxruntime", "tokenizers", "numpy"):
            sys.stderr.write("importing " + name + "\\n")
            sys.stderr.flush()
sys.meta_path.insert(0, Watch())
{SERVE}
"""
    idle = start(code=watched)
    assert idle.end() == 0
    assert b"importing" not in idle.stderr.all()
    base = start()
    # A passphrase that never comes: no key is derived, no vault opened, no model loaded.
    command = f'"{sys.executable}" -c "import time; time.sleep(600)"'
    server = start(code=watched, SQUIRREL_PASSPHRASE=None, SQUIRREL_PASSPHRASE_COMMAND=command)
    assert server.initialize() == base.initialize()
    assert server.request("tools/list") == base.request("tools/list")
    assert server.request("resources/list") == base.request("resources/list")
    assert server.request("prompts/list") == base.request("prompts/list")
    assert server.end() == 0
    assert b"importing onnxruntime" not in server.stderr.all()


def test_what_shares_a_meaning_is_found_and_what_comes_nearest_is_told_apart(companion: Companion) -> None:
    with companion.serve() as server:
        fill(server, COFFEE, ROUTER, BIRTHDAY)
        answer = server.call("search_memory", query=DRINK, nearMisses=True)
        assert (answer["ranking"], answer["searched"]) == ("hybrid", 3)
        first, *others = answer["hits"]
        assert first["text"] == COFFEE and first["lexicalScore"] == 0 and "nearMiss" not in first
        assert first["semanticScore"] >= companion.model.min_similarity
        assert answer["total"] == 1 and [hit["nearMiss"] for hit in others] == [True, True]
        assert all(hit["semanticScore"] < companion.model.min_similarity for hit in others)
        assert found(server, DRINK) == [COFFEE]
        status = server.call("memory_status")
        assert (status["ranking"], status["model"], status["embedded"]) == ("hybrid", companion.model.id, 3)
        other_script = server.call("search_memory", query="Τι πίνει το πρωί;")
        assert (other_script["ranking"], other_script["hits"]) == ("lexical", [])
        assert (
            other_script["note"] == "The model does not read the script of this query: it was searched by words only."
        )


def test_a_command_searches_by_meaning_too(companion: Companion) -> None:
    for text in (COFFEE, ROUTER, BIRTHDAY):
        companion.run(BY_COMPANION, "add", text)
    answer = companion.run(BY_COMPANION, "search", DRINK)
    assert answer["ranking"] == "hybrid" and [hit["text"] for hit in answer["hits"]] == [COFFEE]
    assert companion.rows() == companion.memories()
    assert companion.run(BY_BASE, "search", DRINK, code=1)["ranking"] == "lexical"


@pytest.mark.anyio
async def test_the_base_the_companion_and_the_base_again_on_one_vault(companion: Companion) -> None:
    kept: dict[str, dict[str, Any]] = {}
    tools = []
    for code, text in ((server_process.SERVE, COFFEE), (SERVE, ROUTER), (server_process.SERVE, BIRTHDAY)):
        server = StdioServerParameters(
            command=sys.executable, args=["-c", code], env=companion.environment(), cwd=companion.home
        )
        async with Client(server) as client:
            tools.append([tool.model_dump() for tool in (await client.list_tools()).tools])
            saved = (await client.call_tool("save_memory", {"text": text, "tags": ["tag"]})).structured_content
            assert saved is not None and saved["status"] == "saved"
            listed = (await client.call_tool("list_memories", {})).structured_content
            assert listed is not None
            now = {memory["id"]: memory for memory in listed["memories"]}
            assert kept.items() <= now.items() and len(now) == len(kept) + 1
            kept = now
            hits = (await client.call_tool("search_memory", {"query": "coffee router born"})).structured_content
            assert hits is not None and hits["total"] == len(now)
    assert tools[0] == tools[1] == tools[2] and len(tools[0]) == 8


class TestForgetting:
    """No row is left of what is gone, whoever was told to forget it."""

    def test_by_the_tool_reaches_the_file_at_once(self, companion: Companion) -> None:
        with companion.serve() as server:
            coffee, router = fill(server, COFFEE, ROUTER)
            companion.wait_for_rows(coffee, router)
            server.call("forget_memory", id=coffee)
            assert companion.rows() == {router: 1}
            assert server.end() == 0
        assert companion.kept() == self.one_file(companion)

    @pytest.mark.parametrize("package", [BY_BASE, BY_COMPANION])
    def test_by_a_command_reaches_the_file_at_once_and_a_running_server(
        self, companion: Companion, package: str
    ) -> None:
        with companion.serve() as server:
            coffee, router, birthday = fill(server, COFFEE, ROUTER, BIRTHDAY)
            companion.wait_for_rows(coffee, router, birthday)
            companion.run(package, "forget", coffee, "--yes")
            assert companion.rows() == {}
            assert found(server, DRINK) == []  # it has heard of it, and writes what is left
            companion.wait_for_rows(router, birthday)
            assert server.end() == 0
        companion.run(package, "forget", router, "--yes")  # and while nobody runs
        assert companion.rows() == {} and companion.kept() == set()

    def test_where_the_model_is_not_loaded_reaches_the_file_as_well(self, companion: Companion) -> None:
        with companion.serve() as server:
            coffee, router = fill(server, COFFEE, ROUTER)
            companion.wait_for_rows(coffee, router)
        with companion.serve(SQUIRREL_MEMORY_EMBEDDINGS="0") as server:
            server.stderr.wait_for(lambda line: line == lexical("off"))
            server.call("forget_memory", id=coffee)
            assert coffee not in companion.rows()

    @pytest.mark.parametrize("package", [BY_BASE, BY_COMPANION])
    def test_the_whole_account_leaves_no_vectors(self, companion: Companion, package: str) -> None:
        companion.run(BY_COMPANION, "add", COFFEE)
        companion.run(BY_COMPANION, "search", DRINK)
        assert companion.kept() == self.one_file(companion)
        companion.run(package, "account", "delete", "--yes")
        assert companion.kept() == set()

    def one_file(self, companion: Companion) -> set[str]:
        (name,) = companion.kept()
        assert name.startswith("memory-vectors-") and name.endswith(".bin")
        return {name}


def test_two_processes_at_once_share_memories_and_vectors(companion: Companion) -> None:
    with companion.serve() as left, companion.serve() as right:

        def work(server: ServerProcess, texts: tuple[str, ...]) -> list[str]:
            return fill(server, *texts)

        with ThreadPoolExecutor(2) as threads:
            (coffee, router), (birthday,) = threads.map(work, (left, right), ((COFFEE, ROUTER), (BIRTHDAY,)))
        companion.wait_for_rows(coffee, router, birthday)
        assert found(left, DRINK) == found(right, DRINK) == [COFFEE]
        assert left.call("memory_status")["embedded"] == right.call("memory_status")["embedded"] == 3
        left.call("forget_memory", id=coffee)
        assert found(right, DRINK) == []
        assert found(right, "When is his birthday?") == [BIRTHDAY]
        assert left.end() == right.end() == 0
        assert left.stderr.all().count(companion.ready) == right.stderr.all().count(companion.ready) == 1
    assert companion.rows() == companion.memories() == {router: 1, birthday: 1}


ENDINGS = ["eof", pytest.param("sigterm", marks=pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals"))]
# Loading says that it has begun; then it goes on as ever, or for good.
LOADING = """
import sys, threading
from squirrel_mcp_embeddings import embedder
load = embedder.load
def loading(files):
    print("loading", flush=True)
    {then}
embedder.load = loading
from squirrel_mcp_embeddings.cli import main; main()
"""


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("then", ["return load(files)", "threading.Event().wait()"])
def test_an_end_while_the_model_is_loaded_waits_for_nothing_and_leaves_nothing_half_written(
    companion: Companion, ending: str, then: str
) -> None:
    with companion.serve(code=LOADING.format(then=then)) as server:
        memory = server.call("save_memory", text=COFFEE)["id"]
        server.stderr.wait_for(lambda line: line == b"loading\n")
        request = server.send_call("search_memory", query="coffee")
        if ending == "sigterm":
            server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0  # which looks at every byte on stdout
        if ending == "eof":
            assert server.answer(request)["id"] == request
    assert companion.memories() == {memory: 1}
    assert companion.rows().keys() <= {memory}
    assert not [name for name in companion.kept() if name.endswith(".new")]


@pytest.mark.parametrize("ending", ENDINGS)
def test_an_end_in_the_middle_of_embedding_keeps_what_was_done(companion: Companion, ending: str) -> None:
    vault = companion.open()
    now = datetime(2026, 3, 1, tzinfo=UTC)
    texts = [f"Note {number}: the boiler was looked after by a man from the village" for number in range(1_000)]
    vault.put_revisions([Memory(f"{n:032x}", text, now, now) for n, text in enumerate(texts, 1)])
    vault.close()
    with companion.serve() as server:
        while not companion.rows():
            server.request("ping")
        if ending == "sigterm":
            server.process.send_signal(signal.SIGTERM)
        assert server.end() == 0
    rows = companion.rows()
    assert rows.items() <= companion.memories().items() and len(rows) >= 100
    assert not [name for name in companion.kept() if name.endswith(".new")]


def test_a_runtime_that_breaks_down_is_told_once_without_a_word_of_what_it_read(companion: Companion) -> None:
    breaks = """
from squirrel_mcp_embeddings import runtime
run, calls = runtime.onnxruntime.InferenceSession.run, []
def breaking(self, outputs, feed, options):
    calls.append(1)
    if len(calls) > 2:
        raise RuntimeError("canarytext " + str(feed))
    return run(self, outputs, feed, options)
runtime.onnxruntime.InferenceSession.run = breaking
from squirrel_mcp_embeddings.cli import main; main()
"""
    with companion.serve(code=breaks, SQUIRREL_LOG_LEVEL="debug") as server:
        fill(server, f"canarytext {COFFEE}")
        for _ in range(3):
            answer = server.call("search_memory", query="canarytext in the morning")
        assert answer["ranking"] == "lexical" and answer["total"] == 1
        assert answer["note"] == "Search by meaning is not available (runtime): this answer ranks by words only."
        assert server.call("memory_status")["ranking"] == "lexical"
        assert server.end() == 0
        said = server.stderr.all()
        assert said.count(b"broke down") == 1 and b"canarytext" not in said
        line = b"memory: local embeddings broke down (embedding_failed); memory search is lexical only from now on\n"
        assert line in said.splitlines(keepends=True)


def test_neither_the_vector_file_nor_stderr_holds_what_was_said(companion: Companion) -> None:
    words = ("canarytext", "canarytag", "canarykeyword", "canaryentity", "canaryquery", "canarytopic", "canarycorrect")
    with companion.serve(SQUIRREL_LOG_LEVEL="debug") as server:
        (other,) = fill(server, "canarytext of the morning")
        fields = {"tags": ["canarytag"], "keywords": ["canarykeyword"], "entity": "canaryentity"}
        memory = server.call("save_memory", text="canarytext of the evening", **fields)["id"]
        server.call("update_memory", id=memory, text="canarycorrect of the night")
        for query in ("canaryquery", "canaryquery \ud83d\udc3f", "canaryquery " * 1_000, "[SEP] canaryquery"):
            server.call("search_memory", query=query, nearMisses=True, tags="canarytag")
        server.call("get_context", topic="canarytopic")
        companion.wait_for_rows(other, memory)
        assert server.end() == 0
        said = server.stderr.all()
    assert b"search_memory: ok" in said  # it did speak
    (name,) = companion.kept()
    written = {path.name: path.read_bytes() for path in companion.cache_dir.rglob("*") if path.is_file()}
    assert name in written
    for form in ((lambda word: word.encode()), (lambda word: word.encode("utf-16-le"))):
        forms = [form(word) for word in words]
        assert not [word for word in forms for content in (said, *written.values()) if word in content.lower()]


@pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() not in without_sockets.MACHINES,
    reason="needs seccomp, on a machine whose call numbers are known",
)
def test_without_a_network_everything_works_and_the_home_holds_nothing_of_anybody_else(companion: Companion) -> None:
    # The kernel ends the process the moment that one of its threads asks for a socket.
    code = f"from tests.squirrel_mcp_embeddings.without_sockets import forbid_sockets; forbid_sockets()\n{SERVE}"
    environ = companion.environment(ORT_DISABLE_TELEMETRY="0")
    # Where a user has it, and where the runtime would leave its files.
    del environ["SQUIRREL_MEMORY_CACHE_DIR"]
    assert "CI" not in environ and "XDG_CACHE_HOME" not in environ
    with ServerProcess(environ, code=code) as server:
        server.initialize()
        coffee, _ = fill(server, COFFEE, ROUTER)
        assert found(server, DRINK) == [COFFEE]
        assert server.call("update_memory", id=coffee, text=f"{COFFEE} and no sugar")["revision"] == 2
        assert found(server, DRINK) == [f"{COFFEE} and no sugar"]
        assert server.call("forget_memory", id=coffee)["status"] == "forgotten"
        assert found(server, DRINK) == []
        assert server.end() == 0
    folders = {path.relative_to(companion.home).parts[:2] for path in companion.home.rglob("*") if path.is_file()}
    assert {parts for parts in folders if parts[0] != "data"} == {(".cache", "squirrel-notes")}


def test_the_demo_leaves_nothing_in_the_home_of_whoever_runs_it(tmp_path: Path) -> None:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SQUIRREL_", "XDG_"))}
    subprocess.run(
        [sys.executable, "-m", "squirrel_mcp_embeddings", "demo"],
        env={**kept, "HOME": str(tmp_path)}, stdout=subprocess.DEVNULL, check=True,
    )  # fmt: skip
    assert list(tmp_path.rglob("*")) == []
