"""Reads tokenizer.json, and counts with it: the one importer of the tokenizer's library, and lighter than a model."""

from __future__ import annotations

import re

from squirrel_mcp_embeddings.errors import ModelUnavailable

try:
    from tokenizers import Tokenizer
except ImportError:  # as in runtime.py
    Tokenizer = None  # type: ignore[misc, assignment]

_UNSAYABLE = re.compile("[\ud800-\udfff]")


class TokenCounter:
    """Counts as the model's own tokenizer does. May be called from several threads."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """`tokenizer` is left as it is."""
        own = Tokenizer.from_str(tokenizer.to_str())
        own.no_padding()
        own.no_truncation()
        own.encode_special_tokens = True
        self._tokenizer = own

    @property
    def parts_at_blanks(self) -> bool:
        """Whether what a word becomes does not depend on its neighbours, as with WordPiece (BERT)."""
        return type(self._tokenizer.model).__name__ == "WordPiece"

    def count_tokens(self, text: str) -> int:
        """The tokens of the whole text, the two around it included, also where the model would not read them all."""
        return len(self._tokenizer.encode(clean(text)))


def read_tokenizer(raw: bytes) -> Tokenizer:
    """The tokenizer of a tokenizer.json. ModelUnavailable with reason `runtime` where it cannot be read here."""
    if Tokenizer is None:
        raise ModelUnavailable("runtime")
    try:
        return Tokenizer.from_buffer(raw)
    except Exception as error:  # a border: the library raises nothing narrower
        raise ModelUnavailable("runtime") from error


def clean(text: str) -> str:
    """`text` without what the tokenizer refuses: a lone surrogate, which fails every other text of the same call."""
    return _UNSAYABLE.sub("\ufffd", text).replace("\0", "")
