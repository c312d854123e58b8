"""The texts of cells: shipped, generated, read from a dataset, or given; with labels where they are
to be learned."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import torch
from jaxtyping import Float
from pydantic import BeforeValidator, Field
from torch import Tensor

from wordsens.errors import InputError, argument, require_choice
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.embedding import embed, load_encoder
from wordsens.models.model_files import MINILM, model_digest
from wordsens.models.text_model import TextModel
from wordsens.seeds import derive_seed, generator
from wordsens.sweeps.spec import PathOrName, Strict, spelled_out
from wordsens.text import (
    Document,
    correlated_text,
    gaussian_text,
    meaning_pairs,
    orthogonal_text,
    read_documents,
    repeated_text,
    shipped_reviews,
)
from wordsens.text.matrix import TextMatrix

SENTIMENT = "sentiment"
LABEL_KINDS = (SENTIMENT, "linear", "random")


class Embedded(Strict, frozen=True):
    """Real texts, embedded word by word.

    Attributes:
        encoder: the name or path of the encoder.
        layer: 0 is the embedding layer's output.
        keep_special_tokens: whether [CLS] and [SEP] count as words.
        padded_below: None: texts of n words and more are taken. Else those of fewer than this many
            words: what they lack of n is filled with rows of [PAD], which count as words, as in the
            code published with the paper.
    """

    encoder: str = "minilm"
    layer: int = 0
    keep_special_tokens: bool = False
    padded_below: Annotated[int, Field(ge=1)] | None = None


class ShippedText(Embedded, frozen=True):
    """A text that ships with wordsens: a movie review, a question of up to 45 words, or a passage
    of 60 words and more. Questions and passages are the first texts of the shipped pairs."""

    kind: Literal["reviews", "questions", "passages"] = "reviews"


class DatasetText(Embedded, frozen=True):
    """A text of a file, a folder or a dataset of the hub, as `wordsens.text.readers` takes it.

    Attributes:
        path: what to read.
        text_column, label_column: the columns of a table; a label column of None is `label`, where
            labels are needed.
        split: of a source that has splits; None for its training texts.
        limit: how many documents to read; None for all.
    """

    kind: Literal["dataset"] = "dataset"
    path: PathOrName
    text_column: str = "text"
    label_column: str | None = None
    split: str | None = None
    limit: Annotated[int, Field(ge=1)] | None = None


class GivenText(Embedded, frozen=True):
    """The text itself, of `wordsens measure`: every draw is this text; map and search take the
    cell's own seed.

    Attributes:
        content: the characters.
        source: where it came from; changes no value.
        label: +1, -1 or None; changes no value.
    """

    kind: Literal["given"] = "given"
    content: str
    source: str = ""
    label: Literal[1, -1] | None = None


class IndependentText(Strict, frozen=True):
    """Rows of length sqrt(d): independent Gaussian ones, or orthogonal ones, which need n <= d."""

    kind: Literal["gaussian", "orthogonal"] = "gaussian"


class CorrelatedText(Strict, frozen=True):
    """Rows of length sqrt(d) with a chosen mean cosine."""

    kind: Literal["correlated"] = "correlated"
    mean_cosine: Annotated[float, Field(ge=0, lt=1)]


class RepeatedText(Strict, frozen=True):
    """Gaussian rows of length sqrt(d), of which `distinct` are different and the others repeat
    them."""

    kind: Literal["repeated"] = "repeated"
    distinct: Annotated[int, Field(ge=1)]


_MAKERS = {
    "gaussian": gaussian_text,
    "orthogonal": orthogonal_text,
    "correlated": correlated_text,
    "repeated": repeated_text,
}

TextSource = ShippedText | DatasetText | GivenText | IndependentText | CorrelatedText | RepeatedText

TEXT_KINDS = tuple(
    kind
    for source in get_args(TextSource)
    for kind in get_args(source.model_fields["kind"].annotation)
)

# Keys that say where real texts lie: a cell's spec has the hash of their content instead.
_PLACE = {"path", "text_column", "label_column", "split", "limit", "source", "label"}

# Keys that say how texts become rows, where the map does not read them itself.
ROW_KEYS = ("encoder", "layer", "keep_special_tokens", "padded_below")


def _known_kind(value: Any) -> Any:
    keys = spelled_out(value)
    if isinstance(keys, dict):
        require_choice("kind", keys.get("kind"), TEXT_KINDS)
    return keys


# A source, or its bare kind where that has no other keys: `text: gaussian`.
TextKey = Annotated[TextSource, Field(discriminator="kind"), BeforeValidator(_known_kind)]


def text_spec(text: Any, content: str | None, *, own_rows: bool) -> dict[str, Any]:
    """The keys of a text as a cell's spec has them: the digest of a real source's texts in place of
    where they lie, and that of its encoder's files.

    `own_rows`: whether the map makes the rows itself.
    """
    if content is None:
        return text.model_dump(mode="json")
    keys = text.model_dump(mode="json", exclude=_PLACE | set(ROW_KEYS if own_rows else ()))
    if not own_rows and text.encoder != MINILM:
        keys["encoder_content"] = model_digest(text.encoder)
    return {**keys, "content": content}


def documents(source: Embedded, *, labelled: bool = False) -> tuple[Document, ...]:
    """Every document of a real source, read once in a process; empty texts are passed over.

    Labels are read where they are needed (`labelled`) or where their column is named. InputError
    when that fails.
    """
    return _read(*_place(source, labelled))


def fingerprint(source: Embedded, *, labelled: bool = False) -> str:
    """SHA-256 of the documents' texts and labels, in order: the same wherever the dataset lies."""
    if isinstance(source, GivenText):
        return hashlib.sha256(source.content.encode(errors="surrogatepass")).hexdigest()
    return _digest(*_place(source, labelled))


def reads_labels(source: Embedded, labels: str) -> bool:
    """True where the labels of the source are read: where its sentiment is learned, and where they
    can be understood.

    Raises:
        InputError: the sentiment is to be learned, and the labels cannot be read.
    """
    try:
        documents(source, labelled=True)
    except InputError as error:
        if labels == SENTIMENT:
            remedy = f"{argument('labels', 'linear')} or 'random'"
            raise InputError(str(error).replace(argument("labels", False), remedy)) from error
        return False
    return True


def available(source: Embedded, n: int, *, labelled: bool = True) -> int:
    """The number of texts of at least n words that the source has."""
    return sum(1 for _ in long_enough(source, n, generator(0), labelled=labelled))


def texts_at_least(
    source: Embedded, n: int, *, seed: int, most: int, model: TransformerFeatures | None = None
) -> tuple[Document, ...]:
    """Up to `most` documents of at least n words, in an order that depends on the seed and n only.

    Words are those of the source's encoder, or the tokens of the `model`, its own ones included.
    """
    order = generator(seed, "texts", n)
    return tuple(islice(long_enough(source, n, order, model=model), most))


def long_enough(
    source: Embedded,
    n: int,
    order: torch.Generator,
    *,
    labelled: bool = False,
    model: TransformerFeatures | None = None,
) -> Iterator[Document]:
    """The documents that the source takes for n rows, in a random order. Tokenizes no more of them
    than are looked at."""
    found = documents(source, labelled=labelled)
    reader = load_encoder(source.encoder) if model is None else model.model
    special = source.keep_special_tokens or model is not None
    for index in torch.randperm(len(found), generator=order).tolist():
        words = _token_count(reader, found[index].text, special)
        if words >= n if source.padded_below is None else words < source.padded_below:
            yield found[index]


@lru_cache(maxsize=1 << 17)
def _token_count(model: TextModel, text: str, special: bool) -> int:
    return model.count_tokens(text, special=special)


def load_text(
    source: Any, n: int, d: int, *, draw: int, seed: int, model: TransformerFeatures | None = None
) -> TextMatrix:
    """The text of one draw: n words, d coordinates, rows of length sqrt(d); a real text's rows are
    a `model`'s own.

    The draws 0, 1, ... of a real source are distinct documents until it has no more of n words;
    then they repeat.

    Raises:
        InputError: no document has n words, the encoder has fewer than d coordinates, or there is
            no such encoder.
    """
    if not isinstance(source, Embedded):
        return _synthetic_text(source, n, d, derive_seed(seed, "text", n, d, draw))
    texts = texts_at_least(source, n, seed=seed, most=draw + 1, model=model)
    if not texts:
        fewer = "" if source.padded_below is None else f", or fewer than {source.padded_below}"
        raise InputError(
            f"none of the {len(documents(source))} texts has `n` (={n}) words{fewer}; choose a "
            "smaller n or other texts"
        )
    return text_rows([texts[draw % len(texts)]], source, n, d, model=model)[0]


def text_rows(
    texts: Sequence[Document],
    source: Embedded,
    n: int,
    d: int,
    *,
    dtype: torch.dtype = torch.float64,
    model: TransformerFeatures | None = None,
) -> list[TextMatrix]:
    """The first n words of each document as rows of d coordinates and length sqrt(d); of a `model`,
    its own rows."""
    if model is None:
        rows = embed(
            texts,
            encoder=source.encoder,
            layer=source.layer,
            max_words=n,
            special_tokens=source.keep_special_tokens,
            pad_to=None if source.padded_below is None else n,
            dtype=dtype,
        )
        if isinstance(source, GivenText) and all(text.rows.shape == (n, d) for text in rows):
            return rows  # as `embed` gives it, to the last digit: truncated scales the rows again
        return [text.truncated(n, d) for text in rows]
    around = model.model.own_tokens
    if n <= around:
        raise InputError(
            f"`n` (={n}) leaves no word beside the {around} tokens that the model adds; take a "
            "larger n"
        )
    rows = model.embed(texts, max_words=n - around)
    for text in rows:
        if text.rows.shape != (n, d):
            raise InputError(
                f"`d` (={d}) and `n` (={n}) do not fit the model, which makes "
                f"{tuple(text.rows.shape)} of a text; d must be {text.rows.shape[1]}"
            )
    return rows


def _synthetic_text(source: Any, n: int, d: int, seed: int) -> TextMatrix:
    options = source.model_dump(exclude={"kind"})
    return _MAKERS[source.kind](n, d, seed=seed, **options)


@dataclass(frozen=True)
class LabelledTexts:
    """Texts of one shape and their labels, +1 or -1; the first `held_out` are not for training."""

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
    source: Any,
    labels: str,
    shape: tuple[int, int],
    *,
    training: int,
    held_out: int,
    draw: int,
    seed: int,
    dtype: torch.dtype,
    model: TransformerFeatures | None = None,
) -> LabelledTexts:
    """The test texts and the training texts of one draw, (n, d) each, with labels of that kind.

    The held-out texts do not depend on how many others there are.

    Raises:
        InputError: too few texts of n words, or a text without a label where sentiment is to be
            learned.
    """
    (n, d), wanted = shape, training + held_out
    stream_seed = derive_seed(seed, "labelled texts", source.kind, n, d, draw)
    if isinstance(source, Embedded):
        labelled, order = reads_labels(source, labels), generator(stream_seed, "order")
        candidates = long_enough(source, n, order, labelled=labelled, model=model)
        chosen = tuple(islice(candidates, wanted))
        if len(chosen) < wanted:
            raise InputError(
                f"of {len(documents(source, labelled=labelled))} texts, {len(chosen)} have n = {n} "
                f"words, but {wanted} are wanted, the held-out ones included; give more or longer "
                "texts, or lower `texts` or `n`"
            )
        texts = text_rows(chosen, source, n, d, dtype=dtype, model=model)
    else:
        seeds = [derive_seed(stream_seed, index) for index in range(wanted)]
        texts = [_synthetic_text(source, n, d, text_seed).to(dtype) for text_seed in seeds]
    positive = torch.tensor(_positive(texts, labels, stream_seed))
    return LabelledTexts(tuple(texts), torch.where(positive, 1.0, -1.0).double(), held_out)


def _positive(texts: Sequence[TextMatrix], labels: str, seed: int) -> list[bool]:
    """Whether the label of each text is +1."""
    if labels == "linear":
        # The sign of <G, X>, G iid N(0, 1).
        stream, shape = generator(seed, "linear labels"), texts[0].rows.shape
        direction = torch.randn(shape, generator=stream, dtype=torch.float64)
        return [float((text.rows.double() * direction).sum()) >= 0 for text in texts]
    if labels == "random":
        stream = generator(seed, "random labels")
        return (torch.rand(len(texts), generator=stream, dtype=torch.float64) >= 0.5).tolist()
    for text in texts:
        if text.label is None:
            raise InputError(
                f"the text {text.source!r} has no label, so its sentiment cannot be learned; give "
                f"labelled texts, or {argument('labels', 'linear')} or 'random'"
            )
    return [text.label == 1 for text in texts]


def _place(source: Embedded, labelled: bool) -> tuple[Any, ...]:
    """What decides which documents are read: a source without what it says of their rows, whether
    labels are needed, and size and time of the file as it is now."""
    plain = source.model_copy(update=dict.fromkeys(ROW_KEYS))
    path = Path(getattr(source, "path", "")).expanduser()
    if not path.is_file():
        return plain, labelled, None
    status = path.stat()
    return plain, labelled, (status.st_size, status.st_mtime_ns, status.st_ino)


@lru_cache(maxsize=8)
def _read(source: Any, labelled: bool, _: object) -> tuple[Document, ...]:
    if source.kind == "given":
        return (Document(source.content, source.label, source.source),)
    if source.kind == "reviews":
        return tuple(shipped_reviews())
    if source.kind in ("questions", "passages"):
        questions = source.kind == "questions"
        pairs = [pair for pair in meaning_pairs() if (pair.length == "question") == questions]
        firsts = dict.fromkeys(pair.first for pair in pairs)
        return tuple(Document(text) for text in firsts if text.endswith("?") or not questions)
    keys = source.model_dump(include={"text_column", "label_column", "split", "limit"})
    labels = labelled or source.label_column is not None
    return tuple(read_documents(source.path, labels=labels, skip_empty=True, **keys))


@lru_cache(maxsize=8)
def _digest(*place: Any) -> str:
    contents = [(text.label, text.text.encode(errors="surrogatepass")) for text in _read(*place)]
    parts = [f"{label}:{len(content)}:".encode() + content for label, content in contents]
    return hashlib.sha256(b"".join(parts)).hexdigest()
