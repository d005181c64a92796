"""/health and /metrics."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from sqmd.api.health import LastAnswer, states
from sqmd.api.metrics import prefers_text
from sqmd.config import Embeddings
from sqmd.service import Service
from tests.sqmd.api.running import Running, config_for, running
from tests.sqmd.fakes import Hanging

PROMETHEUS = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.4,*/*;q=0.1"


def test_health_tells_how_the_parts_are(own: Running, own_web: httpx.Client) -> None:
    found = own_web.get("/api/v1/health").json()
    assert found.pop("uptime_seconds") >= 0
    assert found == {"status": "ok", "db": "ok", "embedder": "ok", "watcher": "stopped"}
    own.service.watching = True
    assert own_web.get("/api/v1/health").json()["watcher"] == "running"


def test_health_tells_what_the_last_search_by_meaning_found_of_the_embedder(
    own: Running, own_web: httpx.Client
) -> None:
    def embedder_after(mode: str, query: str = "tomatoes", *, down: bool) -> tuple[str, str]:
        own.service.embedder.down = down  # type: ignore[attr-defined]
        own_web.get("/api/v1/search", params={"q": query, "mode": mode})
        found = own_web.get("/api/v1/health").json()
        return found["status"], found["embedder"]

    for mode in ("hybrid", "vector"):
        assert embedder_after(mode, down=True) == ("degraded", "embedder_down")
        assert embedder_after("fts", down=False) == ("degraded", "embedder_down")  # which asked it nothing
        assert embedder_after(mode, "京都の庭", down=False) == ("degraded", "embedder_down")  # nor did this
        assert embedder_after(mode, down=False) == ("ok", "ok")


def test_an_embedder_that_hangs_keeps_searches_by_meaning_waiting_and_nothing_else(notes: Path) -> None:
    embedder = Hanging()
    with (
        running(config_for(notes), embedder) as own,
        own.client() as web,
        ThreadPoolExecutor(8) as pool,
    ):
        own.service.index([notes])
        try:
            searches = [pool.submit(web.get, "/api/v1/search?q=tomatoes") for _ in range(8)]
            for _ in searches:
                assert embedder.asked.acquire(timeout=60)
            for path in ("health", "documents", "index/status", "index/jobs", "metrics"):
                assert web.get(f"/api/v1/{path}").status_code == 200
            assert web.get("/api/v1/health").json()["embedder"] == "ok"
            assert not any(each.done() for each in searches)
        finally:
            embedder.go.set()
        assert {each.result().status_code for each in searches} == {200}


def test_health_neither_loads_nor_asks_what_computes_vectors(notes: Path) -> None:
    with running(config_for(notes), Hanging()) as own, own.client() as web:
        assert web.get("/api/v1/health").json()["embedder"] == "ok"
        assert not own.service.embedder.asked.acquire(blocking=False)  # type: ignore[attr-defined]


def test_health_tells_of_a_model_that_does_not_exist(notes: Path) -> None:
    config = replace(config_for(notes), embeddings=Embeddings(model="no/such"))
    found = states(Service(config), LastAnswer())
    assert (found["status"], found["embedder"]) == ("degraded", "config")


def test_health_tells_of_a_damaged_database(own: Running, own_web: httpx.Client) -> None:
    for each in Path(own.service.config.paths.db_path).glob("*.lance/data/*"):
        each.write_bytes(b"\0" * 100)
    found = own_web.get("/api/v1/health").json()
    assert (found["status"], found["db"]) == ("degraded", "database_damaged")
    refused = own_web.get("/api/v1/search?q=tomatoes")
    assert (refused.status_code, refused.json()["error"]) == (503, "database_damaged")


def test_health_tells_that_nothing_is_indexed_yet(notes: Path) -> None:
    with running(config_for(notes)) as own, own.client() as web:
        found = web.get("/api/v1/health").json()
        assert (found["status"], found["db"]) == ("ok", "not_indexed")
        shutil.rmtree(notes)


def test_metrics_count_and_measure(own_web: httpx.Client) -> None:
    for mode in ("hybrid", "fts", "fts"):
        own_web.get(f"/api/v1/search?q=tomatoes&mode={mode}")
    own_web.get("/api/v1/search")
    own_web.get("/api/v1/documents/secret-id")
    found = own_web.get("/api/v1/metrics").json()
    assert found["searches"] == {"hybrid": 1, "vector": 0, "fts": 2}
    assert found["search_ms"]["count"] == 3 and found["results"] >= 3
    assert found["uptime_seconds"] > 0
    counts = {(each["method"], each["route"], each["status"]): each["count"] for each in found["requests"]}
    assert counts == {
        ("GET", "/api/v1/search", 200): 3,
        ("GET", "/api/v1/search", 422): 1,
        ("GET", "/api/v1/documents/{file_id}", 404): 1,
    }
    (times,) = [each for each in found["latency_ms"] if each["route"] == "/api/v1/search"]
    assert 0 < times["p50"] <= times["p90"] <= times["p95"] <= times["p99"] <= times["max"]
    assert times["count"] == 4


def test_prometheus_reads_the_same(own_web: httpx.Client) -> None:
    own_web.get("/api/v1/search?q=tomatoes")
    answer = own_web.get("/api/v1/metrics", headers={"Accept": PROMETHEUS})
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    families = {each.name: each for each in text_string_to_metric_families(answer.text)}
    (request,) = families["sqmd_requests"].samples
    assert request.labels == {"method": "GET", "route": "/api/v1/search", "status": "200"} and request.value == 1
    assert {each.labels.get("quantile") for each in families["sqmd_request_seconds"].samples} == {
        "0.5", "0.9", "0.95", "0.99", None,
    }  # fmt: skip
    assert families["sqmd_uptime_seconds"].samples[0].value > 0


@pytest.mark.parametrize(
    ("accept", "text"),
    [("", False), ("*/*", False), ("application/json", False), ("text/plain", True), (PROMETHEUS, True),
     ("text/*;q=0.5, application/json;q=0.4", True), ("text/plain;q=0.1, application/json", False),
     ("text/plain;q=x", False), ("text/plain;q=0", False), (",,;;", False)],
)  # fmt: skip
def test_accept_decides_which(accept: str, text: bool) -> None:
    assert prefers_text(accept) is text
