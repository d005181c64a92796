"""The whole way with the model that is shipped."""

from __future__ import annotations

from pathlib import Path

from sqmd.service import Service
from tests.real_model import real_model
from tests.sqmd.api.running import config_for, running

NOTES = {
    "kitchen.md": "# Bread\n\nKnead the dough for ten minutes, then let it rise under a damp cloth overnight.\n",
    "car.md": "# Winter\n\nThe automobile refuses to start when it freezes: charge the battery first.\n",
    "music.md": "# Choir\n\nWe rehearse the second movement on Thursday evening in the chapel.\n",
}


def test_what_is_meant_is_found_though_no_word_is_the_same(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / name).write_text(text, "utf-8")
    config = config_for(folder)
    with real_model():
        pass  # it is here, or the test is not run
    service = Service(config)
    service.index([folder])
    with running(config, service.embedder) as own, own.client() as web:
        for query, name in (("my vehicle is broken", "car.md"), ("baking a loaf", "kitchen.md")):
            for mode in ("hybrid", "vector"):
                found = web.get(f"/api/v1/search?q={query}&mode={mode}&top_k=1").json()
                assert found["results"][0]["file_path"].endswith(name)
        assert web.get("/api/v1/health").json()["embedder"] == "ok"
        status = web.get("/api/v1/index/status").json()
        assert status["vectorCount"] == status["chunkCount"] == len(NOTES)
