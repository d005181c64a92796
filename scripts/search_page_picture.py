"""Draws docs/images/sqmd-search.png: the search page over this repository's docs, in Chromium, with the real model.

Run as `python -m scripts.search_page_picture`: the browser is the tests'.
"""

from __future__ import annotations

import sys
import tempfile
import threading
from pathlib import Path

import uvicorn

from sqmd.api.app import create_app
from sqmd.api.serving import address, configuration
from sqmd.config import Config, Paths
from sqmd.listening import listen
from sqmd.service import Service
from tests.sqmd import browser

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "images" / "sqmd-search.png"
MAX_BYTES = 150_000
QUERY = "if my laptop is stolen"
WIDTH, HEIGHT = 900, 640


def main() -> int:
    if reason := browser.missing():
        print(reason, file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as scratch:
        # Seen from a short path, so that the picture does not show where this checkout lies.
        notes = Path(scratch) / "docs"
        notes.symlink_to(ROOT / "docs", target_is_directory=True)
        service = Service(Config(paths=Paths(watch_dirs=(notes,), db_path=str(Path(scratch) / "index"))))
        service.index([notes])
        app = create_app(service, "127.0.0.1")
        with listen("127.0.0.1", 0) as listening, browser.driver() as driver:
            server = uvicorn.Server(configuration(app))
            thread = threading.Thread(target=server.run, args=([listening],))
            thread.start()
            try:
                with browser.browser(driver, Path(scratch) / "profile") as window:
                    picture = _picture(window, address("127.0.0.1", listening), str(notes.parent))
            finally:
                server.should_exit = True
                thread.join()
                service.close()
    if len(picture) > MAX_BYTES:
        print(f"The picture has {len(picture):,} bytes, more than {MAX_BYTES:,}.", file=sys.stderr)
        return 1
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_bytes(picture)
    print(f"{PICTURE.relative_to(ROOT)}: {len(picture):,} bytes")
    return 0


def _picture(window: browser.Browser, where: str, scratch: str) -> bytes:
    window.look(width=WIDTH, height=HEIGHT)
    window.open(where)
    window.type(QUERY)
    window.until("return document.querySelector('#results button')")
    window.until("return document.getElementById('state').textContent.includes('chunks')")
    # As it is on a machine where the docs are in somebody's home.
    window.script(
        "for (const each of document.querySelectorAll('.place')) "
        "each.textContent = each.textContent.replace(arguments[0], '~/squirrel')",
        scratch,
    )
    return window.picture()


if __name__ == "__main__":
    sys.exit(main())
