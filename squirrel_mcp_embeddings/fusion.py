"""Words and meaning in one score (docs/ranking.md, section 3). Pure: arrays in, arrays out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from squirrel_mcp_embeddings.manifest import Model

Floats = NDArray[np.floating]

_WORDS = 0.3
_MEANING = 0.7
_FULL_WORDS = 1.0 - 1e-9  # sums of halves and tenths, divided: a full match may come out a hair below 1


def scores(lexical: Floats, cosines: Floats, weights: Floats, model: Model) -> NDArray[np.float64]:
    """One score in 0..1 for each memory.

    lexical: 0..1. cosines: NaN where a memory has no vector, which counts as no meaning at all. weights: w of
    age, 0..1, which discounts meaning only. Half of the scale belongs to memories that hold every word.
    """
    meaning = np.clip((cosines.astype(np.float64) - model.semantic_from) / model.semantic_span, 0.0, 1.0)
    fused = _WORDS * lexical + _MEANING * np.nan_to_num(meaning, nan=0.0) * weights
    return np.where(lexical >= _FULL_WORDS, 0.5 + fused / 2, fused / 2)
