"""Looks for secrets in everything that hangs on an exception, bar the frames of its traceback."""

from __future__ import annotations

from collections.abc import Iterable


def spilled(error: BaseException, secrets: Iterable[str | bytes]) -> list[str]:
    """Where one of the secrets, as text, bytes or hex, can be reached from the error."""
    found: list[str] = []
    wanted = {form for secret in secrets for form in _forms(secret)}
    _walk(error, "error", wanted, found, set())
    return found


def _forms(secret: str | bytes) -> set[str]:
    if isinstance(secret, str):
        return {secret, secret.encode("utf-8", "surrogatepass").hex(), repr(secret)[1:-1]}
    return {secret.hex(), repr(secret)[2:-1]}


def _walk(value: object, path: str, wanted: set[str], found: list[str], seen: set[int]) -> None:
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, str | bytes | bytearray):
        texts = [value] if isinstance(value, str) else [bytes(value).hex(), repr(bytes(value))]
        found.extend(path for text in texts if any(form in text for form in wanted))
    elif isinstance(value, BaseException):
        found.extend(path for text in (str(value), repr(value)) if any(form in text for form in wanted))
        _walk(value.__cause__, f"{path}.__cause__", wanted, found, seen)
        _walk(value.__context__, f"{path}.__context__", wanted, found, seen)
        _walk(value.args, f"{path}.args", wanted, found, seen)
        for name in dir(value):  # also what C code keeps without a __dict__, like UnicodeError.object
            if not name.startswith("_"):
                _walk(getattr(value, name), f"{path}.{name}", wanted, found, seen)
        _walk(getattr(value, "__notes__", None), f"{path}.__notes__", wanted, found, seen)
    elif isinstance(value, dict):
        for key, item in value.items():
            _walk(key, path, wanted, found, seen)
            _walk(item, f"{path}[{key!r}]", wanted, found, seen)
    elif isinstance(value, list | tuple | set | frozenset):
        for index, item in enumerate(value):
            _walk(item, f"{path}[{index}]", wanted, found, seen)
