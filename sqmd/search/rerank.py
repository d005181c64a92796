"""An ONNX cross-encoder: reads the query and a text together, and tells how well the one answers the other."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sqmd.embed.download import HUB
from sqmd.errors import ConfigError, EmbedderDown

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    import numpy as np
    from numpy.typing import NDArray

    from sqmd.config import Config
    from sqmd.embed.hub import HubFiles
    from squirrel_mcp_embeddings.embedder import Unit
    from squirrel_mcp_embeddings.runtime import Session

# Of a query and of a text, in characters: far more than any model reads, and tokenising all of a book takes seconds.
_MAX_CHARACTERS = 1 << 16


def make(config: Config, hub: str = HUB) -> CrossEncoder:
    """The one that the configuration names; nothing is loaded or downloaded yet. ConfigError if it is not known."""
    from sqmd.embed import catalog
    from sqmd.embed.hub import HubFiles

    name = config.search.rerank_model
    model = catalog.cross_encoder(name)
    if model is None:
        known = ", ".join(each.name for each in catalog.CROSS_ENCODERS)
        raise ConfigError(f"search.rerank_model is {name}, which is not known here; known is {known}.")
    return CrossEncoder(HubFiles(model, config.paths.model_cache_dir, hub), model.max_tokens)


class _Loaded(NamedTuple):
    tokenizer: Any
    session: Session
    workers: ThreadPoolExecutor


class CrossEncoder:
    """Thread-safe. It is loaded, and before that downloaded, when it is first asked."""

    def __init__(self, files: HubFiles, max_tokens: int) -> None:
        self._files, self._max_tokens = files, max_tokens
        self._loading = threading.Lock()
        self._loaded: _Loaded | None = None

    def scores(self, query: str, texts: Sequence[str]) -> list[float]:
        """One for each text, the higher the better; comparable within one call. EmbedderDown.

        Of a pair that is too long, the longer one loses its end until it is not.
        """
        if not texts:
            return []
        from squirrel_mcp_embeddings.embedder import in_units
        from squirrel_mcp_embeddings.token_counter import clean

        loaded = self._load()
        asked = clean(query[:_MAX_CHARACTERS])
        pairs = loaded.tokenizer.encode_batch([(asked, clean(text[:_MAX_CHARACTERS])) for text in texts])
        types = {place: pair.type_ids for place, pair in enumerate(pairs)}
        units = in_units({place: pair.ids for place, pair in enumerate(pairs)})
        scores = [0.0] * len(texts)
        computed = loaded.workers.map(lambda unit: _compute(loaded.session, unit, types), units)
        for unit, found in zip(units, computed, strict=True):
            for place, score in zip(unit.places, found, strict=True):
                scores[place] = float(score)
        return scores

    def close(self) -> None:
        with self._loading:
            if self._loaded is not None:
                self._loaded.workers.shutdown(cancel_futures=True)
                self._loaded = None

    def _load(self) -> _Loaded:
        from sqmd.embed.local import told

        with self._loading:
            if self._loaded is None:
                with told():
                    self._loaded = self._made()
            return self._loaded

    def _made(self) -> _Loaded:
        from concurrent.futures import ThreadPoolExecutor

        from squirrel_mcp_embeddings.embedder import WORKERS
        from squirrel_mcp_embeddings.runtime import Session
        from squirrel_mcp_embeddings.token_counter import read_tokenizer

        tokenizer = read_tokenizer(self._files.tokenizer())
        tokenizer.no_padding()
        tokenizer.enable_truncation(self._max_tokens, strategy="longest_first")
        tokenizer.encode_special_tokens = True  # a `[SEP]` that somebody wrote is text
        session = Session(self._files.weights(), threads=1, beside=self._files.beside())
        return _Loaded(tokenizer, session, ThreadPoolExecutor(WORKERS, thread_name_prefix="rerank"))


def _compute(session: Session, unit: Unit, types: dict[int, list[int]]) -> NDArray[np.float32]:
    """(pairs,)"""
    import numpy as np

    from sqmd.embed.local import told

    ids = np.zeros((len(unit.tokens), max(map(len, unit.tokens))), np.int64)
    mask, kinds = np.zeros_like(ids), np.zeros_like(ids)
    for row, (place, tokens) in enumerate(zip(unit.places, unit.tokens, strict=True)):
        ids[row, : len(tokens)] = tokens
        mask[row, : len(tokens)] = 1
        kinds[row, : len(tokens)] = types[place]
    with told():
        logits = session.run(ids, mask, kinds)
    if logits.size != len(ids) or not np.isfinite(logits).all():
        raise EmbedderDown("The reranking model computed something that is no score for each text.")
    return logits.reshape(len(ids))
