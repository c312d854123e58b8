"""From the text source of a spec to labelled texts: some held out, the others to be learned."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError
from wordsens.experiments.texts.source import (
    CorrelatedText,
    DatasetText,
    Embedded,
    GaussianText,
    ReviewsText,
    TextSource,
)
from wordsens.generalization import linear_labels, random_labels
from wordsens.seeds import derive_seed, generator
from wordsens.text import (
    Document,
    Encoder,
    correlated_text,
    embed,
    gaussian_text,
    load_encoder,
    orthogonal_text,
    read_documents,
    shipped_reviews,
)
from wordsens.text.matrix import TextMatrix

LABEL_KINDS = ("sentiment", "linear", "random")


@dataclass(frozen=True)
class LabelledTexts:
    """Texts of one shape and their labels; the first `held_out` are not for training.

    Attributes:
        texts: TextMatrix objects of n words and d coordinates.
        labels: one a text, +1 or -1.
        held_out: how many of them the model does not see.
    """

    texts: tuple[TextMatrix, ...]
    labels: Float[Tensor, " m"]
    held_out: int

    @property
    def training(self) -> tuple[tuple[TextMatrix, ...], Float[Tensor, " N"]]:
        """The texts to be learned, and their labels."""
        return self.texts[self.held_out :], self.labels[self.held_out :]

    @property
    def test(self) -> tuple[tuple[TextMatrix, ...], Float[Tensor, " h"]]:
        """The texts held out, and their labels."""
        return self.texts[: self.held_out], self.labels[: self.held_out]


def labelled_texts(
    source: TextSource,
    labels: str,
    n: int,
    d: int,
    count: int,
    *,
    held_out: int,
    draw: int,
    seed: int,
    dtype: torch.dtype,
) -> LabelledTexts:
    """`held_out` test texts and `count` training texts of one draw; the test texts do not depend on `count`.

    Raises:
        InputError: too few texts of n words, or a text without a label where sentiment is to be learned.
    """
    own = derive_seed(seed, "labelled texts", source.kind, n, d, draw)
    wanted = held_out + count
    if isinstance(source, ReviewsText | DatasetText):
        documents = _long_documents(source, n, own, wanted)
        made = embed(
            documents,
            encoder=source.encoder,
            layer=source.layer,
            max_words=n,
            special_tokens=source.keep_special_tokens,
            dtype=dtype,
        )
        texts = tuple(text.truncated(n, d) for text in made)
    else:
        texts = tuple(_synthetic(source, n, d, derive_seed(own, index)).to(dtype) for index in range(wanted))
    if labels == "linear":
        values = linear_labels(list(texts), own)
    elif labels == "random":
        values = random_labels(wanted, own)
    else:
        values = _sentiment(texts)
    return LabelledTexts(texts, values, held_out)


def available(source: Embedded, n: int) -> int:
    """How many texts of at least n words the source has."""
    held = _documents(source)
    encoder = load_encoder(source.encoder)
    return sum(_words(encoder, document.text, source.keep_special_tokens) >= n for document in held)


def labelled_fingerprint(source: Embedded) -> str:
    """SHA-256 of the texts and their labels, in order."""
    digest = hashlib.sha256()
    for document in _documents(source):
        content = document.text.encode(errors="surrogatepass")
        digest.update(f"{document.label}:{len(content)}:".encode() + content)
    return digest.hexdigest()


def _sentiment(texts: tuple[TextMatrix, ...]) -> Float[Tensor, " m"]:
    for text in texts:
        if text.label is None:
            raise InputError(
                f"the text {text.source!r} has no label, so its sentiment cannot be learned; give labelled texts, or "
                "labels='linear' or 'random'"
            )
    return torch.tensor([float(text.label or 0) for text in texts], dtype=torch.float64)


def _synthetic(source: TextSource, n: int, d: int, seed: int) -> TextMatrix:
    if isinstance(source, GaussianText):
        return gaussian_text(n, d, seed)
    if isinstance(source, CorrelatedText):
        return correlated_text(n, d, source.mean_cosine, seed)
    return orthogonal_text(n, d, seed)


def _long_documents(source: Embedded, n: int, seed: int, wanted: int) -> list[Document]:
    held = _documents(source)
    encoder = load_encoder(source.encoder)
    found: list[Document] = []
    for index in torch.randperm(len(held), generator=generator(seed, "order")).tolist():
        if _words(encoder, held[index].text, source.keep_special_tokens) >= n:
            found.append(held[index])
        if len(found) == wanted:
            return found
    raise InputError(
        f"of {len(held)} texts, {len(found)} have n = {n} words, but {wanted} are wanted, the held-out ones included; "
        "give more or longer texts, or lower `texts` or `n`"
    )


@lru_cache(maxsize=1 << 17)
def _words(encoder: Encoder, text: str, special_tokens: bool) -> int:
    tokens = encoder.tokenize(text)
    return len(tokens.ids) if special_tokens else tokens.words


@lru_cache(maxsize=4)
def _read(path: str | None, text_column: str, split: str | None, limit: int | None) -> tuple[Document, ...]:
    if path is None:
        return tuple(shipped_reviews())
    read = read_documents(path, text_column=text_column, split=split, limit=limit, skip_empty=True)
    return tuple(read)


def _documents(source: Embedded) -> tuple[Document, ...]:
    if isinstance(source, DatasetText):
        return _read(source.path, source.text_column, source.split, source.limit)
    return _read(None, "text", None, None)
