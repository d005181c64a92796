"""Forgiving where the meaning is clear; otherwise an error that names the field and quotes nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from squirrel_mcp.errors import InvalidInput
from squirrel_mcp.mcp_server.arguments import Arguments

SECRET = "sqn_do-not-repeat-me"


def given_x(value: Any) -> Arguments:
    return Arguments({"x": value}, ("x",))


@pytest.mark.parametrize("given_arguments", [{}, {"x": None}])
def test_null_is_absent(given_arguments: dict[str, Any]) -> None:
    arguments = Arguments(given_arguments, ("x",))
    for read in (arguments.string, arguments.whole, arguments.labels, arguments.moment, arguments.revision):
        assert read("x") is None
    assert arguments.flag("x") is False


@pytest.mark.parametrize(
    ("value", "number"), [(5, 5), ("5", 5), (" -1 ", -1), (5.0, 5), (10**30, 10**30), ("+7", 7), ("", None)]
)
def test_a_whole_number_may_be_written_as_text(value: Any, number: int | None) -> None:
    assert given_x(value).whole("x") == number


@pytest.mark.parametrize("value", ["five", "1e3", "5.5", 5.5, True, [5], {}, "9" * 5_000, float("inf"), "٣"])
def test_what_is_no_whole_number_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^x must be a whole number$"):
        given_x(value).whole("x")


@pytest.mark.parametrize("value", [0, -3, "0"])
def test_a_guard_that_guards_nothing_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match="x must be 1 or more"):
        given_x(value).revision("x")


@pytest.mark.parametrize(
    ("value", "flag"),
    [(True, True), ("true", True), ("Yes", True), (1, True), ("1", True), ("false", False), ("", False), (0, False)],
)
def test_a_boolean_may_be_text_or_a_digit(value: Any, flag: bool) -> None:
    assert given_x(value).flag("x") is flag


@pytest.mark.parametrize("value", ["maybe", 2, 1.0, [], {}])
def test_what_is_no_boolean_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^x must be true or false$"):
        given_x(value).flag("x")


@pytest.mark.parametrize(
    ("value", "labels"),
    [
        (["a", "b"], ("a", "b")),
        ('["a","b"]', ("a", "b")),
        ("a", ("a",)),
        ("a, b", ("a, b",)),
        ("[draft", ("[draft",)),
        ("", ()),
        ([], ()),
        ("[]", ()),
    ],
)
def test_a_list_may_be_json_or_one_string(value: Any, labels: tuple[str, ...]) -> None:
    assert given_x(value).labels("x") == labels


@pytest.mark.parametrize("value", [[42], ["a", None], '["a", 42]', 42, {"a": 1}, True, [["a"]]])
def test_what_is_no_list_of_strings_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^x must be a list of strings$") as failed:
        given_x(value).labels("x")
    assert failed.value.field == "x"


def test_a_list_nested_without_end_is_one_label_that_is_too_long() -> None:
    with pytest.raises(InvalidInput, match="x is 90,000 characters long"):
        given_x("[" * 90_000).labels("x")
    with pytest.raises(InvalidInput, match="x is too long"):
        given_x("[" * 200_000).labels("x")


def test_ten_megabytes_are_refused_by_their_length() -> None:
    with pytest.raises(InvalidInput, match=r"^x is 10,000,000 characters long; at most 16,000 are allowed$"):
        given_x("a" * 10_000_000).required("x", 16_000)


@pytest.mark.parametrize("read", [Arguments.string, Arguments.labels, Arguments.required])
def test_half_a_surrogate_pair_is_refused_without_the_text(read: Any) -> None:
    with pytest.raises(InvalidInput, match=r"^x holds half of a surrogate pair") as failed:
        read(given_x(f"{SECRET}\ud800"), "x")
    assert failed.value.__cause__ is None and failed.value.__suppress_context__


def test_a_choice_is_one_of_those_offered() -> None:
    assert given_x("Oldest ").choice("x", ("newest", "oldest")) == "oldest"
    with pytest.raises(InvalidInput, match="x must be one of newest, oldest"):
        given_x("sideways").choice("x", ("newest", "oldest"))


def test_a_date_is_read_as_one_and_named_where_it_is_none() -> None:
    assert given_x("2026-03-01T09:30Z").moment("x") == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    with pytest.raises(InvalidInput, match=r"^x must be a date"):
        given_x("yesterday").moment("x")


@pytest.mark.parametrize("value", [" 0AF3 ", "memory://0af3"])
def test_an_id_is_read_as_replies_write_it(value: str) -> None:
    assert Arguments({"id": value}, ("id",)).memory_id() == "0af3"


def test_snake_case_is_taken_and_the_right_spelling_wins() -> None:
    known = ("expectedRevision", "id")
    assert Arguments({"expected_revision": 3}, known).revision("expectedRevision") == 3
    both = {"expected_revision": 3, "expectedRevision": 4}
    assert Arguments(both, known).revision("expectedRevision") == 4


def test_unknown_arguments_are_named_and_their_values_are_not() -> None:
    arguments = Arguments({"x": 1, "color": SECRET, "a" * 100: 1, "\x1b[31m": 2}, ("x",))
    assert arguments.remark() == "Ignored arguments that this tool does not have: color."
    assert Arguments({"\x1b[31m": 2}, ()).remark().endswith("have: 1.")
    assert Arguments({"x": 1}, ("x",)).remark() == ""


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)


@given(json_values)
def test_any_value_is_read_or_refused_by_name(value: Any) -> None:
    arguments = given_x(value)
    for read in (
        arguments.string,
        arguments.whole,
        arguments.flag,
        arguments.labels,
        arguments.moment,
        arguments.revision,
        arguments.required,
    ):
        try:
            read("x")
        except InvalidInput as error:
            assert error.field == "x"
            assert str(error).startswith("x ")


@pytest.mark.parametrize("value", [SECRET, [SECRET], {SECRET: SECRET}, [{"a": SECRET}], SECRET * 5_000])
def test_no_error_quotes_a_value(value: Any) -> None:
    arguments = given_x(value)
    for read in (
        arguments.string,
        arguments.whole,
        arguments.flag,
        arguments.labels,
        arguments.moment,
        lambda name: arguments.choice(name, ("a",)),
    ):
        try:
            read("x")
        except InvalidInput as error:
            assert SECRET not in str(error)
