"""From the text source of a spec to the text of one draw."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import torch

from wordsens.errors import InputError
from wordsens.experiments.texts.source import (
    CorrelatedText,
    DatasetText,
    Embedded,
    GaussianText,
    ReviewsText,
    TextSource,
)
from wordsens.seeds import derive_seed, generator
from wordsens.text import (
    Document,
    correlated_text,
    embed,
    gaussian_text,
    load_encoder,
    orthogonal_text,
    read_documents,
    shipped_reviews,
)
from wordsens.text.matrix import TextMatrix


def documents(source: Embedded) -> tuple[Document, ...]:
    """Every document of a real source, read once in a process; empty texts are passed over, labels are not needed.

    Raises InputError when they cannot be read.
    """
    return _read(_place(source))


def fingerprint(source: Embedded) -> str:
    """SHA-256 of the documents' texts and labels, in order: the same wherever the dataset lies."""
    return _digest(_place(source))


def texts_at_least(source: Embedded, n: int, *, seed: int, most: int) -> tuple[Document, ...]:
    """Up to `most` documents of at least n words, in an order that depends on the seed and n only.

    Tokenizes no more documents than it must.
    """
    found: list[Document] = []
    held = documents(source)
    order = torch.randperm(len(held), generator=generator(seed, "texts", n)).tolist()
    for index in order:
        if _words(_place(source), source.encoder, source.keep_special_tokens, index) >= n:
            found.append(held[index])
        if len(found) == most:
            break
    return tuple(found)


def load_text(source: TextSource, n: int, d: int, *, draw: int, seed: int) -> TextMatrix:
    """The text of one draw: n words, d coordinates, rows of length sqrt(d).

    The draws 0, 1, ... of a real source are distinct documents until it has no more of n words; then they
    repeat.

    Raises:
        InputError: when no document has n words, the encoder has fewer than d coordinates, or there is no such encoder.
    """
    own = derive_seed(seed, "text", n, d, draw)
    if isinstance(source, ReviewsText | DatasetText):
        found = texts_at_least(source, n, seed=seed, most=draw + 1)
        if not found:
            raise InputError(
                f"none of the {len(documents(source))} texts has `n` (={n}) words; choose a smaller n or longer texts"
            )
        (text,) = embed(
            [found[draw % len(found)]],
            encoder=source.encoder,
            layer=source.layer,
            max_words=n,
            special_tokens=source.keep_special_tokens,
        )
        return text.truncated(n, d)
    if isinstance(source, GaussianText):
        return gaussian_text(n, d, own)
    if isinstance(source, CorrelatedText):
        return correlated_text(n, d, source.mean_cosine, own)
    return orthogonal_text(n, d, own)


@dataclass(frozen=True)
class _Place:
    """What decides which documents are read; a path of None stands for the shipped reviews."""

    path: str | None = None
    text_column: str = "text"
    split: str | None = None
    limit: int | None = None


def _place(source: Embedded) -> _Place:
    if isinstance(source, DatasetText):
        return _Place(source.path, source.text_column, source.split, source.limit)
    return _Place()


@lru_cache(maxsize=8)
def _read(place: _Place) -> tuple[Document, ...]:
    if place.path is None:
        return tuple(shipped_reviews())
    read = read_documents(
        place.path,
        text_column=place.text_column,
        labels=False,
        split=place.split,
        limit=place.limit,
        skip_empty=True,
    )
    return tuple(read)


@lru_cache(maxsize=8)
def _digest(place: _Place) -> str:
    digest = hashlib.sha256()
    for document in _read(place):
        content = document.text.encode(errors="surrogatepass")
        digest.update(f"{document.label}:{len(content)}:".encode() + content)
    return digest.hexdigest()


@lru_cache(maxsize=1 << 17)
def _words(place: _Place, encoder: str, special_tokens: bool, index: int) -> int:
    tokens = load_encoder(encoder).tokenize(_read(place)[index].text)
    return len(tokens.ids) if special_tokens else tokens.words
