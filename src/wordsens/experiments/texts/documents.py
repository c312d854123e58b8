"""From the text source of a spec to its documents, and to the text of one draw."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch

from wordsens.errors import InputError
from wordsens.experiments.texts.source import (
    CorrelatedText,
    DatasetText,
    Embedded,
    GaussianText,
    GivenText,
    RepeatedText,
    TextSource,
)
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.seeds import derive_seed, generator
from wordsens.text import (
    Document,
    correlated_text,
    embed,
    gaussian_text,
    load_encoder,
    orthogonal_text,
    read_documents,
    repeated_text,
    shipped_reviews,
)
from wordsens.text.matrix import TextMatrix


def documents(source: Embedded, *, labelled: bool = False) -> tuple[Document, ...]:
    """Every document of a real source, read once in a process; empty texts are passed over.

    Labels are read where they are needed (`labelled`) or where their column is named. InputError when that fails.
    """
    return _read(_place(source, labelled))


def fingerprint(source: Embedded, *, labelled: bool = False) -> str:
    """SHA-256 of the documents' texts and labels, in order: the same wherever the dataset lies."""
    if isinstance(source, GivenText):
        return hashlib.sha256(source.content.encode(errors="surrogatepass")).hexdigest()
    return _digest(_place(source, labelled))


def texts_at_least(
    source: Embedded, n: int, *, seed: int, most: int, model: TransformerFeatures | None = None
) -> tuple[Document, ...]:
    """Up to `most` documents of at least n words, in an order that depends on the seed and n only.

    Tokenizes no more documents than it must. Words are those of the source's encoder, or the tokens of the `model`,
    its own ones included.
    """
    return long_documents(source, n, generator(seed, "texts", n), most=most, model=model)


def long_documents(
    source: Embedded,
    n: int,
    stream: torch.Generator,
    *,
    most: int,
    labelled: bool = False,
    model: TransformerFeatures | None = None,
) -> tuple[Document, ...]:
    """Up to `most` documents that the source takes for n rows, in the order that the stream of random numbers gives."""
    found: list[Document] = []
    place = _place(source, labelled)
    held = _read(place)
    for index in torch.randperm(len(held), generator=stream).tolist():
        if source.takes(_length(place, source, model, index), n):
            found.append(held[index])
        if len(found) == most:
            break
    return tuple(found)


def available(source: Embedded, n: int, *, labelled: bool = True) -> int:
    """The number of texts of at least n words that the source has."""
    place = _place(source, labelled)
    return sum(source.takes(_length(place, source, None, index), n) for index in range(len(_read(place))))


def text_rows(
    found: Sequence[Document],
    source: Embedded,
    n: int,
    d: int,
    *,
    dtype: torch.dtype = torch.float64,
    model: TransformerFeatures | None = None,
) -> list[TextMatrix]:
    """The first n words of each document as rows of d coordinates and length sqrt(d); of a `model`, its own rows."""
    if model is None:
        made = embed(
            found,
            encoder=source.encoder,
            layer=source.layer,
            max_words=n,
            special_tokens=source.keep_special_tokens,
            pad_to=None if source.padded_below is None else n,
            dtype=dtype,
        )
        if isinstance(source, GivenText) and all(text.rows.shape == (n, d) for text in made):
            return made  # as `embed` gives it, to the last digit: truncated scales the rows anew
        return [text.truncated(n, d) for text in made]
    around = 0 if model.reader is None else model.reader.own_tokens
    if n - around < 1:
        raise InputError(f"`n` (={n}) leaves no word beside the {around} tokens that the model adds; take a larger n")
    made = model.embed(found, max_words=n - around)
    for text in made:
        if text.rows.shape != (n, d):
            raise InputError(
                f"`d` (={d}) and `n` (={n}) do not fit the model, which makes {tuple(text.rows.shape)} of a text; "
                f"d must be {text.rows.shape[1]}"
            )
    return made


def load_text(
    source: TextSource, n: int, d: int, *, draw: int, seed: int, model: TransformerFeatures | None = None
) -> TextMatrix:
    """The text of one draw: n words, d coordinates, rows of length sqrt(d); a real text's rows are a `model`'s own.

    The draws 0, 1, ... of a real source are distinct documents until it has no more of n words; then they
    repeat.

    Raises:
        InputError: when no document has n words, the encoder has fewer than d coordinates, or there is no such encoder.
    """
    if isinstance(source, Embedded):
        found = texts_at_least(source, n, seed=seed, most=draw + 1, model=model)
        if not found:
            wanted = f"`n` (={n}) words" if source.padded_below is None else f"fewer than {source.padded_below} words"
            raise InputError(
                f"none of the {len(documents(source))} texts has {wanted}; choose a smaller n or longer texts"
            )
        return text_rows([found[draw % len(found)]], source, n, d, model=model)[0]
    return synthetic_text(source, n, d, derive_seed(seed, "text", n, d, draw))


def synthetic_text(source: TextSource, n: int, d: int, seed: int) -> TextMatrix:
    """A text of a source that is not real."""
    if isinstance(source, GaussianText):
        return gaussian_text(n, d, seed)
    if isinstance(source, CorrelatedText):
        return correlated_text(n, d, source.mean_cosine, seed)
    if isinstance(source, RepeatedText):
        return repeated_text(n, d, source.distinct, seed)
    return orthogonal_text(n, d, seed)


@dataclass(frozen=True)
class _Place:
    """The keys that decide which documents are read; neither a path nor a given text stands for the shipped reviews."""

    path: str | None = None
    text_column: str = "text"
    label_column: str | None = None
    labels: bool = False
    split: str | None = None
    limit: int | None = None
    given: Document | None = None


def _place(source: Embedded, labelled: bool) -> _Place:
    if isinstance(source, GivenText):
        return _Place(given=Document(source.content, source.label, source.source))
    if not isinstance(source, DatasetText):
        return _Place()
    labels = labelled or source.label_column is not None
    return _Place(source.path, source.text_column, source.label_column, labels, source.split, source.limit)


@lru_cache(maxsize=8)
def _read(place: _Place) -> tuple[Document, ...]:
    if place.given is not None:
        return (place.given,)
    if place.path is None:
        return tuple(shipped_reviews())
    read = read_documents(
        place.path,
        text_column=place.text_column,
        label_column=place.label_column,
        labels=place.labels,
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


def _length(place: _Place, source: Embedded, model: TransformerFeatures | None, index: int) -> int:
    if model is None:
        return _words(place, source.encoder, source.keep_special_tokens, index)
    assert model.reader is not None, "a model by name has its tokenizer"
    return model.reader.count(_read(place)[index].text)


@lru_cache(maxsize=1 << 17)
def _words(place: _Place, encoder: str, special_tokens: bool, index: int) -> int:
    tokens = load_encoder(encoder).tokenize(_read(place)[index].text)
    return len(tokens.ids) if special_tokens else tokens.words
