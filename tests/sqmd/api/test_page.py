"""The search page in a real browser: what a person types, sees and presses."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.sqmd.api.conftest import write_notes
from tests.sqmd.api.running import Running, config_for, running
from tests.sqmd.browser import Browser, browser, driver, needs_chromium
from tests.sqmd.fakes import FakeEmbedder

HOSTILE_HTML = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 1'>"
    "<svg onload='window.hacked = 1'></svg><iframe srcdoc='<script>parent.hacked=1</script>'></iframe>"
)
HOSTILE = (
    f"# Walrus {HOSTILE_HTML}\n\nwalrus {HOSTILE_HTML}\n\n[walrus](javascript:window.hacked=1)\n\n"
    "</span></button></li><h1>walrus</h1> &lt;b&gt; \u202e\u2028 {{7*7}} ${window.hacked=1}\n"
)
HOSTILE_NAME = "<img src=x onerror=window.hacked=1>.md"

FOCUS = "return document.activeElement.id || document.activeElement.className || document.activeElement.tagName"
CARDS = "return [...document.querySelectorAll('#results button')].map((each) => each.innerText)"
FOUND = "return document.querySelector('#results button') && document.getElementById('message').textContent"
# Every text that is seen, with how far it stands out from what is behind it (WCAG 2, contrast ratio).
CONTRAST = """
const parse = (text) => text.match(/[\\d.]+/g).map(Number);
const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
  .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
  .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const behind = (node) => {
  for (let each = node; each; each = each.parentElement) {
    const colour = parse(getComputedStyle(each).backgroundColor);
    if (colour.length < 4 || colour[3] > 0) return colour;
  }
};
const found = [];
for (const node of document.querySelectorAll('body *')) {
  const own = [...node.childNodes].some((each) => each.nodeType === 3 && each.data.trim());
  if (!own || !node.checkVisibility() || node.closest('datalist, noscript, option')) continue;
  const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))];
  found.push([(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05), node.tagName + '.' + node.className]);
}
return found;
"""


@pytest.fixture(scope="module")
def chromedriver() -> Iterator[str]:
    needs_chromium()
    with driver() as found:
        yield found


@pytest.fixture
def window(chromedriver: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A window, about which the browser has nothing to complain in the end."""
    with browser(chromedriver, tmp_path_factory.mktemp("profile")) as found:
        found.look()
        yield found
        assert found.complaints() == []


def search(window: Browser, query: str) -> list[str]:
    """Type it; the texts of the results."""
    window.type(query)
    window.until(FOUND)
    cards: list[str] = window.script(CARDS)
    return cards


def test_what_is_typed_is_found_with_breadcrumb_lines_and_marked_words(window: Browser, server: Running) -> None:
    window.open(server.address)
    assert window.script(FOCUS) == "query"
    cards = search(window, "tomatoes evening")
    assert cards[0].startswith("Garden > Tomatoes\n")
    assert "garden.md · lines 3–5 · " in cards[0]
    marked = window.script("return [...document.querySelectorAll('li:first-child mark')].map((each) => each.innerText)")
    assert marked == ["Tomatoes", "Tomatoes", "evening"]
    assert window.script("return document.getElementById('message').textContent").startswith("6 results in ")


def test_the_snippet_is_where_the_longest_word_is(window: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "long.md").write_text(
        "# Long\n\n" + "A little of this and that. " * 30 + "A walrus at the end.\n", "utf-8"
    )
    with running(config_for(folder)) as own:
        own.service.index([folder])
        window.open(own.address)
        (card,) = search(window, "a walrus and that")
        snippet = card.split("\n", 2)[2]
        assert snippet.startswith("… ") and "A walrus at the end." in snippet and len(snippet) < 320
        marked = window.script(
            "return [...new Set([...document.querySelectorAll('mark')].map((each) => each.innerText))]"
        )
        assert set(marked) == {"walrus", "and", "that"}


@pytest.mark.parametrize("query", ['"C++"', "it's -O3", "100%_x", "京都", "[(", "\\"])
def test_odd_queries_are_answered(window: Browser, server: Running, query: str) -> None:
    window.open(server.address)
    window.type(query)
    said = window.until("return document.getElementById('message').textContent")
    assert " result" in said
    assert window.script("return document.getElementById('message').className") == ""


def test_a_result_opens_the_file_at_its_lines(window: Browser, server: Running) -> None:
    window.open(server.address)
    search(window, "beans")
    window.script("document.querySelector('#results button').click()")
    window.until("return document.querySelector('dialog[open] .here')")
    here = window.script("return [...document.querySelectorAll('.here')].map((each) => Number(each.dataset.line))")
    assert here == [7, 8, 9]
    lines = window.script("return [...document.querySelectorAll('.line span:last-child')].map((e) => e.textContent)")
    assert "\n".join(line.rstrip() for line in lines).startswith("# Garden\n\n## Tomatoes\n\nTomatoes want")
    assert window.script("return document.getElementById('viewer-title').textContent").endswith("garden.md")


def test_a_place_far_down_in_a_long_file_is_in_sight(window: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    lines = ["# Long", *(f"line {number}" for number in range(2, 12_000))]
    lines[9_000:9_000] = ["", "## Needle", "", "walrus", ""]
    (folder / "long.md").write_text("\n".join(lines), "utf-8")
    with running(config_for(folder)) as own:
        own.service.index([folder])
        window.open(own.address)
        search(window, "walrus")
        window.script("document.querySelector('#results button').click()")
        window.until("return document.querySelector('dialog[open] .here')")
        box = window.script(
            "const at = document.querySelector('.here').getBoundingClientRect();"
            "const all = document.getElementById('lines').getBoundingClientRect();"
            "return [at.top - all.top, all.bottom - at.bottom]"
        )
        assert min(box) >= 0
        assert window.script("return document.querySelectorAll('.line').length") == 4_000
        assert "of 12004 are shown" in window.script("return document.getElementById('viewer-note').textContent")


def test_a_file_that_became_shorter_than_the_place_is_shown_at_its_end(window: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    path = folder / "long.md"
    path.write_text("# Long\n" + "\n" * 9_000 + "## Needle\n\nwalrus\n", "utf-8")
    with running(config_for(folder)) as own:
        own.service.index([folder])
        window.open(own.address)
        search(window, "walrus")
        for left in ("# Long\n\nThe rest is gone.\n", ""):
            path.write_text(left, "utf-8")
            window.script("document.querySelector('#results button').click()")
            window.until("return document.querySelector('dialog[open] .line') && document.activeElement.id === 'lines'")
            assert window.script("return document.querySelectorAll('.line').length") == left.count("\n") + 1
            window.press("Escape")
            window.until("return !document.querySelector('dialog[open] .line')")


def test_folders_are_those_of_all_files_however_many(
    window: Browser, own: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = own.service.files_at(own.service.paths())[0]
    paths = [f"/notes/{number // 100:02}/{number}.md" for number in range(2_050)]
    monkeypatch.setattr(own.service, "paths", lambda: paths)
    monkeypatch.setattr(own.service, "files_at", lambda some: [row._replace(file_path=path) for path in some])
    window.open(own.address)
    window.press("Tab", "Tab")
    window.until("return document.querySelector('#folders option')")
    folders = window.script("return [...document.querySelectorAll('#folders option')].map((each) => each.value)")
    assert folders == [f"/notes/{number:02}/" for number in range(21)]


def test_it_is_used_with_the_keyboard_alone(window: Browser, server: Running) -> None:
    window.open(server.address)
    search(window, "garden")
    window.press("Down")
    assert window.script("return document.activeElement.closest('#results') !== null")
    window.press("Down", "Up", "Up")
    assert window.script(FOCUS) == "query"
    window.press("Down", "Enter")
    window.until("return document.querySelector('dialog[open]') && document.activeElement.id === 'lines'")
    window.press("Tab")  # nothing behind the file is reached
    assert window.script("return document.activeElement === document.body || viewer.contains(document.activeElement)")
    window.press("Escape")
    window.until("return !document.querySelector('dialog[open]')")
    assert window.script("return document.activeElement.closest('#results') !== null")
    window.press("/")
    assert window.script(FOCUS) == "query"
    order = []
    for _ in range(4):
        window.press("Tab")
        order.append(window.script(FOCUS))
    assert order[1:3] == ["folder", "mode"] and order[3] == "BUTTON"


def test_what_has_the_focus_is_outlined(window: Browser, server: Running) -> None:
    window.open(server.address)
    search(window, "garden")
    for _ in range(5):
        width, style = window.script(
            "const s = getComputedStyle(document.activeElement); return [s.outlineWidth, s.outlineStyle]"
        )
        assert (width, style) == ("3px", "solid"), window.script(FOCUS)
        window.press("Tab")


def test_a_folder_narrows_the_search(window: Browser, server: Running) -> None:
    window.open(server.address)
    assert len(search(window, "garden symbol note")) > 2
    window.press("Tab", "Tab")
    assert window.script(FOCUS) == "folder"
    window.until("return document.querySelector('#folders option')")
    folders = window.script("return [...document.querySelectorAll('#folders option')].map((each) => each.value)")
    (work,) = [each for each in folders if each.endswith("work/")]
    window.type(work)
    window.until("return document.querySelectorAll('#results button').length === 2")
    assert all(work in card for card in window.script(CARDS))


def test_everything_has_a_name(window: Browser, server: Running) -> None:
    window.open(server.address)
    nameless = window.script(
        "return [...document.querySelectorAll('input, select')].filter((each) => !each.labels.length).map((e) => e.id)"
    )
    assert nameless == []
    assert window.script("return [document.documentElement.lang, document.title]") == ["en", "sqmd"]
    assert window.script("return document.getElementById('message').role") == "status"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out(window: Browser, server: Running, scheme: str) -> None:
    window.look(scheme=scheme)
    window.open(server.address)
    search(window, "tomatoes")
    ground = window.script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) > 380) == (scheme == "light")
    seen = window.script(CONTRAST)
    window.script("document.querySelector('#results button').click()")
    window.until("return document.querySelector('dialog[open] .here mark')")
    seen += window.script(CONTRAST)
    assert len(seen) > 20
    assert not [each for each in seen if each[0] < 4.5]


@pytest.mark.parametrize("width", [320, 390])
def test_on_a_narrow_screen_nothing_sticks_out(window: Browser, server: Running, width: int) -> None:
    window.look(width=width, height=640)
    window.open(server.address)
    search(window, "percent garden")
    sticking = (
        "return [...document.querySelectorAll('body *')].filter((each) => each.checkVisibility() && "
        "each.getBoundingClientRect().right > innerWidth + 1).map((each) => each.tagName + each.id)"
    )
    assert window.script(sticking) == []
    assert window.script("return document.documentElement.scrollWidth") <= width
    window.script("document.querySelector('#results button').click()")
    window.until("return document.querySelector('dialog[open] .here')")
    assert window.script(sticking) == []


def test_hostile_markdown_is_text(window: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / HOSTILE_NAME).write_text(HOSTILE, "utf-8")
    with running(config_for(folder)) as own:
        own.service.index([folder])
        window.open(own.address)
        (card,) = search(window, "walrus <img src=x onerror=window.hacked=1>")
        assert "<script>window.hacked = 1</script>" in card and HOSTILE_NAME in card
        window.script("document.querySelector('#results button').click()")
        window.until("return document.querySelector('dialog[open] .here')")
        shown = window.script("return document.getElementById('lines').textContent")
        assert f"walrus {HOSTILE_HTML}" in shown
        assert window.script("return document.querySelectorAll('main img, dialog img, svg, iframe, a').length") == 0
        # Even if the page itself tried to run what is in a file.
        refused = window.script(
            "try { document.body.innerHTML = '<b>x</b>'; return 'written' } catch (error) { return error.name }"
        )
        assert refused == "TypeError"
        assert window.script("return typeof window.hacked") == "undefined"
        # That attempt is the one thing to complain about.
        assert all("TrustedHTML" in each for each in window.complaints())


def test_a_key_is_typed_and_kept_for_the_tab_alone(window: Browser, notes: Path) -> None:
    with running(config_for(notes, api_key="schlüssel 1")) as own:
        own.service.index([notes])
        window.open(own.address)
        window.until("return document.activeElement.id === 'key'")
        assert not window.script("return document.getElementById('query').checkVisibility()")
        window.type("wrong")
        window.press("Enter")
        window.until("return document.getElementById('key-hint').textContent === 'That was not the API key.'")
        window.until("return document.activeElement.id === 'key'")
        window.type("schlüssel 1")
        window.press("Enter")
        window.until("return document.activeElement.id === 'query'")
        assert search(window, "tomatoes")
        kept = window.script("return [Object.values(sessionStorage), localStorage.length, document.cookie]")
        assert kept == [["schlüssel 1"], 0, ""]
        assert "schl" not in window.script("return location.href + document.documentElement.outerHTML")
        # The 401s are told by the browser itself.
        assert all("401" in each for each in window.complaints())


def test_a_server_that_went_away_is_told(window: Browser, notes: Path) -> None:
    with running(config_for(notes)) as own:
        own.service.index([notes])
        window.open(own.address)
        window.until("return document.getElementById('state').textContent.includes('chunks')")
    window.type("x")
    window.until("return document.getElementById('message').textContent.startsWith('The server does not answer.')")
    assert window.script("return document.getElementById('message').className") == "failed"
    window.complaints()


class Waiting(FakeEmbedder):
    """Embeds a batch each time it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.go = threading.Event()

    def embed_documents(self, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        assert self.go.wait(60)
        return super().embed_documents(texts)


def test_the_state_of_the_index_is_seen_and_how_far_it_is(window: Browser, tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    embedder = Waiting()
    state = "document.getElementById('state').textContent"
    with running(config_for(folder), embedder) as own:
        window.open(own.address)
        assert window.until(f"return {state}") == "Nothing is indexed yet."
        assert window.script("return document.getElementById('progress').hidden")
        write_notes(folder)
        window.script("document.getElementById('update').click()")
        try:
            window.until(f"return {state}.includes('5 files, 7 chunks · 0 of them searchable by meaning')")
            assert not window.script("return document.getElementById('progress').hidden")
            assert window.script("return document.getElementById('update').disabled")
            window.script("document.getElementById('query').focus()")
            assert search(window, "tomatoes")  # by words, while vectors are computed
        finally:
            embedder.go.set()
        window.until(f"return {state}.includes('6 of them searchable')")
        window.until("return document.getElementById('progress').hidden")
        assert not window.script("return document.getElementById('update').disabled")
    window.complaints()  # of the search before the first index


def test_the_page_asks_nobody_else(window: Browser, server: Running) -> None:
    window.open(server.address)
    search(window, "tomatoes")
    asked = window.script("return performance.getEntriesByType('resource').map((each) => each.name)")
    assert asked and all(each.startswith(f"{server.address}/") for each in asked)
    assert window.script("return document.querySelectorAll('style, script:not([src]), [style], [onclick]').length") == 0
