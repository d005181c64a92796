"""What is true of the chunks of any document."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sqmd.ingest.chunk import ChunkOptions, chunk
from sqmd.ingest.parse import parse
from sqmd.ingest.read import decode, read_bytes
from sqmd.ingest.token_counts import WordCounts
from squirrel_mcp_embeddings.embedder import Embedder
from tests.house.sources import ROOT
from tests.real_model import real_model
from tests.sqmd.ingest.markdown import any_markdown, characters, check, uneven, words

COUNTERS = (words, characters, uneven)
options = st.builds(
    ChunkOptions,
    max_tokens=st.sampled_from([16, 20, 40, 64, 200]),
    min_chars=st.sampled_from([0, 20, 50, 200]),
    overlap_tokens=st.sampled_from([0, 3, 10, 30]),
    include_breadcrumb=st.booleans(),
)


@pytest.mark.parametrize("count", COUNTERS)
@given(text=any_markdown, chosen=options)
def test_chunks_are_lines_of_the_file_within_their_limits_and_leave_nothing_out(
    count: Callable[[str], int], text: str, chosen: ChunkOptions
) -> None:
    document = parse(text)
    chunks = chunk(document, "a", count, chosen)
    check(document, chunks, "a", count, chosen)
    assert chunks == chunk(parse(text), "a", count, chosen)


@given(text=st.text(max_size=400), chosen=options)
def test_it_is_so_of_any_text(text: str, chosen: ChunkOptions) -> None:
    document = parse(text)
    check(document, chunk(document, "a", words, chosen), "a", words, chosen)


@pytest.fixture(scope="module")
def model() -> object:
    with real_model() as embedder:
        yield embedder


def markdown_files() -> list[Path]:
    own = [path for path in ROOT.rglob("*.md") if not {".venv", ".hypothesis"} & set(path.parts)]
    installed = Path(pytest.__file__).parents[1]
    return sorted({*own, *installed.rglob("*.md")})


@pytest.mark.parametrize("chosen", [ChunkOptions(), ChunkOptions(64, 50, True, 16)], ids=["default", "small"])
def test_it_is_so_of_real_files_with_the_real_tokenizer(model: Embedder, chosen: ChunkOptions) -> None:
    count = WordCounts(model.count_tokens)
    files = markdown_files()
    assert len(files) > 20
    for path in files:
        document = parse(decode(path, read_bytes(path)))
        chunks = chunk(document, path.stem, count, chosen)
        check(document, chunks, path.stem, count, chosen)
        assert [each.token_count for each in chunks] == [model.count_tokens(each.text) for each in chunks]
