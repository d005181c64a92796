"""What was checked is what is handed over; everything else is refused by name."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from squirrel_mcp_embeddings import manifest, model_files
from squirrel_mcp_embeddings.model_files import LoadedFiles, ModelUnavailable
from tests.house.sources import ROOT

WEIGHTS = bytes(range(256)) * 40
TOKENIZER = b'{"a tokenizer": 1}'


class Home:
    """A folder with a manifest of two models and the files of both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        value = json.loads((ROOT / manifest.NAME).read_bytes())
        for model in value["models"]:
            model["weights"].update(size=len(WEIGHTS), sha256=hashlib.sha256(WEIGHTS).hexdigest())
            model["tokenizer"].update(size=len(TOKENIZER), sha256=hashlib.sha256(TOKENIZER).hexdigest())
            self.write(model["id"], model["weights"]["path"], WEIGHTS)
            self.write(model["id"], model["tokenizer"]["path"], TOKENIZER)
        self.value = value
        self.save()

    def write(self, model: str, path: str, content: bytes) -> None:
        target = self.folder / "model" / model / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def save(self) -> None:
        (self.folder / manifest.NAME).write_text(json.dumps(self.value), "utf-8")

    @property
    def weights(self) -> Path:
        return self.folder / "model/gte-small/onnx/model.onnx"

    @property
    def tokenizer(self) -> Path:
        return self.folder / "model/gte-small/tokenizer.json"

    def read(self, model_dir: Path | None = None) -> LoadedFiles:
        return model_files.read(model_dir, self.folder)

    def reason(self, model_dir: Path | None = None) -> str:
        with pytest.raises(ModelUnavailable) as raised:
            self.read(model_dir)
        return raised.value.reason


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def test_the_first_model_of_the_manifest_is_read(home: Home) -> None:
    files = home.read()
    assert (files.model.id, files.weights, files.tokenizer) == ("gte-small", WEIGHTS, TOKENIZER)


def test_the_next_model_is_read_where_the_first_is_not_there(home: Home) -> None:
    shutil.rmtree(home.folder / "model/gte-small")
    assert home.read().model.id == "all-MiniLM-L6-v2"


def test_the_next_model_is_read_while_the_first_is_being_fetched(home: Home) -> None:
    home.weights.rename(home.weights.with_name("model.onnx.part"))
    assert home.read().model.id == "all-MiniLM-L6-v2"


def test_a_size_that_is_not_known_yet_leaves_the_decision_to_the_hash(home: Home) -> None:
    home.value["models"][0]["weights"]["size"] = None
    home.save()
    assert home.read().weights == WEIGHTS
    home.weights.write_bytes(WEIGHTS + b"x")
    assert home.reason() == "integrity: model.onnx"


@pytest.mark.parametrize("bit", [0, 40_000, len(WEIGHTS) * 8 - 1])
def test_one_changed_bit_is_refused(home: Home, bit: int) -> None:
    altered = bytearray(WEIGHTS)
    altered[bit // 8] ^= 1 << bit % 8
    home.weights.write_bytes(altered)
    assert home.reason() == "integrity: model.onnx"


ALTERED: dict[str, Callable[[bytes], bytes]] = {
    "truncated": lambda content: content[:-1],
    "longer": lambda content: content + b"\0",
    "empty": lambda content: b"",
    "zeros of the same length": lambda content: bytes(len(content)),
}


@pytest.mark.parametrize("how", ALTERED)
def test_an_altered_file_is_refused_and_no_other_model_takes_its_place(home: Home, how: str) -> None:
    home.tokenizer.write_bytes(ALTERED[how](TOKENIZER))
    assert home.reason() == "integrity: tokenizer.json"


def test_two_files_that_changed_places_are_refused(home: Home) -> None:
    home.weights.write_bytes(TOKENIZER)
    home.tokenizer.write_bytes(WEIGHTS)
    assert home.reason() == "integrity: model.onnx"


def test_a_file_that_is_swapped_after_the_check_changes_nothing_that_was_handed_over(home: Home) -> None:
    files = home.read()
    home.weights.write_bytes(b"evil" * (len(WEIGHTS) // 4))
    assert hashlib.sha256(files.weights).digest() == files.model.weights.sha256


def test_a_file_that_is_swapped_again_and_again_is_handed_over_whole_or_refused(home: Home, full: bool) -> None:
    evil, stop = home.folder / "evil", threading.Event()

    def swap() -> None:
        good = True
        while not stop.is_set():
            good = not good
            evil.write_bytes(WEIGHTS if good else b"evil" * (len(WEIGHTS) // 4))
            os.replace(evil, home.weights)

    swapper = threading.Thread(target=swap)
    swapper.start()
    outcomes = set()
    try:
        for _ in range(3_000 if full else 300):
            try:
                assert home.read().weights == WEIGHTS
                outcomes.add("read")
            except ModelUnavailable as error:
                outcomes.add(error.reason)
    finally:
        stop.set()
        swapper.join()
    assert outcomes <= {"read", "integrity: model.onnx"}


def test_each_file_is_opened_once(home: Home) -> None:
    opened: list[str] = []
    watching = True

    def note(event: str, arguments: tuple[Any, ...]) -> None:
        # The buffered reader on top of a descriptor is an `open` of a number.
        if watching and event == "open" and isinstance(arguments[0], (str, os.PathLike)):
            opened.append(os.path.basename(arguments[0]))

    sys.addaudithook(note)  # cannot be taken away again, only silenced
    home.read()
    watching = False
    assert sorted(opened) == ["model-manifest.json", "model.onnx", "tokenizer.json"]


def test_no_manifest_means_no_model(home: Home) -> None:
    (home.folder / manifest.NAME).unlink()
    assert home.reason() == "manifest: model-manifest.json"


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"models": 7}'])
def test_a_manifest_that_is_none_means_no_model(home: Home, content: bytes) -> None:
    (home.folder / manifest.NAME).write_bytes(content)
    assert home.reason() == "manifest: model-manifest.json"


@pytest.mark.parametrize("path", ["../all-MiniLM-L6-v2/model.onnx", "/etc/hosts"])
def test_a_manifest_that_points_out_of_the_folder_means_no_model(home: Home, path: str) -> None:
    home.value["models"][0]["weights"]["path"] = path
    home.save()
    assert home.reason() == "manifest: model-manifest.json"


def test_an_endless_manifest_is_not_read_to_its_end(home: Home) -> None:
    with (home.folder / manifest.NAME).open("r+b") as file:
        file.truncate(1 << 40)
    assert home.reason() == "manifest: model-manifest.json"


def test_without_any_file_the_weights_of_the_first_model_are_missing(home: Home) -> None:
    shutil.rmtree(home.folder / "model")
    assert home.reason() == "missing: model.onnx"


def test_of_a_model_that_is_there_in_part_the_missing_file_is_named(home: Home) -> None:
    shutil.rmtree(home.folder / "model/gte-small")
    (home.folder / "model/all-MiniLM-L6-v2/tokenizer.json").unlink()
    assert home.reason() == "missing: tokenizer.json"


def test_a_link_out_of_the_folder_is_refused_even_to_the_right_bytes(home: Home, tmp_path: Path) -> None:
    home.weights.rename(tmp_path / "elsewhere")
    home.weights.symlink_to(tmp_path / "elsewhere")
    assert home.reason() == "integrity: model.onnx"


def test_a_folder_that_is_a_link_out_is_refused(home: Home, tmp_path: Path) -> None:
    home.weights.parent.rename(tmp_path / "elsewhere")
    home.weights.parent.symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert home.reason() == "integrity: model.onnx"


def test_the_folder_of_a_model_that_is_a_link_out_is_refused(home: Home, tmp_path: Path) -> None:
    (home.folder / "model/gte-small").rename(tmp_path / "elsewhere")
    (home.folder / "model/gte-small").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert home.reason() == "integrity: model.onnx"


def test_a_link_to_nothing_and_a_link_to_itself_are_refused(home: Home) -> None:
    home.weights.unlink()
    home.weights.symlink_to(home.weights.with_name("gone"))
    assert home.reason() == "missing: model.onnx"
    home.weights.unlink()
    home.weights.symlink_to(home.weights)
    assert home.reason() == "integrity: model.onnx"


def test_a_folder_in_place_of_a_file_is_refused(home: Home) -> None:
    home.weights.unlink()
    home.weights.mkdir()
    assert home.reason() == "integrity: model.onnx"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(home: Home) -> None:
    home.weights.unlink()
    os.mkfifo(home.weights)
    assert home.reason() == "integrity: model.onnx"


def test_an_endless_file_is_not_read(home: Home) -> None:
    home.value["models"][0]["weights"]["size"] = None
    home.save()
    with home.weights.open("r+b") as file:
        file.truncate(1 << 40)
    assert home.reason() == "integrity: model.onnx"


class TestAnotherFolder:
    """SQUIRREL_MEMORY_MODEL_DIR: files from elsewhere, judged by our own manifest."""

    @pytest.fixture
    def copy(self, home: Home, tmp_path: Path) -> Path:
        (home.folder / "model").rename(tmp_path / "copy")
        return tmp_path / "copy"

    def test_its_files_are_read(self, home: Home, copy: Path) -> None:
        assert home.read(copy).weights == WEIGHTS
        assert home.reason() == "missing: model.onnx"

    def test_it_may_itself_be_reached_through_a_link(self, home: Home, copy: Path, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(copy, target_is_directory=True)
        assert home.read(tmp_path / "link").weights == WEIGHTS

    def test_its_files_are_checked_like_our_own(self, home: Home, copy: Path) -> None:
        (copy / "gte-small/onnx/model.onnx").write_bytes(WEIGHTS[:-1] + b"x")
        assert home.reason(copy) == "integrity: model.onnx"

    def test_a_manifest_in_it_is_not_looked_at(self, home: Home, copy: Path) -> None:
        evil = b"evil"
        (copy / "gte-small/onnx/model.onnx").write_bytes(evil)
        value = json.loads((home.folder / manifest.NAME).read_bytes())
        value["models"][0]["weights"].update(size=len(evil), sha256=hashlib.sha256(evil).hexdigest())
        (copy / manifest.NAME).write_text(json.dumps(value), "utf-8")
        assert home.reason(copy) == "integrity: model.onnx"

    def test_one_that_is_not_there_is_missing(self, home: Home, tmp_path: Path) -> None:
        assert home.reason(tmp_path / "gone") == "missing: model.onnx"


def test_the_model_of_this_checkout_is_read_whole() -> None:
    files = model_files.read(None)
    assert len(files.weights) > 10_000_000
    assert hashlib.sha256(files.weights).digest() == files.model.weights.sha256
    assert hashlib.sha256(files.tokenizer).digest() == files.model.tokenizer.sha256


def test_the_tokenizer_alone_is_read_and_checked_whatever_the_weights_are(home: Home) -> None:
    home.weights.write_bytes(b"altered")
    assert model_files.find(None, home.folder).id == "gte-small"
    assert model_files.read_tokenizer(None, home.folder) == TOKENIZER
    home.tokenizer.write_bytes(b"altered")
    with pytest.raises(ModelUnavailable, match=r"integrity: tokenizer\.json"):
        model_files.read_tokenizer(None, home.folder)


def test_what_would_be_read_is_what_is_found(home: Home) -> None:
    assert [model.id for model in model_files.listed(home.folder)] == ["gte-small", "all-MiniLM-L6-v2"]
    home.weights.unlink()
    assert model_files.find(None, home.folder) == home.read().model
    shutil.rmtree(home.folder / "model")
    with pytest.raises(ModelUnavailable, match=r"missing: model\.onnx"):
        model_files.find(None, home.folder)
