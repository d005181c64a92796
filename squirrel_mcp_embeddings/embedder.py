"""From texts to vectors, and what keeps both cores busy."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from functools import cached_property
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from squirrel_mcp_embeddings.errors import EmbeddingFailed
from squirrel_mcp_embeddings.manifest import Model
from squirrel_mcp_embeddings.model_files import LoadedFiles
from squirrel_mcp_embeddings.runtime import Session
from squirrel_mcp_embeddings.token_counter import TokenCounter, clean, read_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Vector: TypeAlias = NDArray[np.float32]

# Tokens of one call of the runtime, padding included: 16 memories of 20 words, or one of the longest text. With more
# the hidden states leave the cache, with less each call costs more than it does.
_BUDGET = 512
# More workers than that are of no use to a person who wants to go on working meanwhile.
WORKERS = min(2, os.cpu_count() or 1)
# Enough that no worker waits, and not so many that another caller does.
_WAITING = 2 * WORKERS
# Texts are sorted by length within so many: enough for batches of one length, few enough that nobody waits for all
# of them to be tokenised.
_SLICE = 256
# Of one text, in characters. A token is a piece of a word of at most 100 characters (longer words are one unknown
# token), and a space may stand before it: 512 of them are read from fewer than 51,712 characters. What is cut can
# count only behind blanks, marks and words without end.
_MAX_CHARACTERS = 1 << 16


class Unit(NamedTuple):
    """What one call of the runtime computes: the texts' places in the caller's order, and their tokens."""

    places: list[int]
    tokens: list[list[int]]


class Embedder:
    """Turns texts into vectors. All methods may be called from several threads, and a short call waits for no long one.

    A vector does not depend on which texts are embedded beside it, to 1e-5 in each component.
    """

    def __init__(self, model: Model, tokenizer: Tokenizer, session: Session) -> None:
        self.model = model
        self._session: Session | None = session
        self._tokenizer = tokenizer
        # tokenizer.json brings settings of its own: that of MiniLM pads every text to 128 tokens.
        tokenizer.no_padding()
        tokenizer.enable_truncation(model.max_tokens)
        tokenizer.encode_special_tokens = True  # a `[SEP]` that somebody wrote is text
        self._readable = _readable(tokenizer)
        self._workers = ThreadPoolExecutor(WORKERS, thread_name_prefix="embed")

    def embed(self, texts: Sequence[str], stop: Callable[[], bool] = lambda: False) -> list[Vector | None]:
        """The vector of each text, in the order given: float32 (dimension,), L2 norm 1.

        None for a text without a letter or digit that the model knows, and after `stop` for what was not reached
        (`each` tells the two apart). Any string is fine; of a long one the first `max_tokens` count. EmbeddingFailed
        if the runtime breaks down, or after `close`.
        """
        vectors: list[Vector | None] = [None] * len(texts)
        for place, vector in self.each(texts, stop):
            vectors[place] = vector
        return vectors

    def each(
        self, texts: Sequence[str], stop: Callable[[], bool] = lambda: False
    ) -> Iterator[tuple[int, Vector | None]]:
        """(place in `texts`, vector), as they are ready; ends early when `stop`, asked between batches, says so."""
        waiting: deque[tuple[Unit, Future[NDArray[np.float32]]]] = deque()
        try:
            for start in range(0, len(texts), _SLICE):
                tokens: dict[int, list[int]] = {}
                for place in range(start, min(start + _SLICE, len(texts))):
                    if stop():
                        return
                    found = self._tokens(texts[place])
                    if found:
                        tokens[place] = found
                    else:
                        yield place, None
                units = in_units(tokens)
                if len(units) == 1 and len(texts) <= _SLICE:
                    # Here, beside whatever the workers are busy with: a query is not to stand in their queue.
                    yield from _results(units[0], self._compute(units[0]))
                    return
                for unit in units:
                    if len(waiting) == _WAITING:
                        yield from _finished(waiting)
                    if stop():
                        return
                    waiting.append((unit, self._submit(unit)))
            while waiting:
                if stop():
                    return
                yield from _finished(waiting)
        finally:
            for _, future in waiting:
                future.cancel()

    def count_tokens(self, text: str) -> int:
        """The tokens of the whole text, the two around it included, also where the model would not read them all."""
        return self._counter.count_tokens(text)

    def close(self) -> None:
        """Let go of the model. Calls that are under way end with EmbeddingFailed, or with their result."""
        self._workers.shutdown(cancel_futures=True)
        self._session = None

    def _tokens(self, text: str) -> list[int]:
        """The ids of a text with the special ones around; [] where there is nothing to read."""
        tokens: list[int] = self._tokenizer.encode(clean(text[:_MAX_CHARACTERS])).ids
        return tokens if self._readable[tokens].any() else []

    @cached_property
    def _counter(self) -> TokenCounter:
        return TokenCounter(self._tokenizer)

    def _submit(self, unit: Unit) -> Future[NDArray[np.float32]]:
        try:
            return self._workers.submit(self._compute, unit)
        except RuntimeError:  # closed, or the interpreter is about to end
            raise _closed() from None

    def _compute(self, unit: Unit) -> NDArray[np.float32]:
        """(texts, dimension)"""
        session = self._session
        if session is None:
            raise _closed()
        ids = np.zeros((len(unit.tokens), max(map(len, unit.tokens))), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(unit.tokens):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        return pool(session.run(ids, mask), mask, self.model.pooling)


def load(files: LoadedFiles) -> Embedder:
    """The embedder of files that were checked. ModelUnavailable with reason `runtime` where they cannot be run here."""
    return Embedder(
        files.model, read_tokenizer(files.tokenizer), Session(files.weights, threads=1, beside=files.beside)
    )


def pool(
    hidden: NDArray[np.float32], mask: NDArray[np.int64], pooling: Literal["mean", "cls"] = "mean"
) -> NDArray[np.float32]:
    """One vector of L2 norm 1 for each text, (n, dimension), from its hidden states (n, t, dimension).

    mean: of those where the mask (n, t) is 1; cls: the first. Both are Sentence-BERT's (Reimers and Gurevych, 2019).
    EmbeddingFailed for what is no number.
    """
    if pooling == "cls":
        pooled = hidden[:, 0]
    else:
        weights = mask.astype(np.float32)
        pooled = np.einsum("ntd,nt->nd", hidden, weights) / weights.sum(axis=1, keepdims=True)
    norms = np.linalg.norm(pooled, axis=1, keepdims=True)
    if not (np.isfinite(norms).all() and norms.all()):
        raise EmbeddingFailed("The model's runtime computed something that is no vector.")
    vectors: NDArray[np.float32] = pooled / norms
    return vectors


def _readable(tokenizer: Tokenizer) -> NDArray[np.bool_]:
    """By token id, whether it is a piece of a word: it holds a letter or digit, and stands for no other thing."""
    vocabulary = tokenizer.get_vocab()
    readable = np.zeros(max(vocabulary.values()) + 1, np.bool_)
    readable[[number for piece, number in vocabulary.items() if any(map(str.isalnum, piece))]] = True
    readable[list(tokenizer.get_added_tokens_decoder())] = False
    return readable


def in_units(tokens: dict[int, list[int]]) -> list[Unit]:
    """Texts of about one length together, the longest first, so that the workers end at about the same time."""
    units: list[Unit] = []
    width = 0
    for place in sorted(tokens, key=lambda place: -len(tokens[place])):
        if not units or (len(units[-1].places) + 1) * width > _BUDGET:
            units.append(Unit([], []))
            width = len(tokens[place])
        units[-1].places.append(place)
        units[-1].tokens.append(tokens[place])
    return units


def _finished(waiting: deque[tuple[Unit, Future[NDArray[np.float32]]]]) -> Iterator[tuple[int, Vector | None]]:
    unit, future = waiting.popleft()
    try:
        vectors = future.result()
    except CancelledError:
        raise _closed() from None
    yield from _results(unit, vectors)


def _results(unit: Unit, vectors: NDArray[np.float32]) -> Iterator[tuple[int, Vector | None]]:
    # Copies, so that one vector that is kept does not keep all of its batch.
    return ((place, vector.copy()) for place, vector in zip(unit.places, vectors, strict=True))


def _closed() -> EmbeddingFailed:
    return EmbeddingFailed("The model was let go of.")
