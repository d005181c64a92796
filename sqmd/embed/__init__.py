"""What computes vectors: the protocol that the rest of sqmd knows, one file for each kind behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(Protocol):
    """A model. `name` and `dimension` are stamped into the index, whose vectors no other model can be compared with."""

    @property
    def name(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    @property
    def max_tokens(self) -> int:
        """How much of a text the model reads, special tokens included."""

    def embed_documents(self, texts: Sequence[str]) -> list[NDArray[np.float32] | None]:
        """A vector of length 1 for each text, None where the model reads nothing in it. EmbedderDown."""

    def embed_query(self, text: str) -> NDArray[np.float32] | None:
        """The same for a query, which some models want marked as one."""

    def count_tokens(self, text: str) -> int:
        """Tokens of the whole text, special ones included, as the model counts them."""

    def close(self) -> None: ...
