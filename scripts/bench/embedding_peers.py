"""What embedding is compared with, in an interpreter of its own: `PYTHON embedding_peers.py TEXTS.json MODEL_FOLDER`.

MODEL_FOLDER holds the model as its makers publish it, with model.onnx beside it. Prints the names of the libraries that
are installed here, then, for each name that it reads, the seconds that this library took for all texts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any


def main() -> None:
    """Load what there is, then measure on request."""
    texts = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(sys.argv[2])
    peers: dict[str, Callable[[list[str]], Any]] = {}
    for name, make in {"sentence-transformers": _sentence_transformers, "fastembed": _fastembed}.items():
        try:
            peers[name] = make(folder)
        except ImportError:
            continue
    print(json.dumps(list(peers)), flush=True)
    for line in sys.stdin:
        encode = peers[line.strip()]
        began = time.perf_counter()
        encode(texts)
        print(time.perf_counter() - began, flush=True)


def _sentence_transformers(folder: Path) -> Callable[[list[str]], Any]:
    library = import_module("sentence_transformers")
    model = library.SentenceTransformer(str(folder), device="cpu")
    return lambda texts: model.encode(texts, show_progress_bar=False)


def _fastembed(folder: Path) -> Callable[[list[str]], Any]:
    library = import_module("fastembed")
    description = import_module("fastembed.common.model_description")
    library.TextEmbedding.add_custom_model(
        model="local/all-MiniLM-L6-v2",
        pooling=description.PoolingType.MEAN,
        normalization=True,
        sources=description.ModelSource(hf="local/all-MiniLM-L6-v2"),
        dim=384,
        model_file="model.onnx",
    )
    model = library.TextEmbedding("local/all-MiniLM-L6-v2", specific_model_path=str(folder))
    return lambda texts: list(model.embed(texts))


if __name__ == "__main__":
    main()
