"""A model that is made in a moment: BERT's graph with random weights, a tokenizer that knows letters and few words."""

from __future__ import annotations

import string
from dataclasses import replace

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from scripts.bench.random_bert import random_bert
from scripts.export_minilm import export
from squirrel_mcp_embeddings import manifest
from squirrel_mcp_embeddings.model_files import LoadedFiles, own_home

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = ("the", "router", "is", "in", "attic", "oat", "milk", "window", "seat", "sep", "##ing")
DIMENSION = 48
MAX_TOKENS = 512


def small_weights(vocabulary: int) -> bytes:
    """The ONNX file."""
    return export(random_bert(layers=2, hidden=DIMENSION, inner=96, vocabulary=vocabulary))


def small_tokenizer() -> Tokenizer:
    """WordPiece as BERT's, padding to 128 tokens and truncating there, as the file of MiniLM does."""
    letters = string.ascii_lowercase + string.digits
    pieces = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters), *string.punctuation, *WORDS]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, vocabulary[name]) for name in ("[CLS]", "[SEP]")]
    )
    tokenizer.add_special_tokens(list(SPECIAL))
    tokenizer.enable_padding(length=128)
    tokenizer.enable_truncation(128)
    return tokenizer


def small_files() -> LoadedFiles:
    """What `embedder.load` takes."""
    model = manifest.parse((own_home() / manifest.NAME).read_bytes())[0]
    tokenizer = small_tokenizer()
    return LoadedFiles(
        replace(model, id="small", dimension=DIMENSION, max_tokens=MAX_TOKENS),
        small_weights(tokenizer.get_vocab_size()),
        tokenizer.to_str().encode("utf-8"),
    )
