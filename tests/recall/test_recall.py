"""The recall gate: what search by meaning has to be worth, on the real model. README.md says what the corpus is."""

from __future__ import annotations

from collections import Counter

import pytest

from scripts.recall_table import documented
from tests.house.sources import ROOT
from tests.real_model import real_model
from tests.recall import corpus
from tests.recall.corpus import EXACT, KINDS, NEAR, NOTHING, PARAPHRASE, RANKING, SCRIPTS
from tests.recall.measure import Measured, empty, figures, measure, of_kind, table


@pytest.fixture(scope="module")
def measured(request: pytest.FixtureRequest) -> Measured:
    with real_model() as model:
        found = measure(model)
    report = request.config.pluginmanager.get_plugin("terminalreporter")
    if report is not None:  # a worker of several has none
        report.write("\n".join(["", found.model, *table(found), ""]))
    return found


def test_meaning_finds_many_more_paraphrases(measured: Measured) -> None:
    words, both = (
        figures(of_kind(outcomes, PARAPHRASE)).recall_at_5 for outcomes in (measured.lexical, measured.hybrid)
    )
    assert both - words >= 0.15, f"recall@5 went from {words:.2f} to {both:.2f}"


def test_meaning_loses_no_question_in_the_exact_words(measured: Measured) -> None:
    pairs = zip(of_kind(measured.lexical, EXACT), of_kind(measured.hybrid, EXACT), strict=True)
    lost = [words.question.query for words, both in pairs if words.within(5) and not both.within(5)]
    assert not lost


def test_words_alone_put_every_answer_of_the_ranking_set_first(measured: Measured) -> None:
    wrong = [outcome.question.query for outcome in of_kind(measured.lexical, RANKING) if not outcome.within(1)]
    assert not wrong


def test_other_scripts_are_found_by_words_and_no_worse_beside_a_model(measured: Measured) -> None:
    words, both = (figures(of_kind(outcomes, SCRIPTS)).recall_at_5 for outcomes in (measured.lexical, measured.hybrid))
    assert words >= 0.8
    assert both >= words


@pytest.mark.parametrize("ranking", ["lexical", "hybrid"])
def test_where_nothing_is_stored_nothing_comes_back(measured: Measured, ranking: str) -> None:
    found = [outcome.question.query for outcome in of_kind(getattr(measured, ranking), NOTHING) if not empty([outcome])]
    assert not found


def test_the_table_in_the_docs_is_what_comes_out(measured: Measured) -> None:
    model, lines = documented()
    if measured.model != model:
        pytest.skip(f"the docs have the figures of {model}, and {measured.model} is here")
    assert lines == table(measured), "run scripts/recall_table.py --write"
    words, both = (
        figures(of_kind(outcomes, PARAPHRASE)).recall_at_5 for outcomes in (measured.lexical, measured.hybrid)
    )
    assert f"went from {words:.2f} to {both:.2f}" in " ".join((ROOT / "README.md").read_text("utf-8").split())


def test_the_corpus_is_as_large_as_it_is_said_to_be() -> None:
    memories, questions = corpus.memories(), corpus.questions()
    counts = Counter(question.kind for question in questions)
    assert len({memory.id for memory in memories}) == len(memories) == 540
    assert len(questions) == len({question.query for question in questions}) == 172
    assert counts == {EXACT: 50, PARAPHRASE: 60, NOTHING: 20, NEAR: 12, RANKING: 20, SCRIPTS: 10}
    assert set(counts) == set(KINDS)


def test_every_question_expects_a_memory_that_is_there_or_none() -> None:
    ids = {memory.id for memory in corpus.memories()}
    for question in corpus.questions():
        assert (question.expect in ids) != (question.kind in (NOTHING, NEAR)), question.query
