"""Texts to matrices: one row a token, from a layer of a pretrained encoder."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, require_count
from wordsens.text.document import Document
from wordsens.text.encoder import Encoder, EncoderInput
from wordsens.text.load import load_encoder
from wordsens.text.matrix import TextMatrix, Word, rescale_rows

Texts = str | Document | Iterable[str | Document]


def embed(
    texts: Texts,
    encoder: Any = "minilm",
    layer: int = 0,
    max_words: int | None = None,
    rescale: bool = True,
    *,
    special_tokens: bool = False,
    pad_to: int | None = None,
    dtype: torch.dtype = torch.float64,
    device: str | None = None,
    batch_size: int = 32,
    progress: Callable[[int, int], None] | None = None,
) -> list[TextMatrix]:
    """One TextMatrix a text, (n, d): row j is the encoder's vector of the text's token j at
    `layer`.

    The encoder always reads the text between its special tokens ([CLS] and [SEP] for BERT).
    A text is never padded, unless `pad_to` asks for it, and never cut, unless `max_words` asks for
    it.

    Args:
        texts: strings or Documents, whose label and source are kept; a single one gives a list of
            one.
        encoder: "minilm", a model's folder, a name on the Hugging Face hub; a pair (model,
            tokenizer) of transformers, a pipeline or a SentenceTransformer; or an Encoder, such as
            `load_encoder(name, revision="v2")`.
        layer: 0 for the embedding layer's output, k for the output of layer k; negative from the
            last, -1.
        max_words: longer texts keep their first `max_words` rows; the encoder does not see the
            rest.
        rescale: scale every row to Euclidean length sqrt(d), the paper's normalisation.
        special_tokens: keep the rows of the special tokens; they count as words.
        pad_to: shorter texts get [PAD] rows up to this many, as the code published with the paper
            did.
        dtype: of the rows; the model itself computes in float32.
        device: where the model computes and the rows are left; None: the CPU, or where the given
            Encoder is.
        batch_size: how many texts the model takes at once.
        progress: called with (texts done, texts in all) after every batch.

    Raises:
        InputError: a text without a token; a text longer than the encoder's context and no
            `max_words`; no such model, layer or device; `pad_to` with a model that has no [PAD]
            token.
        MissingExtraError: transformers, or MiniLM's package, is not installed.

    >>> X = embed("I love her much")[0]
    >>> X.tokens, tuple(X.rows.shape)
    (('i', 'love', 'her', 'much'), (4, 384))
    """
    documents = as_documents(texts)
    chosen = _chosen(encoder, device)
    layer = chosen.layer_index(layer)
    require_count("batch_size", batch_size)
    for name, value in (("max_words", max_words), ("pad_to", pad_to)):
        if value is not None:
            require_count(name, value)
    if max_words is not None and pad_to is not None and pad_to > max_words:
        raise InputError(f"`pad_to` (={pad_to}) must be at most `max_words` (={max_words})")
    plans = [
        _plan(document, index, chosen, max_words, special_tokens, pad_to)
        for index, document in enumerate(documents)
    ]
    # Texts of like length go together, so that little of a batch is filling.
    order = sorted(range(len(plans)), key=lambda index: len(plans[index].input.ids))
    matrices: dict[int, TextMatrix] = {}
    for start in range(0, len(order), batch_size):
        batch = order[start : start + batch_size]
        outputs = chosen.encode([plans[index].input for index in batch], layer=layer)
        parts = [
            output[list(plans[index].positions)]
            for index, output in zip(batch, outputs, strict=True)
        ]
        rows = torch.cat(parts).to(dtype)
        rows = rescale_rows(rows) if rescale else rows
        for index, text_rows in zip(batch, rows.split([len(part) for part in parts]), strict=True):
            plan, document = plans[index], documents[index]
            source = document.source or f"text {index}"
            matrices[index] = TextMatrix(
                text_rows, plan.tokens, document.label, source, plan.whole_words
            )
        if progress is not None:
            progress(len(matrices), len(plans))
    return [matrices[index] for index in range(len(plans))]


def texts_of_length(
    documents: Iterable[str | Document],
    words: int,
    *,
    count: int | None = None,
    encoder: Any = "minilm",
    special_tokens: bool = False,
) -> list[Document]:
    """The first `count` documents that give at least `words` rows, so that none needs padding.

    Without `count`, all of them. Reads no further than needed. Raises InputError when there are
    fewer, saying how many there are.

    >>> reviews = texts_of_length(["much too short", "this one is long enough"], 5)
    >>> [review.text for review in reviews]
    ['this one is long enough']
    """
    require_count("words", words)
    if count is not None:
        require_count("count", count)
    chosen = _chosen(encoder, None)
    long_enough: list[Document] = []
    read = 0
    for read, text in enumerate(documents, start=1):
        document = _as_document(text, read - 1)
        tokenization = chosen.tokenize(document.text)
        if (len(tokenization.ids) if special_tokens else tokenization.words) >= words:
            long_enough.append(document)
        if count is not None and len(long_enough) == count:
            return long_enough
    if not long_enough or count is not None:
        raise InputError(
            f"of {read} texts, only {len(long_enough)} have at least `words` (={words}) tokens in "
            f"{chosen.name}, but "
            f"`count` (={count or 1}) are wanted; give longer or more texts, or lower words or "
            "count"
        )
    return long_enough


def vocabulary_rows(
    encoder: str | Encoder = "minilm",
    position: int = 0,
    *,
    special_tokens: bool = False,
    rescale: bool = True,
    keep: Callable[[str], bool] = str.isalpha,
    dtype: torch.dtype = torch.float64,
    batch_size: int = 1024,
) -> tuple[tuple[str, ...], Float[Tensor, "v d"]]:
    """The words of the encoder's vocabulary and their rows at layer 0, as `embed` would give them
    at that position.

    Layer 0 of a BERT-like encoder is the normalised sum of the token's, the position's and the
    type's embedding: a word's row depends on its position, not on the words around it.

    Args:
        encoder: as for `embed`.
        position: the word's index in the text, counted as `embed` counts.
        special_tokens: whether the leading special tokens count as words.
        rescale: scale every row to length sqrt(d).
        keep: which tokens are words; by default those of letters only: no number, and no piece of a
            word of BERT's.
        dtype: of the rows.
        batch_size: how many words the model takes at once.

    Raises:
        InputError: an encoder that does not list its vocabulary, a position past its context, or no
            word kept.

    >>> words, rows = vocabulary_rows("minilm", 1, keep=lambda token: token == "love")
    >>> words, tuple(rows.shape)
    (('love',), (1, 384))
    """
    chosen = load_encoder(encoder) if isinstance(encoder, str) else encoder
    require_count("position", position, least=0)
    entries = [(number, token) for number, token in chosen.vocabulary().items() if keep(token)]
    if not entries:
        raise InputError(
            f"`keep` leaves no word of {chosen.name}'s vocabulary; let some tokens through"
        )
    frame = chosen.tokenize("a")
    at = position if special_tokens else position + frame.leading
    if chosen.context is not None and at >= chosen.context:
        raise InputError(
            f"`position` (={position}) is past the context of {chosen.name}, {chosen.context} "
            "tokens; "
            "choose a smaller one"
        )
    before = (frame.ids[: frame.leading] + (frame.ids[frame.leading],) * at)[:at]
    rows = []
    for start in range(0, len(entries), batch_size):
        batch = [
            EncoderInput((*before, number)) for number, _ in entries[start : start + batch_size]
        ]
        rows.append(torch.stack([output[at] for output in chosen.encode(batch, layer=0)]).to(dtype))
    stacked = torch.cat(rows)
    return tuple(token for _, token in entries), rescale_rows(stacked) if rescale else stacked


def as_documents(texts: Texts) -> list[Document]:
    """The texts as Documents; refuses what is neither a string nor a Document, and for no text at
    all."""
    items = [texts] if isinstance(texts, (str, Document)) else list(texts)
    if not items:
        raise InputError("`texts` holds no text; give at least one")
    return [_as_document(item, index) for index, item in enumerate(items)]


def _as_document(item: object, index: int) -> Document:
    if isinstance(item, Document):
        return item
    if isinstance(item, str):
        return Document(item)
    raise InputError(f"text {index} ({type(item).__name__}) must be a string or a Document")


def _chosen(encoder: Any, device: str | None) -> Encoder:
    if isinstance(encoder, str):
        return load_encoder(encoder, device=device or "cpu")
    loaded = encoder if isinstance(encoder, Encoder) else load_encoder(encoder)
    if device is not None and torch.device(device) != loaded.device:
        raise InputError(
            f"`device` (={device!r}) is not where the given encoder is ({str(loaded.device)!r}); "
            "leave device out, or load the encoder there"
        )
    return loaded


@dataclass(frozen=True)
class _Plan:
    """One text's input, the positions in it that become rows, their tokens, and the words with
    their rows."""

    input: EncoderInput
    positions: tuple[int, ...]
    tokens: tuple[str, ...]
    whole_words: tuple[Word, ...] | None


def _plan(
    document: Document,
    index: int,
    encoder: Encoder,
    max_words: int | None,
    special_tokens: bool,
    pad_to: int | None,
) -> _Plan:
    where = f"text {index}" + (f" ({document.source})" if document.source else "")
    whole = encoder.tokenize(document.text)
    if whole.words == 0:
        raise InputError(f"{where} gives no token: it is empty or only blanks; leave it out")
    taken = whole
    if max_words is not None:
        # The leading special tokens count as words where they are kept; at least one word of the
        # text stays.
        taken = whole.first_words(max(1, max_words - (whole.leading if special_tokens else 0)))
    start, stop = (
        (0, len(taken.ids)) if special_tokens else (taken.leading, taken.leading + taken.words)
    )
    if max_words is not None:
        stop = min(stop, start + max_words)
    missing = 0 if pad_to is None else max(0, pad_to - (stop - start))
    if missing and encoder.padding is None:
        raise InputError(
            f"`pad_to` needs a [PAD] token, but {encoder.name} has none; leave pad_to out, or take "
            "longer "
            "texts (texts_of_length)"
        )
    number, token = encoder.padding or (0, "")
    ids = taken.ids + (number,) * missing
    if encoder.context is not None and len(ids) > encoder.context:
        special = whole.leading + whole.trailing
        most = encoder.context - special
        raise InputError(
            f"`pad_to` (={pad_to}) does not fit {encoder.name}, whose context is {encoder.context} "
            f"tokens, {special} "
            f"of them its own; pass pad_to={most} or less"
            if missing
            else f"{where} has {whole.words} tokens and {encoder.name} adds {special}, but its "
            "context is "
            f"{encoder.context} tokens; pass max_words={most} or less"
        )
    positions = (*range(start, stop), *range(len(taken.ids), len(ids)))
    words = taken.whole_words and tuple(
        replace(word, rows=tuple(row - start for row in word.rows))
        for word in taken.whole_words
        if max(word.rows) < stop
    )
    return _Plan(
        EncoderInput(ids, missing), positions, taken.tokens[start:stop] + (token,) * missing, words
    )
