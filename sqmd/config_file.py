"""Reads a configuration file into plain values that remember their line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqmd.errors import ConfigError

if TYPE_CHECKING:
    from yaml.nodes import MappingNode, Node

# A configuration is a page; what is larger is another file under this name.
_MAX_BYTES = 1 << 20
_KEY = re.compile(r"[\s-]*([^\s:#'\"][^:#]*?)\s*:(?:\s|$)")


@dataclass(frozen=True, slots=True)
class Setting:
    """`section.key`, its value as plain Python (text, number, truth, None, list, dict) and its line from 1."""

    section: str
    key: str
    value: object
    line: int


def read_settings(path: Path, sections: tuple[str, ...]) -> list[Setting]:
    """What `path` sets, in its order; nothing for an empty file.

    ConfigError for a file that is not there or no YAML, an unknown section, a section without keys, a key that comes
    twice. Which keys a section may have is not looked at here.
    """
    root = _compose(path, _read(path))
    if root is None or _plain(root) is None:
        return []
    found: list[Setting] = []
    for section, line, node in _pairs(path, root, ""):
        if section not in sections:
            raise ConfigError(f"{path}:{line}: {section}: {unknown(section, sections)}.")
        if _plain(node) is None:
            raise ConfigError(f"{path}:{line}: {section}: the section is empty; give it keys, or take it away.")
        for key, key_line, value in _pairs(path, node, section):
            found.append(Setting(section, key, _plain(value), key_line))
    return found


def unknown(name: str, known: tuple[str, ...]) -> str:
    """Says that there is no setting `name`, and which one may be meant."""
    from difflib import get_close_matches

    spelt = {each.lower(): each for each in known}
    close = get_close_matches(name.lower(), spelt, 1)
    if close:
        return f"there is no such setting; did you mean {spelt[close[0]]}"
    return f"there is no such setting; there are {', '.join(known)}"


def _read(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            raw = file.read(_MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: the configuration cannot be read: {error.strerror}.") from error
    if len(raw) > _MAX_BYTES:
        raise ConfigError(f"{path}: this is too large for a configuration.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: the configuration is not UTF-8.") from error


def _compose(path: Path, text: str) -> Node | None:
    import yaml

    try:
        node: Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else 1
        raise ConfigError(f"{path}:{line}: {_near(text, line)}this is no YAML: {error.problem}.") from error
    except yaml.reader.ReaderError as error:
        line = text[: error.position].count("\n") + 1
        raise ConfigError(f"{path}:{line}: {_near(text, line)}a character that YAML does not allow.") from error
    except RecursionError:
        raise ConfigError(f"{path}:1: this is nested too deeply for a configuration.") from None
    return node


def _near(text: str, line: int) -> str:
    """The key at or above `line`, with a colon: where a person looks for what is wrong. Nothing if there is none."""
    for each in reversed(text.split("\n")[:line]):
        found = _KEY.match(each)
        if found:
            return f"{found[1]}: "
    return ""


def _pairs(path: Path, node: Node, section: str) -> Iterator[tuple[str, int, Node]]:
    """(key, line, value) of a mapping whose keys differ."""
    import yaml

    line = node.start_mark.line + 1
    if not isinstance(node, yaml.MappingNode):
        what = f"{section}: " if section else ""
        raise ConfigError(f"{path}:{line}: {what}there must be keys and values here, such as `key: value`.")
    mapping: MappingNode = node
    seen: set[str] = set()
    for key_node, value in mapping.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise ConfigError(f"{path}:{line}: {section or 'a section'}: a key must be a word.")
        key = str(key_node.value)
        if key in seen:
            raise ConfigError(f"{path}:{line}: {'.'.join(filter(None, (section, key)))}: it is set twice.")
        seen.add(key)
        yield key, line, value


def _plain(node: Node) -> object:
    """The node as plain Python. A dict stands for any mapping: no setting is one. Dates and the like stay text."""
    import yaml

    if isinstance(node, yaml.SequenceNode):
        # Of a list within a list only that it is one: a list may hold itself.
        return [_scalar(each) if isinstance(each, yaml.ScalarNode) else [] for each in node.value]
    return _scalar(node) if isinstance(node, yaml.ScalarNode) else {}


def _scalar(node: Any) -> object:
    import yaml

    kind = str(node.tag).rpartition(":")[2]
    if kind == "null":
        # YAML's other way to write null; whoever writes `watch_dirs: [~]` here means the home folder.
        return "~" if node.value == "~" else None
    if kind in ("int", "float", "bool"):
        try:
            return yaml.constructor.SafeConstructor().construct_object(node)
        except (ValueError, KeyError, IndexError, yaml.YAMLError):  # `!!int abc`, `!!int ""`
            return None
    return str(node.value)
