"""/documents: the files of the index as they are, and no other file of the machine."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest

from sqmd.ingest import identity
from tests.sqmd.api.conftest import NOTES
from tests.sqmd.api.running import Running, config_for, running

FIELDS = {"file_id", "file_path", "file_hash", "chunk_count", "indexed_at", "status"}


def raw(web: httpx.Client, path: Path) -> httpx.Response:
    return web.get(f"/api/v1/documents/{identity.file_id(path)}/raw")


def test_documents_come_by_path_in_pages(web: httpx.Client) -> None:
    whole = web.get("/api/v1/documents").json()
    paths = [each["file_path"] for each in whole["documents"]]
    assert paths == sorted(paths) and len(paths) == len(NOTES)
    assert (whole["total"], whole["limit"], whole["offset"]) == (len(NOTES), 100, 0)
    assert all(each.keys() == FIELDS and each["indexed_at"].endswith("Z") for each in whole["documents"])
    pages = [web.get(f"/api/v1/documents?limit=2&offset={offset}").json()["documents"] for offset in (0, 2, 4, 6)]
    assert [len(page) for page in pages] == [2, 2, 1, 0]
    assert [each for page in pages for each in page] == whole["documents"]


@pytest.mark.parametrize("wrong", ["limit=abc", "limit=0", "limit=1001", "offset=-1", "offset=9999999999", "page=1"])
def test_pages_are_asked_for_strictly(web: httpx.Client, wrong: str) -> None:
    answer = web.get(f"/api/v1/documents?{wrong}")
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_input")


def test_a_document_has_its_chunks_in_order(own_web: httpx.Client, notes: Path) -> None:
    path = notes / "garden.md"
    found = own_web.get(f"/api/v1/documents/{identity.file_id(path)}").json()
    assert found.keys() == FIELDS | {"chunks", "error"}
    assert (found["status"], found["error"], found["chunk_count"]) == ("indexed", "", 3)
    lines = path.read_text("utf-8").split("\n")
    for chunk in found["chunks"]:
        assert "vector" not in chunk
        assert "\n".join(lines[chunk["line_start"] - 1 : chunk["line_end"]]) == chunk["text_raw"]
    assert [each["line_start"] for each in found["chunks"]] == [1, 3, 7]


def test_raw_is_the_text_on_disk_and_never_a_page(own_web: httpx.Client, notes: Path) -> None:
    path = notes / "garden.md"
    path.write_text("# Changed\n\n<script>alert(1)</script>\n", "utf-8")
    answer = raw(own_web, path)
    assert answer.text == path.read_text("utf-8")
    assert answer.headers["content-type"] == "text/markdown; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize("file_id", ["0" * 64, "x", "..%2F..%2Fetc%2Fpasswd", "'%20OR%20'1'='1", "%00", "é"])
def test_only_files_of_the_index_are_there(web: httpx.Client, file_id: str) -> None:
    for path in (f"/api/v1/documents/{file_id}", f"/api/v1/documents/{file_id}/raw"):
        answer = web.get(path)
        assert answer.status_code == 404
        assert answer.json()["error"] in ("not_in_index", "not_found")


def test_a_file_that_exists_and_is_not_indexed_is_not_there(own_web: httpx.Client, notes: Path) -> None:
    (notes / "new.md").write_text("new", "utf-8")
    assert raw(own_web, notes / "new.md").status_code == 404


def test_a_file_that_went_since_is_told(own_web: httpx.Client, notes: Path) -> None:
    (notes / "garden.md").unlink()
    answer = raw(own_web, notes / "garden.md")
    assert (answer.status_code, answer.json()["error"]) == (409, "unreadable")


def test_a_link_that_took_a_files_place_shows_nothing(own_web: httpx.Client, notes: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("canary", "utf-8")
    (notes / "garden.md").unlink()
    (notes / "garden.md").symlink_to(secret)
    answer = raw(own_web, notes / "garden.md")
    assert (answer.status_code, answer.json()["error"]) == (409, "unreadable")
    assert "canary" not in answer.text


def test_a_link_that_took_a_folders_place_shows_nothing(own_web: httpx.Client, notes: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "build.md").write_text("canary", "utf-8")
    (notes / "work").rename(tmp_path / "before")
    (notes / "work").symlink_to(outside, target_is_directory=True)
    assert raw(own_web, notes / "work" / "build.md").status_code == 409


def test_a_folder_that_is_reached_through_a_link_is_read(notes: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    linked.symlink_to(notes, target_is_directory=True)
    with running(config_for(linked)) as own, own.client() as web:
        own.service.index([linked])
        (notes / "garden.md").write_text("# Newer\n", "utf-8")
        assert raw(web, linked / "garden.md").text == "# Newer\n"
        answer = web.post("/api/v1/index/trigger", json={"paths": [str(linked / "work")]})
        assert answer.status_code == 202


def test_a_link_to_elsewhere_shows_what_was_indexed_through_it_and_no_more(
    own: Running, own_web: httpx.Client, notes: Path, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text("# Elsewhere\n\nIndexed through a link.\n", "utf-8")
    (notes / "link.md").symlink_to(elsewhere)
    own.service.index([notes])
    assert raw(own_web, notes / "link.md").text == elsewhere.read_text("utf-8")
    elsewhere.write_text("canary", "utf-8")
    assert raw(own_web, notes / "link.md").status_code == 409
