"""GET and POST /search: the same answers, as strictly asked."""

from __future__ import annotations

import http.client
import json
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from urllib.parse import urlencode

import httpx
import pytest

from sqmd.search.results import MODES
from tests.sqmd.api.running import Running

FIELDS = {
    "chunk_id", "file_id", "file_path", "heading_path", "heading_text", "heading_level", "section_index",
    "chunk_index", "text_raw", "token_count", "score", "line_start", "line_end",
}  # fmt: skip
ODD_QUERIES = [
    '"', "'", '"unclosed', '"a phrase" rest', "-", "well-known --flag", "C++", "it's", "京都の庭", "100%_x", "a:b", "*",
    "(unclosed", "\\", "/", "[x](y)", "AND OR NOT", "\u0000", "\u2028", "🦔", "x" * 10_000, "word " * 2_000,
    "日" * 10_000, " ",
]  # fmt: skip
ODD_FILTERS = ["it's", "100%_x", "%", "_", '"', "'; DROP TABLE chunks; --", "日本語", "C++", "\\", "x" * 4_096]
WRONG = [
    {"top_k": 0}, {"top_k": 101}, {"top_k": -1}, {"mode": "zzz"}, {"mode": ""}, {"unknown": "1"}, {"query": ""},
    {"query": "x" * 10_001}, {"filter_path": "x" * 4_097}, {"q": "both"},
]  # fmt: skip


def search(web: httpx.Client, **asked: object) -> dict[str, object]:
    """What POST answers, and GET as well, apart from the time it took."""
    posted = web.post("/api/v1/search", json=asked)
    assert posted.status_code == 200, posted.text
    # Not by httpx, whose URLs end at 64 KiB.
    connection = http.client.HTTPConnection(web.base_url.host, web.base_url.port or 0)
    parameters = {name: str(value).lower() if isinstance(value, bool) else value for name, value in asked.items()}
    connection.request("GET", f"/api/v1/search?{urlencode(parameters)}")
    got = connection.getresponse()
    answers = [posted.json(), json.loads(got.read())]
    connection.close()
    assert got.status == 200, answers[1]
    for each in answers:
        assert each.pop("duration_ms") >= 0
    assert answers[0] == answers[1]
    return answers[0]


def test_a_result_has_the_fields_of_the_contract(web: httpx.Client) -> None:
    answer = search(web, query="tomatoes water", top_k=1)
    (result,) = answer["results"]
    assert answer.keys() == {"results", "query", "total"}
    assert (answer["query"], answer["total"]) == ("tomatoes water", 1)
    assert result.keys() == FIELDS
    assert result["file_path"].endswith("garden.md") and result["heading_path"] == "Garden > Tomatoes"
    assert (result["line_start"], result["line_end"]) == (3, 5)
    assert result["text_raw"].startswith("## Tomatoes\n")


def test_with_context_a_result_has_its_text_below_its_breadcrumb(web: httpx.Client) -> None:
    (result,) = search(web, query="tomatoes", top_k=1, include_context=True)["results"]
    assert result.keys() == FIELDS | {"text"}
    assert result["text"] == f"Section: Garden > Tomatoes\n\n{result['text_raw']}"


def test_q_is_query(web: httpx.Client) -> None:
    assert search(web, q="tomatoes") == search(web, query="tomatoes")


def test_how_many_is_as_configured_unless_it_is_asked_for(web: httpx.Client) -> None:
    assert search(web, query="a", top_k=2)["total"] == 2
    assert search(web, query="a the garden")["total"] == 6


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_answers(web: httpx.Client, mode: str) -> None:
    results = search(web, query="lighthouses", mode=mode)["results"]
    assert results[0]["file_path"].endswith("plain.md")


def test_reranking_orders_the_best_anew(web: httpx.Client) -> None:
    plain, reranked = (search(web, query="garden tomatoes beans", rerank=rerank)["results"] for rerank in (False, True))
    assert {each["chunk_id"] for each in plain} == {each["chunk_id"] for each in reranked}
    lengths = [len(each["heading_path"]) + len(each["text_raw"]) for each in reranked]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize(("filter_path", "files"), [("it's", 1), ("100%_x", 1), ("%", 1), ("work/", 2), ("_y", 0)])
def test_a_filter_is_meant_literally(web: httpx.Client, filter_path: str, files: int) -> None:
    results = search(web, query="note linker garden line", filter_path=filter_path, top_k=100)["results"]
    assert len({each["file_path"] for each in results}) == files
    assert all(filter_path in each["file_path"] for each in results)


@pytest.mark.parametrize("mode", MODES)
def test_no_query_and_no_filter_is_too_odd(web: httpx.Client, mode: str) -> None:
    for query in ODD_QUERIES:
        search(web, query=query, mode=mode)
    for query, filter_path in product(("C++", "京都の庭", '"'), ODD_FILTERS):
        search(web, query=query, mode=mode, filter_path=filter_path)


def test_words_of_a_script_that_the_model_does_not_read_are_found_by_words(web: httpx.Client) -> None:
    answer = search(web, query="京都の庭")
    assert answer["results"][0]["file_path"].endswith("日本語.md")
    assert "by words" in answer["note"]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: f"{next(iter(wrong.items()))}"[:30])
def test_get_and_post_refuse_the_same_with_the_same_words(web: httpx.Client, wrong: dict[str, object]) -> None:
    asked = {"query": "x", **wrong}
    answers = [web.post("/api/v1/search", json=asked), web.get("/api/v1/search", params=asked)]  # type: ignore[arg-type]
    assert [each.status_code for each in answers] == [422, 422]
    assert answers[0].json() == answers[1].json()
    assert answers[0].json()["error"] == "invalid_input"
    assert not {"unknown", "zzz"} & set(answers[0].json()["message"].replace(".", "").split()) - {"unknown"}


@pytest.mark.parametrize(
    "wrong", ["top_k=5.0", "top_k=%205", "top_k=1_0", "top_k=٣", "top_k=", "rerank=1", "rerank=True"]
)
def test_numbers_and_truth_in_a_query_string_are_written_as_in_json(web: httpx.Client, wrong: str) -> None:
    answer = web.get(f"/api/v1/search?q=x&{wrong}")
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_input")


@pytest.mark.parametrize(
    "wrong", ["q=x&q=y", "q=%ff", "q=x&top_k=1&top_k=2", "&".join(f"a{n}=1" for n in range(60)), ""]
)
def test_a_query_string_is_read_strictly(web: httpx.Client, wrong: str) -> None:
    answer = web.get(f"/api/v1/search?{wrong}")
    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_input")


@pytest.mark.parametrize("wrong", [{"top_k": "5"}, {"top_k": True}, {"top_k": 5.5}, {"rerank": 1}, {"top_k": None}])
def test_a_body_is_not_converted(web: httpx.Client, wrong: dict[str, object]) -> None:
    assert web.post("/api/v1/search", json={"query": "x", **wrong}).status_code == 422


def test_a_post_takes_nothing_in_its_query_string(web: httpx.Client) -> None:
    assert web.post("/api/v1/search?top_k=1", json={"query": "x"}).status_code == 422


def test_many_at_once_are_all_answered(server: Running, web: httpx.Client) -> None:
    queries = [f"{word} {mode}" for word in ("tomatoes", "beans", "linker", "lighthouses") for mode in MODES * 5]

    def ask(query: str) -> list[str]:
        answer = web.get("/api/v1/search", params={"q": query.split()[0], "mode": query.split()[1]})
        assert answer.status_code == 200, answer.text
        return [each["chunk_id"] for each in answer.json()["results"]]

    with ThreadPoolExecutor(16) as pool:
        together = list(pool.map(ask, queries))
    assert together == [ask(query) for query in queries]


def test_an_embedder_that_is_down_leaves_the_words(own: Running, own_web: httpx.Client) -> None:
    own.service.embedder.down = True  # type: ignore[attr-defined]
    answer = search(own_web, query="tomatoes")
    assert answer["total"] == 1 and "by words" in str(answer["note"])
    refused = own_web.get("/api/v1/search?q=tomatoes&mode=vector")
    assert (refused.status_code, refused.json()["error"]) == (503, "embedder_down")
