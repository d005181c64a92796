"""Vectors from an Ollama server: POST /api/embed, in batches."""

from __future__ import annotations

import math
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from sqmd.config_values import without_login
from sqmd.embed.local import CompanionEmbedder
from sqmd.errors import EmbedderDown

if TYPE_CHECKING:
    import httpx
    import numpy as np
    from numpy.typing import NDArray

CONNECT_SECONDS = 5.0
READ_SECONDS = 300.0  # the first request waits until the model is loaded
# A text is halved no further: what a server refuses of so few characters is not refused for its length.
SHORTEST = 32
# Ollama tells nobody how many tokens a text has. The companion's tokenizer does, and other vocabularies need up to so
# many times more of them for prose.
TOKENS_FACTOR = 1.2


class OllamaEmbedder:
    """Thread-safe. The dimension is that of the first reply: asking for it before costs a request."""

    def __init__(self, base_url: str, model: str, batch_size: int) -> None:
        self._url, self._model, self._batch_size = base_url.rstrip("/"), model, batch_size
        self._shown = without_login(self._url)
        self._dimension = 0
        self._tokens = CompanionEmbedder()
        self._making = threading.Lock()
        self._client: httpx.Client | None = None

    @property
    def name(self) -> str:
        return f"ollama/{self._model}"

    @property
    def dimension(self) -> int:
        if not self._dimension:
            self._rows(["dimension"])
        return self._dimension

    @property
    def max_tokens(self) -> int:
        """Ollama tells nobody, and cuts by itself what is too long."""
        return sys.maxsize

    def embed_documents(self, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        vectors: list[NDArray[np.float32] | None] = [None] * len(texts)
        cleaned = {place: text for place, text in enumerate(map(_clean, texts)) if text.strip()}
        places = list(cleaned)
        for start in range(0, len(places), self._batch_size):
            batch = places[start : start + self._batch_size]
            rows = self._rows([cleaned[place] for place in batch])
            for place, vector in zip(batch, rows, strict=True):
                vectors[place] = vector
        return vectors

    def embed_query(self, text: str) -> NDArray[np.float32] | None:
        return self.embed_documents([text])[0]

    def count_tokens(self, text: str) -> int:
        """An estimate, on the safe side."""
        return math.ceil(self._tokens.count_tokens(text) * TOKENS_FACTOR)

    def close(self) -> None:
        with self._making:
            if self._client is not None:
                self._client.close()
        self._tokens.close()

    def _rows(self, texts: list[str]) -> list[NDArray[np.float32] | None]:
        """Of length 1, in the order of the texts; None for a vector of zeros, which has no direction."""
        reply = self._post(texts)
        if reply.status_code == 400:
            return list(self._of_smaller(texts, reply))
        if reply.status_code == 404:
            raise EmbedderDown(f"Ollama at {self._shown} has no model {self._model}: run ollama pull {self._model}.")
        if reply.status_code != 200:
            raise self._refused(reply)
        return self._vectors(reply, len(texts))

    def _of_smaller(self, texts: list[str], refusal: httpx.Response) -> Iterator[NDArray[np.float32] | None]:
        """One text among them is too long, which not every release cuts by itself: halve the batch, then the text."""
        if len(texts) > 1:
            middle = len(texts) // 2
            yield from self._rows(texts[:middle])
            yield from self._rows(texts[middle:])
        elif len(texts[0]) <= SHORTEST:
            raise self._refused(refusal)
        else:
            yield from self._rows([texts[0][: len(texts[0]) // 2]])

    def _post(self, texts: list[str]) -> httpx.Response:
        import httpx

        with self._making:
            if self._client is None:
                # Proxies of the environment are for the web; this is a machine of the user's.
                timeout = httpx.Timeout(READ_SECONDS, connect=CONNECT_SECONDS)
                self._client = httpx.Client(trust_env=False, timeout=timeout)
        try:
            body = {"model": self._model, "input": texts, "truncate": True}
            return self._client.post(f"{self._url}/api/embed", json=body)
        except (httpx.HTTPError, httpx.InvalidURL, RuntimeError) as error:  # RuntimeError: closed meanwhile
            # What is no URL is quoted there, a password included.
            reason = "" if isinstance(error, httpx.InvalidURL) else str(error)
            raise EmbedderDown(
                f"Ollama cannot be reached at {self._shown} ({reason or type(error).__name__}): start it, or set "
                "embeddings.backend to onnx."
            ) from error

    def _vectors(self, reply: httpx.Response, count: int) -> list[NDArray[np.float32] | None]:
        import numpy as np

        try:
            rows = reply.json()["embeddings"]
            matrix = np.array(rows, np.float64)
        except (ValueError, TypeError, KeyError, OverflowError) as error:
            raise self._no_vectors("no list of vectors") from error
        if matrix.ndim != 2 or len(matrix) != count or matrix.shape[1] == 0:
            raise self._no_vectors(f"not {count} vectors of one length")
        dimension = matrix.shape[1]
        if self._dimension and dimension != self._dimension:
            raise self._no_vectors(f"vectors of {dimension} numbers after such of {self._dimension}")
        with np.errstate(all="ignore"):
            norms = np.linalg.norm(matrix, axis=1)
        if not np.isfinite(norms).all():
            raise self._no_vectors("vectors with something in them that is no number")
        self._dimension = dimension
        return [(row / norm).astype(np.float32) if norm else None for row, norm in zip(matrix, norms, strict=True)]

    def _refused(self, reply: httpx.Response) -> EmbedderDown:
        return EmbedderDown(f"Ollama at {self._shown} answered {reply.status_code} for {self._model}{_said(reply)}.")

    def _no_vectors(self, what: str) -> EmbedderDown:
        return EmbedderDown(f"Ollama at {self._shown} sent {what} for {self._model}.")


def _said(reply: httpx.Response) -> str:
    """What the server gives as its reason, cut to a line."""
    try:
        body: Any = reply.json()
    except ValueError:
        return ""
    reason = body.get("error") if isinstance(body, dict) else None
    return f": {reason[:200].rstrip('.')}" if isinstance(reason, str) and reason else ""


def _clean(text: str) -> str:
    """Without lone surrogates, which no JSON in UTF-8 can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
