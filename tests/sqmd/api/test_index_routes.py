"""/index: jobs in the background, inside watch_dirs only."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.sqmd.api.conftest import NOTES
from tests.sqmd.api.running import Running, config_for, running


def finished(web: httpx.Client, job_id: str) -> dict[str, Any]:
    """The job when it is over."""
    while True:
        job: dict[str, Any] = web.get(f"/api/v1/index/jobs/{job_id}").json()
        if job["status"] in ("done", "failed"):
            return job
        time.sleep(0.02)


def test_a_job_indexes_what_is_new(own_web: httpx.Client, notes: Path) -> None:
    (notes / "new.md").write_text("# New\n\nSomething about walruses.\n", "utf-8")
    (notes / "binary.md").write_bytes(b"\xff\x00\xfe")
    answer = own_web.post("/api/v1/index/trigger", json={})
    assert answer.status_code == 202
    assert answer.json() == {"job_id": answer.json()["job_id"], "status": "queued"}
    job = finished(own_web, answer.json()["job_id"])
    assert (job["status"], job["indexed"], job["skipped"], job["errors"]) == ("done", 1, len(NOTES), 1)
    assert job["started_at"] <= job["completed_at"]
    assert job["message"] == ""
    found = own_web.get("/api/v1/search?q=walruses&mode=fts").json()["results"]
    assert [each["heading_text"] for each in found] == ["New"]


def test_no_body_means_everything(own_web: httpx.Client) -> None:
    answer = own_web.post("/api/v1/index/trigger")
    assert finished(own_web, answer.json()["job_id"])["skipped"] == len(NOTES)


def test_one_folder_may_be_named_and_read_again(own_web: httpx.Client, notes: Path) -> None:
    asked = {"paths": [str(notes / "work")], "force": True}
    job = finished(own_web, own_web.post("/api/v1/index/trigger", json=asked).json()["job_id"])
    assert (job["indexed"], job["skipped"]) == (2, 0)


def test_jobs_are_listed_the_latest_first(own_web: httpx.Client) -> None:
    ids = []
    for _ in range(3):
        ids.append(own_web.post("/api/v1/index/trigger").json()["job_id"])
        finished(own_web, ids[-1])
    assert [each["job_id"] for each in own_web.get("/api/v1/index/jobs").json()["jobs"]] == ids[::-1]


def test_nothing_outside_of_the_folders_is_indexed(own_web: httpx.Client, notes: Path, tmp_path: Path) -> None:
    (notes / "out").symlink_to(tmp_path, target_is_directory=True)
    for path in ("/", "/etc", str(tmp_path), f"{notes}/..", f"{notes}/deep/../../index", f"{notes}2", "notes", "."):
        for paths in ([path], [str(notes), path]):
            answer = own_web.post("/api/v1/index/trigger", json={"paths": paths})
            assert (answer.status_code, answer.json()["error"]) == (422, "invalid_input"), path
    answer = own_web.post("/api/v1/index/trigger", json={"paths": [str(notes / "out")]})
    assert answer.status_code == 422
    assert own_web.get("/api/v1/index/jobs").json() == {"jobs": []}


@pytest.mark.parametrize("wrong", [{"paths": "x"}, {"paths": [""]}, {"paths": ["a\u0000b"]}, {"paths": [1]}, {"x": 1}])
def test_what_is_asked_is_checked(web: httpx.Client, wrong: dict[str, object]) -> None:
    answer = web.post("/api/v1/index/trigger", json=wrong)
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_input")


def test_a_job_that_fails_says_why(own_web: httpx.Client, notes: Path) -> None:
    asked = {"paths": [str(notes / "gone")]}
    job = finished(own_web, own_web.post("/api/v1/index/trigger", json=asked).json()["job_id"])
    assert job["status"] == "failed" and "gone" in job["message"]


def test_a_job_that_breaks_is_not_running_for_ever(
    own: Running, own_web: httpx.Client, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("canary")

    capfd.readouterr()
    monkeypatch.setattr(own.service.jobs, "_index", broken)
    job = finished(own_web, own_web.post("/api/v1/index/trigger").json()["job_id"])
    assert job["status"] == "failed" and "canary" not in job["message"]
    assert "canary" not in "".join(capfd.readouterr())


def test_an_unknown_job_is_not_there(web: httpx.Client) -> None:
    answer = web.get("/api/v1/index/jobs/nope")
    assert (answer.status_code, answer.json()["error"]) == (404, "not_in_index")


def test_the_status_counts(own: Running, own_web: httpx.Client) -> None:
    assert own_web.get("/api/v1/index/status").json() == {
        "fileCount": len(NOTES),
        "chunkCount": 7,
        "vectorCount": 6,  # the fake model does not read Japanese
        "watcherRunning": False,
        "dbPath": own.service.config.paths.db_path,
    }


def test_before_the_first_index_everything_says_so(notes: Path) -> None:
    with running(config_for(notes)) as own, own.client() as web:
        assert web.get("/api/v1/index/status").json()["fileCount"] == 0
        for path in ("search?q=x", "documents", f"documents/{'0' * 64}"):
            answer = web.get(f"/api/v1/{path}")
            assert (answer.status_code, answer.json()["error"]) == (409, "not_indexed")
            assert "sqmd index --path" in answer.json()["message"]
        job = finished(web, web.post("/api/v1/index/trigger").json()["job_id"])
        assert job["indexed"] == len(NOTES)
        assert web.get("/api/v1/search?q=tomatoes").json()["total"] > 0
