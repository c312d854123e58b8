"""The texts of cells: shipped, generated, read from a dataset, or given; with labels where they are
to be learned."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import torch
from jaxtyping import Float
from pydantic import AfterValidator, BeforeValidator, Field
from torch import Tensor

from wordsens.errors import InputError, require_choice
from wordsens.files import named_path
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.models.embedding import embed, load_encoder
from wordsens.models.model_files import MINILM, model_digest
from wordsens.models.text_model import TextModel
from wordsens.seeds import derive_seed, generator
from wordsens.sweeps.spec import Strict, spelled_out
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
from wordsens.text.tables import require_column, require_table, table_rows

SENTIMENT = "sentiment"
LABEL_KINDS = (SENTIMENT, "linear", "random")


def _absolute(path: str) -> str:
    """A path that exists here as an absolute one: a worker may run in another folder."""
    return str(Path(path).absolute()) if Path(path).exists() else path


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

    def takes(self, words: int, n: int) -> bool:
        """True for a text of so many words, where texts of n rows are wanted."""
        return words >= n if self.padded_below is None else words < self.padded_below


class ReviewsText(Embedded, frozen=True):
    """A movie review that ships with wordsens."""

    kind: Literal["reviews"] = "reviews"


class QuestionsText(Embedded, frozen=True):
    """A question that ships with wordsens, of up to 45 words: the first texts of its pairs."""

    kind: Literal["questions"] = "questions"


class PassagesText(Embedded, frozen=True):
    """A passage that ships with wordsens, of 60 words and more: the first texts of its paragraphs'
    and pages' pairs."""

    kind: Literal["passages"] = "passages"


class DatasetText(Embedded, frozen=True):
    """A text of a file, a folder or a dataset of the hub, as `wordsens.text.readers` takes it.

    Attributes:
        path: what to read.
        text_column, label_column: the columns of a table; a label column of None is `label`, where
            labels are needed.
        split: of a source that has splits; None for its training texts.
        limit: how many documents to read; None for all.
        where: COLUMN=VALUE, the rows of a table that are read; None for all.
    """

    kind: Literal["dataset"] = "dataset"
    path: Annotated[str, AfterValidator(_absolute)]
    text_column: str = "text"
    label_column: str | None = None
    split: str | None = None
    limit: Annotated[int, Field(ge=1)] | None = None
    where: str | None = None


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


class GaussianText(Strict, frozen=True):
    """Rows with iid N(0, 1) entries, rescaled to sqrt(d)."""

    kind: Literal["gaussian"] = "gaussian"


class OrthogonalText(Strict, frozen=True):
    """Orthogonal rows of length sqrt(d); needs n <= d."""

    kind: Literal["orthogonal"] = "orthogonal"


class CorrelatedText(Strict, frozen=True):
    """Rows of length sqrt(d) with a chosen mean cosine."""

    kind: Literal["correlated"] = "correlated"
    mean_cosine: Annotated[float, Field(ge=0, lt=1)]


class RepeatedText(Strict, frozen=True):
    """Gaussian rows of length sqrt(d), of which `distinct` are different and the others repeat
    them."""

    kind: Literal["repeated"] = "repeated"
    distinct: Annotated[int, Field(ge=1)]


_TYPES = (
    ReviewsText,
    QuestionsText,
    PassagesText,
    DatasetText,
    GivenText,
    GaussianText,
    OrthogonalText,
    CorrelatedText,
    RepeatedText,
)
TEXT_KINDS = tuple(kind.model_fields["kind"].default for kind in _TYPES)

_PLACE = ("path", "text_column", "label_column", "split", "limit", "source", "label")
"""Keys that say where real texts lie: their content stands for them in a cell's spec."""

_ROWS = ("encoder", "layer", "keep_special_tokens", "padded_below")
"""Keys that say how texts become rows, where the map does not read them itself."""


def _known_kind(value: Any) -> Any:
    described = spelled_out(value)
    if isinstance(described, dict):
        if "kind" not in described:
            raise InputError(
                f"`text` (={described!r}) has no kind; give one of {', '.join(TEXT_KINDS)}"
            )
        require_choice("kind", described["kind"], TEXT_KINDS)
    return described


TextSource = Annotated[
    ReviewsText
    | QuestionsText
    | PassagesText
    | DatasetText
    | GivenText
    | GaussianText
    | OrthogonalText
    | CorrelatedText
    | RepeatedText,
    Field(discriminator="kind"),
]
"""A source, or its bare kind where that has no other keys: `text: gaussian`."""

TextKey = Annotated[TextSource, BeforeValidator(_known_kind)]


def text_spec(text: Any, content: str | None, *, own_rows: bool) -> dict[str, Any]:
    """The keys of a text as a cell's spec has them: the digest of a real source's texts in place of
    where they lie, and that of its encoder's files.

    `own_rows`: whether the map makes the rows itself. A text that then says how it becomes rows is
    refused.
    """
    keys = text.model_dump(mode="json")
    if content is None:
        return keys
    left = _PLACE + (_ROWS if own_rows else ())
    keys = {name: value for name, value in keys.items() if name not in left}
    if not own_rows and text.encoder != MINILM:
        keys["encoder_content"] = model_digest(text.encoder)
    return {**keys, "content": content}


def require_own_rows(text: Any) -> None:
    """InputError where a text says how it becomes rows, and the map makes them itself."""
    for name in _ROWS:
        if name in text.model_fields_set:
            raise InputError(
                f"`{name}` is not for the map 'model', which makes the rows of its texts itself; "
                "drop it"
            )


def documents(source: Embedded, *, labelled: bool = False) -> tuple[Document, ...]:
    """Every document of a real source, read once in a process; empty texts are passed over.

    Labels are read where they are needed (`labelled`) or where their column is named. InputError
    when that fails.
    """
    return _read(_place(source, labelled))


def fingerprint(source: Embedded, *, labelled: bool = False) -> str:
    """SHA-256 of the documents' texts and labels, in order: the same wherever the dataset lies."""
    if isinstance(source, GivenText):
        return hashlib.sha256(source.content.encode(errors="surrogatepass")).hexdigest()
    return _digest(_place(source, labelled))


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
            raise InputError(
                str(error).replace("labels=False", "labels='linear' or 'random'")
            ) from error
        return False
    return True


def texts_at_least(
    source: Embedded, n: int, *, seed: int, most: int, model: TransformerFeatures | None = None
) -> tuple[Document, ...]:
    """Up to `most` documents of at least n words, in an order that depends on the seed and n only.

    Words are those of the source's encoder, or the tokens of the `model`, its own ones included.
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
    """Up to `most` documents that the source takes for n rows, in the order that the stream of
    random numbers gives.

    Tokenizes no more documents than it must.
    """
    chosen: list[Document] = []
    place, reader = _place(source, labelled), model or load_encoder(source.encoder)
    read = _read(place)
    for index in torch.randperm(len(read), generator=stream).tolist():
        if source.takes(_length(place, source, reader, index), n):
            chosen.append(read[index])
        if len(chosen) == most:
            break
    return tuple(chosen)


def available(source: Embedded, n: int, *, labelled: bool = True) -> int:
    """The number of texts of at least n words that the source has."""
    place, reader = _place(source, labelled), load_encoder(source.encoder)
    return sum(
        source.takes(_length(place, source, reader, index), n) for index in range(len(_read(place)))
    )


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
            return rows  # as `embed` gives it, to the last digit: truncated scales the rows anew
        return [text.truncated(n, d) for text in rows]
    around = model.model.own_tokens
    if n - around < 1:
        raise InputError(
            f"`n` (={n}) leaves no word beside the {around} tokens that the model adds; take a "
            "larger n"
        )
    rows = model.embed(texts, max_words=n - around)
    for text in rows:
        if text.rows.shape != (n, d):
            raise InputError(
                f"`d` (={d}) and `n` (={n}) do not fit the model, which makes "
                f"{tuple(text.rows.shape)} of a text; "
                f"d must be {text.rows.shape[1]}"
            )
    return rows


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
        return synthetic_text(source, n, d, derive_seed(seed, "text", n, d, draw))
    texts = texts_at_least(source, n, seed=seed, most=draw + 1, model=model)
    if not texts:
        wanted = (
            f"`n` (={n}) words"
            if source.padded_below is None
            else f"fewer than {source.padded_below} words"
        )
        raise InputError(
            f"none of the {len(documents(source))} texts has {wanted}; choose a smaller n or "
            "longer texts"
        )
    return text_rows([texts[draw % len(texts)]], source, n, d, model=model)[0]


def synthetic_text(source: Any, n: int, d: int, seed: int) -> TextMatrix:
    """A text of a source that is not real."""
    if isinstance(source, GaussianText):
        return gaussian_text(n, d, seed)
    if isinstance(source, CorrelatedText):
        return correlated_text(n, d, source.mean_cosine, seed)
    if isinstance(source, RepeatedText):
        return repeated_text(n, d, source.distinct, seed)
    return orthogonal_text(n, d, seed)


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
        labelled = reads_labels(source, labels)
        chosen = long_documents(
            source, n, generator(stream_seed, "order"), most=wanted, labelled=labelled, model=model
        )
        if len(chosen) < wanted:
            raise InputError(
                f"of {len(documents(source, labelled=labelled))} texts, {len(chosen)} have n = {n} "
                "words, but "
                f"{wanted} are wanted, the held-out ones included; give more or longer texts, or "
                "lower `texts` or `n`"
            )
        texts = tuple(text_rows(chosen, source, n, d, dtype=dtype, model=model))
    else:
        texts = tuple(
            synthetic_text(source, n, d, derive_seed(stream_seed, index)).to(dtype)
            for index in range(wanted)
        )
    if labels == "linear":
        # The sign of <G, X>, G iid N(0, 1).
        stream = generator(stream_seed, "linear labels")
        direction = torch.randn(n, d, generator=stream, dtype=torch.float64)
        products = [float((text.rows.double() * direction).sum()) for text in texts]
        values = torch.where(torch.tensor(products) >= 0, 1.0, -1.0).double()
    elif labels == "random":
        stream = generator(stream_seed, "random labels")
        drawn = torch.rand(wanted, generator=stream, dtype=torch.float64)
        values = torch.where(drawn < 0.5, -1.0, 1.0).double()
    else:
        values = _sentiment(texts)
    return LabelledTexts(texts, values, held_out)


def _sentiment(texts: tuple[TextMatrix, ...]) -> Float[Tensor, " m"]:
    for text in texts:
        if text.label is None:
            raise InputError(
                f"the text {text.source!r} has no label, so its sentiment cannot be learned; give "
                "labelled texts, or "
                "labels='linear' or 'random'"
            )
    return torch.tensor([float(text.label or 0) for text in texts], dtype=torch.float64)


_Read = tuple[Embedded, bool, tuple[int, ...]]
"""What decides which documents are read: a source without what it says of their rows, whether they
have labels, and size and time of the file as it is now."""


def _place(source: Embedded, labelled: bool) -> _Read:
    plain = source.model_copy(update={name: Embedded.model_fields[name].default for name in _ROWS})
    if not isinstance(source, DatasetText):
        return plain, False, ()
    path = Path(source.path).expanduser()
    file = path.stat() if path.is_file() else None
    status = () if file is None else (file.st_size, file.st_mtime_ns, file.st_ino)
    return plain, labelled or source.label_column is not None, status


@lru_cache(maxsize=8)
def _read(place: _Read) -> tuple[Document, ...]:
    source, labels, _ = place
    if isinstance(source, GivenText):
        return (Document(source.content, source.label, source.source),)
    if isinstance(source, QuestionsText | PassagesText):
        long = [pair.first for pair in meaning_pairs() if pair.length != "question"]
        short = [pair.first for pair in meaning_pairs() if pair.length == "question"]
        questions = [text for text in short if text.endswith("?")]
        texts = questions if isinstance(source, QuestionsText) else long
        return tuple(map(Document, dict.fromkeys(texts)))
    if not isinstance(source, DatasetText):
        return tuple(shipped_reviews())
    if source.where is not None:
        column, _, value = source.where.partition("=")
        texts = kinds_of_table(source, column).get(value, [])
        return tuple(Document(text) for text in texts[: source.limit])
    keys = {
        name: getattr(source, name) for name in ("text_column", "label_column", "split", "limit")
    }
    return tuple(read_documents(source.path, labels=labels, skip_empty=True, **keys))


def kinds_of_table(source: DatasetText, column: str) -> dict[str, list[str]]:
    """The texts of a table by their row's value in a column, without empty ones.

    Raises:
        InputError: the source is no table, or lacks the column or that of the texts.
    """
    path = named_path("texts", source.path)
    require_table(path, "texts")
    texts: dict[str, list[str]] = {}
    for _, row in table_rows(path):
        kind, text = (
            row[require_column(name, row, f"`texts` (={source.path!r})", "name one of them")]
            for name in (column, source.text_column)
        )
        if str(text or "").strip():
            texts.setdefault(str(kind), []).append(text)
    return texts


@lru_cache(maxsize=8)
def _digest(place: _Read) -> str:
    digest = hashlib.sha256()
    for document in _read(place):
        content = document.text.encode(errors="surrogatepass")
        digest.update(f"{document.label}:{len(content)}:".encode() + content)
    return digest.hexdigest()


def _length(
    place: _Read, source: Embedded, model: TransformerFeatures | TextModel, index: int
) -> int:
    own_rows = isinstance(model, TransformerFeatures)
    reader = model.model if own_rows else model
    return _tokens(place, reader, own_rows or source.keep_special_tokens, index)


@lru_cache(maxsize=1 << 17)
def _tokens(place: _Read, model: TextModel, special: bool, index: int) -> int:
    return model.count_tokens(_read(place)[index].text, special=special)
