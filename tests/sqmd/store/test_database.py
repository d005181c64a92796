"""The two tables: made once, stamped, and told apart from what is no index."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import lancedb
import numpy as np
import pytest

from sqmd.errors import DatabaseDamaged, DatabaseUnavailable, ModelMismatch, NewerFormat, NotIndexed
from sqmd.store import schema
from sqmd.store.database import Database, told
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
    assert other.files_at(other.paths()) == {"/notes/a": file_row("a")}
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


def test_a_later_format_is_refused_whatever_its_stamp_says_besides(tmp_path: Path) -> None:
    metadata = {b"sqmd": b'{"model": "fake", "dimension": 4, "format": 99, "colour": "blue"}'}
    found = Stamp.of(schema.chunks(STAMP).with_metadata(metadata))
    assert found == Stamp("fake", 4, 99)
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


DAMAGE: dict[str, Callable[[bytes], bytes | None]] = {
    "gone": lambda raw: None,
    "empty": lambda raw: b"",
    "half": lambda raw: raw[: len(raw) // 2],
    "other": lambda raw: bytes(byte ^ 0xA5 for byte in raw),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_whatever_file_of_it_is_damaged_is_told_as_such_or_does_no_harm(
    database: Database, tmp_path: Path, damage: str
) -> None:
    database.replace([file_row("a")], [chunk_row("a", "green tea " * 50)], {})
    database.fill({"a-0": np.array([1, 0, 0, 0], np.float32)})
    database.tidy()
    whole, copy = Path(database.location), tmp_path / "copy"
    damaged = 0
    for path in [path for path in whole.rglob("*") if path.is_file()]:
        shutil.copytree(whole, copy)
        content = DAMAGE[damage](path.read_bytes())
        there = copy / path.relative_to(whole)
        there.unlink() if content is None else there.write_bytes(content)
        try:
            found = Database.open(str(copy))
            assert _ids(found.by_words("tea", 5)) in (["a-0"], [])
            assert found.counts()[0] == len(found.files_at(found.paths())) and len(found.chunks(["a-0"])) < 2
            found.tidy()
        except DatabaseDamaged as error:
            damaged += 1
            assert "\n" not in str(error)
        except DatabaseUnavailable as error:
            assert "\n" not in str(error)
        except NotIndexed:
            assert damage == "gone"
        shutil.rmtree(copy)
    assert damaged


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        ("lance error: LanceError(IO): Too many open files (os error 24), /src/x.rs:1:2", "Too many open files"),
        ("Retryable commit conflict for version 4: This CreateIndex transaction", "another process wrote"),
        ("something new\nof many lines", "something new."),
        ("No space left on device (os error 28)", "no space left"),
    ],
)
def test_what_is_not_known_as_damage_does_not_advise_to_move_a_healthy_index_away(said: str, sentence: str) -> None:
    with pytest.raises(DatabaseUnavailable) as error, told("/notes/index"):
        raise RuntimeError(said)
    assert sentence in str(error.value) and "\n" not in str(error.value) and ".rs" not in str(error.value)


@pytest.mark.parametrize("left", ["chunks", "chunks of another model", "files"])
def test_what_a_kill_left_of_making_or_dropping_it_is_made_whole(database: Database, left: str) -> None:
    connection = lancedb.connect(database.location)
    connection.drop_table("chunks" if left == "files" else "files")
    if left == "chunks of another model":
        connection.drop_table("chunks")
        connection.create_table("chunks", schema=schema.chunks(Stamp("other", 8)))
    with pytest.raises(NotIndexed):
        Database.open(database.location)
    again = Database.create(database.location, STAMP)
    again.replace([file_row("a")], [chunk_row("a", "静かな庭で the cup")], {})
    assert _ids(again.by_words("庭", 5)) == ["a-0"]  # the full-text index is there: without it no such word is found


@pytest.mark.parametrize(
    "word",
    [
        "the",
        "静か",
        "da39a3ee5e6b4b0d3255bfef95601890afd80709",
        "getUserAuthenticationTokenFromRequestHeader",
        "e3b0" * 16,
    ],
)
def test_words_of_any_length_and_any_frequency_are_found(database: Database, word: str) -> None:
    database.replace([file_row("a")], [chunk_row("a", f"Here is {word} in a note.")], {})
    database.tidy()
    assert _ids(database.by_words(word, 5)) == ["a-0"]


def test_what_the_model_reads_nothing_in_is_not_handed_to_it_again(database: Database) -> None:
    database.replace([file_row("a")], [chunk_row("a", "one", 0), chunk_row("a", "two", 1)], {})
    database.fill({"a-0": None, "a-1": np.array([1, 0, 0, 0], np.float32)})
    assert database.without_vector() == [] and database.counts() == (1, 2, 1)
    assert _ids(database.by_meaning(np.array([0, 1, 0, 0], np.float32), 5)) == ["a-1"]


def test_files_are_found_by_what_they_lie_in_and_how_they_begin(database: Database) -> None:
    names = ["a/b.md", "a/b.md.md", "a.md", "ab/c.md", "a/%_'.md", "x.md"]
    database.touch([file_row(name) for name in names])
    assert database.paths() == sorted(f"/notes/{name}" for name in names)
    assert database.paths("/notes/a/%_'") == ["/notes/a/%_'.md"]
    assert set(database.files_below(["/notes/a", "/notes/x.md"])) == {f"/notes/{names[i]}" for i in (0, 1, 4, 5)}
    assert set(database.files_below(["/"])) == set(database.paths()) and database.files_below([]) == {}
    assert set(database.files_at(["/notes/x.md", "/notes/none"])) == {"/notes/x.md"}
    assert database.last_indexed() == 3.0 and database.failed() == {}


def test_beyond_ten_thousand_vectors_an_index_finds_what_comparing_with_all_does(database: Database) -> None:
    count = 10_050
    vectors = np.random.default_rng(1).normal(size=(count, 4)).astype(np.float32)
    rows = [chunk_row("a", "tea", number) for number in range(count)]
    database.replace([file_row("a")], rows, {row.chunk_id: vectors[i].tobytes() for i, row in enumerate(rows)})

    def indexed() -> list[list[str]]:
        return sorted(index.columns for index in database._chunks.list_indices())

    assert indexed() == [["text"]]
    database.tidy()
    assert indexed() == [["text"], ["vector"]]
    for query in vectors[:5]:
        cosines = vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)
        nearest = {f"a-{number}" for number in np.argsort(-cosines)[:10]}
        assert len(nearest & set(_ids(database.by_meaning(query, 10)))) >= 9


def test_another_process_that_makes_it_anew_is_noticed(database: Database) -> None:
    assert database.is_current()
    Database.drop(database.location)
    assert not database.is_current()
    Database.create(database.location, Stamp("other", 4))
    assert not database.is_current()
    shutil.rmtree(database.location)
    assert not database.is_current()


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
