"""The bytes of a vector file: vectors, a second reader, and what is drawn at random."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.crypto.key_set import KeyRing, RetiredKey
from squirrel_mcp.crypto.keys import Dek
from squirrel_mcp_embeddings.vector_file import VectorFile
from squirrel_mcp_embeddings.vector_format import MAX_SEGMENT_BYTES, Layout, Rows, Seal
from tests.squirrel_mcp.crypto.vector_readers import flips, simple
from tests.squirrel_mcp_embeddings.vector_file_scene import ACCOUNT, MODEL, SHA256, Scene, key, listed, rows
from tests.vectors import independent_vector_file_reader as independent
from tests.vectors.making import vector_files as making
from tests.vectors.making.files import Case, unpack
from tests.vectors.making.seeded import Seeded

CASES = simple("vector_file.json")
MODEL_OF_CASE = (making.LAYOUT.model_id, making.LAYOUT.model_sha256, making.LAYOUT.dimension, making.LAYOUT.text_format)


def handle(case: Case, cache_dir: Path) -> VectorFile:
    *retired, current = [Dek(unpack(dek)) for dek in case["deks"]]
    ring = KeyRing(tuple(RetiredKey(dek, 1, bytes(32)) for dek in retired), current)
    about = (case["modelId"], unpack(case["modelSha256"]), case["dimension"], case["textFormat"])
    return VectorFile(cache_dir, unpack(case["accountId"]), lambda: ring, *about)


def written(case: Case) -> list[tuple[bytes, int, bytes]]:
    return [(bytes.fromhex(memory), revision, bytes.fromhex(vector)) for memory, revision, vector in case["rows"]]


def as_written(found: Rows) -> list[tuple[bytes, int, bytes]]:
    return [(memory, revision, struct.pack(f">{len(vector)}e", *vector)) for memory, revision, vector in listed(found)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_file_reads_exactly_as_the_vector_says(case: Case, tmp_path: Path) -> None:
    mine = handle(case, tmp_path)
    mine.path.parent.mkdir(mode=0o700)
    mine.path.write_bytes(unpack(case["file"]))
    mine.path.chmod(0o600)
    found = as_written(mine.load())
    assert mine.path.exists() == (case["expect"] == "ok")
    if case["expect"] == "ok":
        assert mine.path.name == case["fileName"]
        assert found == written(case)
    else:
        assert found == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_file_reads_the_same_for_another_implementation(case: Case) -> None:
    deks = [unpack(dek) for dek in case["deks"]]
    found = independent.read(unpack(case["file"]), unpack(case["accountId"]), deks, MODEL_OF_CASE)
    assert found == (written(case) if case["expect"] == "ok" else None)
    if case["expect"] == "ok":
        assert case["fileName"] == independent.file_name(deks[0], unpack(case["accountId"]), MODEL_OF_CASE)


def test_every_flipped_bit_drops_the_file(tmp_path: Path) -> None:
    path = None
    for bit, expect, case in flips("vector_file.json", "file"):
        mine = handle(case, tmp_path)
        path = path or mine.path
        path.parent.mkdir(mode=0o700, exist_ok=True)
        path.write_bytes(unpack(case["file"]))
        path.chmod(0o600)
        assert mine.load().size == 0 and expect == "dropped"
        assert not path.exists(), f"bit {bit}"


def test_what_is_written_is_what_the_second_reader_expects(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    mine = scene.handle(dimension=384)
    mine.append(rows(5, 1, dimension=384))
    mine.append(rows(2, 2, dimension=384))
    about = (MODEL, SHA256, 384, 1)
    raw = mine.path.read_bytes()
    found = independent.read(raw, ACCOUNT, [key("first").secret()], about)
    assert found == as_written(rows(5, 1, dimension=384)) + as_written(rows(2, 2, dimension=384))
    assert mine.path.name == independent.file_name(key("first").secret(), ACCOUNT, about)
    assert len(raw) == 80 + (4 + 28 + len(Layout(*about).metadata)) + (4 + 28 + 5 * 792) + (4 + 28 + 2 * 792)


def test_the_positive_vectors_are_what_the_code_writes() -> None:
    seal = Seal.make(making.DEK, making.ACCOUNT, lambda _: making.SALT)
    plaintexts = (making.LAYOUT.metadata, *making.LAYOUT.pack(making.ROWS))
    segments = (seal.segment(i, text, Seeded(f"vector_file.json nonce {i}")) for i, text in enumerate(plaintexts))
    raw = seal.header + b"".join(segments)
    assert [unpack(case["file"]) for case in CASES if case["name"] == "one_segment"] == [raw]


@pytest.mark.parametrize(
    "changed",
    [{"dimension": 0}, {"dimension": MAX_SEGMENT_BYTES // 2}, {"model_sha256": b"short"}, {"model_id": "m" * 65_536}],
)
def test_a_model_that_cannot_be_is_refused(changed: dict[str, Any]) -> None:
    fields = {"model_id": MODEL, "model_sha256": SHA256, "dimension": 4, "text_format": 1}
    with pytest.raises(ValueError, match="no such model"):
        Layout(**(fields | changed))


@given(raw=st.one_of(st.binary(max_size=200), st.binary(max_size=200).map(lambda tail: b"SQVC\1\0\0\0" + tail)))
def test_random_bytes_are_no_header(raw: bytes) -> None:
    assert Seal.open(raw, ACCOUNT, [key("first")]) is None


def test_neither_key_nor_vectors_show() -> None:
    seal = Seal.make(key("first"), ACCOUNT)
    assert seal._key.hex() not in repr(seal) and repr(seal._key) not in repr(seal)
