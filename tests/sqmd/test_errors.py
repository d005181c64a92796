"""What sqmd's errors promise to programs and to people."""

from __future__ import annotations

import inspect

from sqmd import errors
from sqmd.errors import ConfigError, ModelMismatch, NotIndexed, SqmdError, Unreadable


def test_every_error_is_in_the_drawing_with_its_code_and_no_code_is_used_twice() -> None:
    kinds = [each for _, each in inspect.getmembers(errors, inspect.isclass) if each is not SqmdError]
    drawing = {line.split()[1]: line.split()[2] for line in (errors.__doc__ or "").splitlines() if "── " in line}
    assert drawing == {kind.__name__: kind.code for kind in kinds}
    assert len(set(drawing.values())) == len(drawing)


def test_an_error_is_one_line_whatever_a_file_is_called() -> None:
    error = Unreadable("no\ntes\x1b[31m\u2028\udc80.md", "it is no plain file")
    assert str(error) == r"no\ntes\x1b[31m\u2028\udc80.md cannot be read: it is no plain file."
    assert error.reason == "it is no plain file"
    assert str(ConfigError("Grüße 日本語")) == "Grüße 日本語"


def test_before_the_first_index_the_error_names_the_command() -> None:
    assert str(NotIndexed()) == "not indexed yet: run sqmd index --path DIR"
    assert "sqmd index --force" in str(ModelMismatch("a", "b"))
