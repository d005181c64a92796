"""Chromium without a window, spoken to over the WebDriver protocol (W3C) through its chromedriver."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # which root, as whom containers run, cannot have
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--force-color-profile=srgb",
    "--hide-scrollbars",
    "--lang=en-US",
)
_SECONDS = 60
# Keys that type nothing, as WebDriver writes them.
KEYS = {
    "Tab": "\ue004", "Enter": "\ue007", "Shift": "\ue008", "Escape": "\ue00c", "Down": "\ue015", "Up": "\ue013",
    "Backspace": "\ue003", "Control": "\ue009", "PageDown": "\ue00f",
}  # fmt: skip
# Looks at a condition each time the page is about to be drawn, and answers once it holds.
_UNTIL = """
const done = arguments[arguments.length - 1];
const holds = () => { const value = (() => { %s })(); if (value) done(value); else setTimeout(holds, 20); };
holds();
"""


class Browser:
    """One window, with nothing kept from any other."""

    def __init__(self, driver: str, session: str) -> None:
        self._address = f"{driver}/session/{session}"
        self._web = httpx.Client(base_url=self._address, trust_env=False, timeout=_SECONDS + 30)

    def open(self, url: str) -> None:
        self._post("url", url=url)

    def script(self, body: str, *arguments: object) -> Any:
        """What `body`, the inside of a function, returns in the page."""
        return self._post("execute/sync", script=body, args=list(arguments))

    def until(self, body: str) -> Any:
        """The same, as soon as it is true."""
        return self._post("execute/async", script=_UNTIL % body, args=[])

    def type(self, text: str) -> None:
        """Into whatever has the focus."""
        self._keys([{"type": kind, "value": char} for char in text for kind in ("keyDown", "keyUp")])

    def press(self, *names: str) -> None:
        """Keys of KEYS or characters, one after the other; `Shift+Tab` holds Shift."""
        actions: list[dict[str, str]] = []
        for name in names:
            chord = [KEYS.get(each, each) for each in name.split("+")]
            actions += [{"type": "keyDown", "value": each} for each in chord]
            actions += [{"type": "keyUp", "value": each} for each in reversed(chord)]
        self._keys(actions)

    def look(self, *, scheme: str = "light", width: int = 1_000, height: int = 800) -> None:
        """light or dark, and how large the window is in CSS pixels."""
        self._devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._devtools(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def picture(self) -> bytes:
        """What the window shows, as PNG."""
        return base64.b64decode(self._get("screenshot"))

    def complaints(self) -> list[str]:
        """What the browser found wrong since it was last asked: errors, and what the page's policy forbade."""
        return [entry["message"] for entry in self._post("se/log", type="browser") if entry["level"] == "SEVERE"]

    def close(self) -> None:
        """End it, and wait until it has ended."""
        _value(self._web.delete(self._address))
        self._web.close()

    def _keys(self, actions: list[dict[str, str]]) -> None:
        self._post("actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def _devtools(self, command: str, **parameters: object) -> None:
        self._post("goog/cdp/execute", cmd=command, params=parameters)

    def _post(self, path: str, **body: object) -> Any:
        return _value(self._web.post(f"/{path}", json=body))

    def _get(self, path: str) -> Any:
        return _value(self._web.get(f"/{path}"))


def _value(reply: httpx.Response) -> Any:
    value = reply.json()["value"]
    assert reply.is_success, value
    return value


def missing() -> str:
    """Why there is no browser here; empty if there is one."""
    names = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    return f"no {' and no '.join(names)} here: scripts/chromium installs it" if names else ""


def needs_chromium() -> None:
    """Skip the test where there is no browser; where CI is set, fail it."""
    if reason := missing():
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)


@contextmanager
def driver() -> Iterator[str]:
    """A chromedriver's address."""
    command = [shutil.which("chromedriver") or "chromedriver", "--port=0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                if found := re.search(r"started successfully on port (\d+)", line):
                    yield f"http://127.0.0.1:{found[1]}"
                    return
            raise AssertionError("chromedriver did not start")
        finally:
            process.terminate()


@contextmanager
def browser(address: str, profile: Path) -> Iterator[Browser]:
    """A new window. profile: an empty folder of its own."""
    options = {
        "binary": shutil.which("chromium"),
        "args": [*_ARGUMENTS, f"--user-data-dir={profile}"],
    }
    wanted = {
        "goog:chromeOptions": options,
        "goog:loggingPrefs": {"browser": "ALL"},
        "timeouts": {"script": _SECONDS * 1_000},
    }
    asked = httpx.Client(trust_env=False, timeout=_SECONDS + 30)
    with asked:
        session = _value(asked.post(f"{address}/session", json={"capabilities": {"alwaysMatch": wanted}}))
    found = Browser(address, session["sessionId"])
    try:
        yield found
    finally:
        found.close()
