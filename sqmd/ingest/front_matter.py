"""The lines between two `---` at the beginning of a note, as far as search has a use for them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

# Of a key at the left edge and what stands behind it. Used where YAML gives up, as it does for `title: Rust: a tour`.
_LINE = re.compile(r"([A-Za-z][\w -]{0,60}?)\s*:(?:\s+(.*))?$")
_ITEM = re.compile(r"\s*-\s+(.+)$")
_TITLES = ("title",)
_TAGS = ("tags", "tag")
_ALIASES = ("aliases", "alias")


@dataclass(frozen=True, slots=True)
class Metadata:
    """All as written: no date or number is made of them. Tags are without their `#`."""

    title: str | None = None
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


def read_front_matter(text: str) -> Metadata | None:
    """The metadata in `text`, which is without its `---` lines. None if it is no front matter, but prose between rules.

    Of broken YAML what can be told from single lines is taken.
    """
    if not text.strip():
        return Metadata()
    fields = _from_yaml(text)
    if fields is None:
        fields = _from_lines(text)
    if fields is None:
        return None
    titles = _first(fields, _TITLES)
    return Metadata(
        title=titles[0] if titles else None,
        tags=_distinct(tag.lstrip("#") for each in _first(fields, _TAGS) for tag in re.split(r"[,\s]+", each)),
        aliases=_distinct(_first(fields, _ALIASES)),
    )


def _from_yaml(text: str) -> dict[str, list[str]] | None:
    """Every key with its text or list of texts; None for what is no mapping. Nodes are looked at, not values: a
    title of 2024-01-01 stays that, and a list that holds itself is no trouble.
    """
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        node = yaml.compose(text, Loader=loader)
    except (yaml.YAMLError, RecursionError):
        return None
    if not isinstance(node, yaml.MappingNode):
        return None
    fields: dict[str, list[str]] = {}
    for key, value in node.value:
        if isinstance(key, yaml.ScalarNode):
            parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
            texts = (str(part.value).strip() for part in parts if isinstance(part, yaml.ScalarNode))
            found = [each for each in texts if each and each != "null"]
            listed = isinstance(value, yaml.SequenceNode)
            fields[str(key.value).lower()] = found if listed else _split(str(key.value).lower(), found)
    return fields


def _from_lines(text: str) -> dict[str, list[str]] | None:
    """None unless the first line that is not blank is a key with a value."""
    fields: dict[str, list[str]] = {}
    key: str | None = None
    for line in text.split("\n"):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        item, pair = _ITEM.match(line), _LINE.match(line)
        if pair:
            key = pair[1].lower()
            value = (pair[2] or "").strip().strip("[]" if key in _TAGS + _ALIASES else "").strip("\"'")
            fields[key] = _split(key, [value]) if value else []
        elif key is None:
            return None
        elif item:
            fields[key].append(item[1].strip().strip("\"'"))
    return fields


def _split(key: str, texts: list[str]) -> list[str]:
    """`aliases: a, b` on one line is a list too."""
    if key not in _ALIASES:
        return texts
    return [part.strip() for each in texts for part in each.strip("[]").split(",") if part.strip()]


def _first(fields: dict[str, list[str]], names: tuple[str, ...]) -> list[str]:
    return next((fields[name] for name in names if fields.get(name)), [])


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for each in texts if each))
