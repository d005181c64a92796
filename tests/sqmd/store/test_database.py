"""The two tables: made once, stamped, and told apart from what is no index."""

from __future__ import annotations

import shutil
from pathlib import Path

import lancedb
import numpy as np
import pytest

from sqmd.errors import DatabaseDamaged, DatabaseUnavailable, ModelMismatch, NewerFormat, NotIndexed
from sqmd.store import schema
from sqmd.store.database import Database
from sqmd.store.quoting import contains, literal, one_of
from sqmd.store.schema import ChunkRow, FileRow, Stamp

STAMP = Stamp("fake", 4)


def file_row(name: str) -> FileRow:
    return FileRow(name, f"/notes/{name}", "0" * 64, 1, 2, 1, 3.0, "indexed")


def chunk_row(name: str, text: str, index: int = 0) -> ChunkRow:
    return ChunkRow(
        f"{name}-{index}", name, f"/notes/{name}", "0" * 64, 1, "A > B", 2, "B", 0, index, text, text, 5, ["A"], 2, 1, 1
    )


def _ids(hits: list[tuple[str, float]]) -> list[str]:
    return [chunk_id for chunk_id, _ in hits]


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database.create(str(tmp_path / "index"), STAMP)


def test_before_the_first_index_there_is_none(tmp_path: Path) -> None:
    for location in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(NotIndexed, match="run sqmd index --path"):
            Database.open(str(location))
    assert not (tmp_path / "nowhere").exists()


def test_what_is_written_is_read_by_another_handle_at_once(database: Database) -> None:
    other = Database.open(database.location)
    database.replace([file_row("a")], [chunk_row("a", "green tea")], {})
    assert other.files() == {"/notes/a": file_row("a")}
    assert other.file("a") == file_row("a") and other.file("b") is None
    assert other.counts() == (1, 1, 0) and _ids(other.by_words("tea", 5)) == ["a-0"]
    database.fill({"a-0": np.array([1, 0, 0, 0], np.float32)})
    assert _ids(other.by_meaning(np.array([1, 0.1, 0, 0], np.float32), 5)) == ["a-0"] and other.without_vector() == []


def test_a_replaced_file_keeps_no_chunk_of_before(database: Database) -> None:
    database.replace([file_row("a")], [chunk_row("a", "one", 0), chunk_row("a", "two", 1)], {})
    database.replace([file_row("b")], [chunk_row("b", "three")], {})
    database.replace([file_row("a")], [chunk_row("a", "four")], {})
    assert [row["text"] for row in database.chunks_of("a")] == ["four"]
    assert database.by_words("two", 5) == [] and _ids(database.by_words("three", 5)) == ["b-0"]
    database.replace([file_row("a")], [], {})
    assert database.chunks_of("a") == []


def test_vectors_are_carried_over_by_text(database: Database) -> None:
    vector = np.array([0, 1, 0, 0], np.float32)
    database.replace([file_row("a")], [chunk_row("a", "same")], {"a-0": vector.tobytes()})
    assert database.counts() == (1, 1, 1)
    assert database.vectors_of(["a"]) == {"same": vector.tobytes()} and database.vectors_of([]) == {}


def test_chunks_without_a_file_are_seen_as_left_behind(database: Database) -> None:
    database.replace([file_row("a")], [chunk_row("a", "kept"), chunk_row("b", "left")], {})
    assert database.orphans() == {"b"}
    database.remove(database.orphans())
    assert database.orphans() == set() and database.counts()[1] == 1


def test_another_model_or_dimension_is_refused_with_the_command_that_helps(database: Database) -> None:
    for stamp in (Stamp("other", 4), Stamp("fake", 8)):
        with pytest.raises(ModelMismatch, match="sqmd index --force"):
            Database.create(database.location, stamp)


def test_a_later_format_is_refused(tmp_path: Path) -> None:
    location, stamp = str(tmp_path / "later"), Stamp("fake", 4, schema.FORMAT + 1)
    Database.create(location, stamp)
    with pytest.raises(NewerFormat):
        Database.open(location)


def test_somebody_elses_database_is_told_and_left_alone(tmp_path: Path) -> None:
    theirs = lancedb.connect(str(tmp_path))
    for name in ("chunks", "files"):
        theirs.create_table(name, data=[{"a": 1}])
    with pytest.raises(DatabaseDamaged):
        Database.open(str(tmp_path))
    with pytest.raises(DatabaseDamaged):
        Database.create(str(tmp_path), STAMP)
    assert theirs.open_table("chunks").count_rows() == 1


def test_truncated_data_is_told_in_one_sentence(database: Database) -> None:
    database.replace([file_row("a")], [chunk_row("a", "green tea " * 50)], {})
    for path in Path(database.location, "chunks.lance", "data").iterdir():
        path.write_bytes(path.read_bytes()[:64])
    with pytest.raises((DatabaseDamaged, DatabaseUnavailable)) as told:
        Database.open(database.location).by_words("tea", 5)
    assert "\n" not in str(told.value)


def test_a_dropped_database_can_be_made_with_another_model(database: Database) -> None:
    database.replace([file_row("a")], [chunk_row("a", "tea")], {})
    Database.drop(database.location)
    assert Database.create(database.location, Stamp("other", 8)).counts() == (0, 0, 0)


def test_deleting_the_folder_while_it_is_open_is_told(database: Database) -> None:
    database.replace([file_row("a")], [chunk_row("a", "tea")], {})
    shutil.rmtree(database.location)
    with pytest.raises((DatabaseDamaged, DatabaseUnavailable, NotIndexed)):
        database.counts()


def test_literals_mean_nothing_but_themselves() -> None:
    assert literal("it's \\ % _ \0") == "'it''s \\ % _ '"
    assert one_of("a", ["x", "y'z"]) == "a IN ('x', 'y''z')" and one_of("a", []) == "false"
    assert contains("path", "50%") == "contains(path, '50%')"
