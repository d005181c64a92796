"""The vectors as another implementation reads them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.vectors.independent_reader import FILES, check_log, open_record, open_wrap, unhex


def named(name: str, **wanted: str) -> list[Any]:
    found = [c for c in FILES[name]["cases"] if "mutation" not in c and wanted.items() <= c.items()]
    return [pytest.param(case, id=case["name"]) for case in found]


@pytest.mark.parametrize("case", named("wrap.json", step="open"))
def test_a_wrap_opens_for_another_implementation(case: dict[str, Any]) -> None:
    secret = case["passphrase"] if "passphrase" in case else unhex(case["recovery"])
    opened = open_wrap(unhex(case["wrap"]), secret)
    assert (opened.hex() if opened else None) == (case["dek"] if case["expect"] == "ok" else None)


@pytest.mark.parametrize(
    "case", [each for each in named("record.json") if isinstance(each.values[0].get("record"), str)]
)
def test_a_record_opens_for_another_implementation(case: dict[str, Any]) -> None:
    place = (unhex(case["accountId"]), unhex(case["memoryId"]), case["revision"], case["type"])
    payload = open_record(unhex(case["dek"]), *place, unhex(case["record"]))
    assert (payload.hex() if payload is not None else None) == (case["payload"] if case["expect"] == "ok" else None)


@pytest.mark.parametrize("case", named("log.json"))
def test_a_log_is_believed_by_another_implementation_exactly_where_it_should_be(case: dict[str, Any]) -> None:
    assert check_log(case) == (case["expect"] == "ok")
