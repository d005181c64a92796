"""docs/sqmd-api.md names every route and every field of the OpenAPI document, and no route that is not there."""

from __future__ import annotations

import re

from tests.house.sources import ROOT
from tests.sqmd.api.running import Running

DOCUMENT = ROOT / "docs" / "sqmd-api.md"


def test_the_docs_name_the_routes_and_no_others(server: Running) -> None:
    routes = {f"{m.upper()} {path}" for path, methods in server.app.openapi()["paths"].items() for m in methods}
    named = set(re.findall(r"`((?:GET|POST|PUT|DELETE) /[^`]*)`", DOCUMENT.read_text("utf-8")))
    assert named == routes


def test_the_docs_name_every_field_and_parameter(server: Running) -> None:
    document = server.app.openapi()
    fields = {name for shape in document["components"]["schemas"].values() for name in shape.get("properties", {})}
    routes = [route for methods in document["paths"].values() for route in methods.values()]
    fields |= {each["name"] for route in routes for each in route["parameters"] if each["in"] == "query"}
    named = set(re.findall(r"`([A-Za-z0-9_]+)`", DOCUMENT.read_text("utf-8")))
    assert len(fields) > 40
    assert not fields - named


def test_the_picture_in_the_docs_is_small() -> None:
    assert 10_000 < (ROOT / "docs" / "images" / "sqmd-search.png").stat().st_size < 150_000
