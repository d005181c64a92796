"""What files and chunks are known by."""

from __future__ import annotations

import hashlib
from pathlib import Path

from sqmd.ingest.identity import chunk_id, file_id


def test_a_file_is_known_by_the_sha_256_of_its_absolute_path(tmp_path: Path) -> None:
    assert file_id(tmp_path / "ü.md") == hashlib.sha256(str(tmp_path / "ü.md").encode()).hexdigest()
    assert file_id(tmp_path / "x/../ü.md") == file_id(tmp_path / "ü.md")
    assert len(file_id(Path("\udce9.md"))) == 64


def test_every_place_of_a_chunk_has_an_id_of_its_own() -> None:
    places = [(Path(name), section, index) for name in ("a", "a1", "b") for section in range(12) for index in range(12)]
    ids = {chunk_id(*place) for place in places}
    assert len(ids) == len(places) and all(len(each) == 64 for each in ids)
    assert chunk_id(Path("a"), 1, 2) == chunk_id(Path("a").absolute(), 1, 2)
