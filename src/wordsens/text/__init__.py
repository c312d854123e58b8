"""Texts: where they come from, and how they become matrices.

Names are loaded on first use: neither transformers nor datasets nor pyarrow is imported before it is needed.
"""

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Document": "wordsens.text.document",
    "Encoder": "wordsens.text.encoders",
    "MeaningPair": "wordsens.text.shipped_data",
    "MinimalPair": "wordsens.text.shipped_data",
    "TransformerEncoder": "wordsens.text.transformer_encoder",
    "correlated_text": "wordsens.text.synthetic",
    "embed": "wordsens.text.embedding",
    "gaussian_text": "wordsens.text.synthetic",
    "load_encoder": "wordsens.text.encoders",
    "meaning_pairs": "wordsens.text.shipped_data",
    "minimal_pairs": "wordsens.text.shipped_data",
    "orthogonal_text": "wordsens.text.synthetic",
    "read_documents": "wordsens.text.readers",
    "shipped_reviews": "wordsens.text.shipped_data",
    "stream_documents": "wordsens.text.readers",
    "texts_of_length": "wordsens.text.embedding",
    "vocabulary_rows": "wordsens.text.vocabulary",
}

__all__ = [
    "Document",
    "Encoder",
    "MeaningPair",
    "MinimalPair",
    "TransformerEncoder",
    "correlated_text",
    "embed",
    "gaussian_text",
    "load_encoder",
    "meaning_pairs",
    "minimal_pairs",
    "orthogonal_text",
    "read_documents",
    "shipped_reviews",
    "stream_documents",
    "texts_of_length",
    "vocabulary_rows",
]

if TYPE_CHECKING:
    from wordsens.text.document import Document
    from wordsens.text.embedding import embed, texts_of_length
    from wordsens.text.encoders import Encoder, load_encoder
    from wordsens.text.readers import read_documents, stream_documents
    from wordsens.text.shipped_data import MeaningPair, MinimalPair, meaning_pairs, minimal_pairs, shipped_reviews
    from wordsens.text.synthetic import correlated_text, gaussian_text, orthogonal_text
    from wordsens.text.transformer_encoder import TransformerEncoder
    from wordsens.text.vocabulary import vocabulary_rows


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'wordsens.text' has no attribute {name!r}; it offers {', '.join(__all__)}")
    value = getattr(importlib.import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
