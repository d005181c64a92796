"""What can go wrong with search by meaning. Neither keeps anybody from an answer: words rank then.

    ModelUnavailable       model_unavailable    there is no model to begin with; `reason` says why
    EmbeddingFailed        embedding_failed     the runtime failed on a text, or was closed

No text of a memory or of a query is in them, nor in what they were raised from.
"""

from __future__ import annotations

from squirrel_mcp.errors import SquirrelError


class ModelUnavailable(SquirrelError):
    """Search is by words, and `reason` says why, as the start-up line shows it.

    `manifest: <file name>`, `missing: <file name>`, `integrity: <file name>`, `runtime` or `off`.
    """

    code = "model_unavailable"

    def __init__(self, reason: str) -> None:
        super().__init__(f"There is no model to search by meaning with ({reason}).")
        self.reason = reason


class EmbeddingFailed(SquirrelError):
    code = "embedding_failed"
