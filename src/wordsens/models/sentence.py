"""Transformers and SentenceTransformers as models: their own vectors, and their map where they can
be run from rows."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import InputError, running
from wordsens.maps.transformer.features import POOLS, TransformerFeatures, by_length
from wordsens.maps.transformer.loaded import LoadedModel
from wordsens.maps.transformer.vocabulary import whole_word_tokens
from wordsens.models.black_box import (
    UNKNOWN,
    Model,
    content_digest,
    joined_digest,
    tokenizer_settings,
)
from wordsens.models.function import Answers, require_texts
from wordsens.text.hooks import call
from wordsens.text.loaded_models import TASKS, most_tokens, reading_module
from wordsens.text.transformer_encoder import (
    context_of,
    embedding_rows,
    encoder_part,
    require_rows,
    require_rows_of,
    span_within,
    steady_tokens,
)
from wordsens.text.whole_words import Span

_WORDS = 9
# Coordinates are at most about 1: float32 leaves 1e-6 of difference, and halves a few hundredths.
_TOLERANCE, _HALF_TOLERANCE = 1e-4, 0.05


class SentenceTransformerModel(Model):
    """A loaded SentenceTransformer: prompts, pooling, truncation and all else are those of its own
    `encode`.

    Args:
        model: the object, on its own device.
        name: for tables and records.
        batch_size: texts at a time.
        prompt_name: of the prompt before every text; None: the model's default.
    """

    def __init__(
        self, model: Any, *, name: str, batch_size: int = 32, prompt_name: str | None = None
    ):
        self.name = name
        self._model, self._batch_size, self._prompt_name = model, batch_size, prompt_name
        self._answers = Answers(name)
        self._task = TASKS.get(str(prompt_name))

    @property
    def similarity(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._model.similarity_fn_name

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        listed = require_texts(texts)
        self._require_rows(listed)
        # Texts of one length together: no padding, and no longer text, reaches a vector.
        places: dict[int, list[int]] = {}
        for place, count in enumerate(self._token_counts(listed)):
            places.setdefault(count, []).append(place)
        order = [place for group in places.values() for place in group]
        rows = torch.cat([self._encoded([listed[at] for at in group]) for group in places.values()])
        return rows[torch.tensor(order).argsort()]

    def _encoded(self, listed: list[str]) -> Float[Tensor, "m d"]:
        training = self._model.training
        encode = (
            self._model.encode
            if self._task is None
            else getattr(self._model, f"encode_{self._task}")
        )
        # A task finds its own prompt.
        named = (
            {} if self._prompt_name in (None, self._task) else {"prompt_name": self._prompt_name}
        )
        try:
            with running(f"{self.name} failed on {len(listed)} texts"):
                rows = encode(listed, batch_size=self._batch_size, show_progress_bar=False, **named)
        finally:
            self._model.train(training)
        return self._answers.rows(listed, rows)

    def read_span(self, text: str) -> Span:
        reader = reading_module(self._model, self._task)
        limit = most_tokens(reader, self._task)
        if limit is None or not callable(self._tokenizer):
            return 0, len(text)
        return span_within(text, self._tokenizer, limit, prompt=self._prompt)

    def unreadable(self, text: str) -> str | None:
        try:
            self._require_rows([text])
            self._token_counts([text])
        except InputError as error:
            return str(error)
        return None

    def prompted(self, name: str) -> "SentenceTransformerModel":
        prompts = self._model.prompts
        if name not in prompts and TASKS.get(name) != name:
            known = ", ".join(map(repr, prompts)) or "none"
            raise InputError(
                f"`prompt_name` (={name!r}) is no prompt of {self.name}; it has {known}"
            )
        return SentenceTransformerModel(
            self._model, name=self.name, batch_size=self._batch_size, prompt_name=name
        )

    @property
    def can_differentiate(self) -> bool:  # pyright: ignore[reportIncompatibleVariableOverride]
        return isinstance(self._map, TransformerFeatures)

    @property
    def layers(self) -> int | None:
        return self._map.stack.layers + 1 if isinstance(self._map, TransformerFeatures) else None

    def encode_layers(self, texts: Sequence[str]) -> Float[Tensor, "layers m d"]:
        return self.features().encode_layers(require_texts(texts), batch_size=self._batch_size)

    def features(self) -> TransformerFeatures:
        if isinstance(self._map, InputError):
            raise InputError(
                f"where gradients or layers are needed {self.name} cannot be used: {self._map}"
            ) from self._map
        return self._map

    def identity(self) -> str:
        content = content_digest(self._model)
        if content is None:
            return UNKNOWN
        length, truncated = (
            getattr(self._model, name, None) for name in ("max_seq_length", "truncate_dim")
        )
        return joined_digest(content, self._prompt, self._task, length, truncated, self.similarity)

    @property
    def _tokenizer(self) -> Any:
        return getattr(reading_module(self._model, self._task), "tokenizer", None)

    @property
    def _prompt(self) -> str:
        prompts, name = self._model.prompts, self._prompt_name
        if name == "document":
            name = next(
                (each for each in ("document", "passage", "corpus") if each in prompts), None
            )
        return prompts.get(name if name in prompts else self._model.default_prompt_name) or ""

    def _require_rows(self, texts: Sequence[str]) -> None:
        """InputError for a text with a token that was added to the tokenizer alone, for which the
        model has no row."""
        reader = reading_module(self._model, self._task)
        limit, model = most_tokens(reader, self._task), getattr(reader, "auto_model", None)
        require_rows_of(
            texts, self._tokenizer, model, self.name, most_tokens=limit, prompt=self._prompt
        )

    def _token_counts(self, texts: Sequence[str]) -> list[int]:
        """How many tokens of each text are read; InputError for a text whose vector would depend on
        others."""
        reader = reading_module(self._model, self._task)
        if not callable(self._tokenizer):
            return [0] * len(texts)  # no tokens that are padded
        tokenizer: Any = self._tokenizer
        limit = most_tokens(reader, self._task)
        cut = {"truncation": limit is not None, "max_length": limit, "verbose": False}
        counts = [len(tokenizer(self._prompt + text, **cut)["input_ids"]) for text in texts]
        steady = steady_tokens(getattr(reader, "auto_model", None))
        for text, count in zip(texts, counts, strict=True):
            if steady is not None and count > steady:
                raise InputError(
                    f"the text {text[:40]!r} has {count} tokens; beyond {steady} the positions of "
                    f"{self.name} follow the longest text so far; shorten it"
                )
        return counts

    @cached_property
    def _map(self) -> TransformerFeatures | InputError:
        """The map, when it gives what the object's own `encode` gives; otherwise the reason why
        there is none."""
        try:
            phi = TransformerFeatures.from_pretrained(self._model, pool="own")
            phi = phi if self._prompt_name is None else phi.prompted(self._prompt_name)
            texts = _readable(phi)
            apart = float((phi.encode(texts) - self.encode(texts)).abs().max())
        except InputError as refused:
            return refused
        tolerance = (
            _TOLERANCE if phi.stack.dtype in (torch.float32, torch.float64) else _HALF_TOLERANCE
        )
        if apart > tolerance:
            return InputError(
                f"its own encode differs from its modules' results by {apart:.2g} (tolerance "
                f"{tolerance:g})"
            )
        return phi


def _readable(phi: TransformerFeatures) -> list[str]:
    """Texts of two and of nine words of the model's own vocabulary, whatever its language."""
    words = list(
        whole_word_tokens(phi.reading().tokenizer, rows=embedding_rows(phi.stack.base)).values()
    )
    spread = words[:: max(1, len(words) // _WORDS)][:_WORDS]
    return [" ".join(spread[:2]), " ".join(spread)]


class TransformerModel(Model):
    """A pooled transformer that can be run from rows.

    Args:
        phi: with a pool, and a tokenizer.
        name: for tables and records.
        batch_size: texts of equally many tokens that run together, at most.
    """

    can_differentiate = True

    def __init__(self, phi: TransformerFeatures, *, name: str, batch_size: int = 32):
        self.name = name
        self._phi, self._batch_size = phi, batch_size
        self._answers = Answers(name)

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        listed = require_texts(texts)
        return self._answers.rows(listed, self._phi.encode(listed, batch_size=self._batch_size))

    @property
    def similarity(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._phi.similarity

    def read_span(self, text: str) -> Span:
        return self._phi.reading().read_span(text)

    def unreadable(self, text: str) -> str | None:
        try:
            self._phi.reading().tokens(text)
        except InputError as error:
            return str(error).removeprefix("the text: ")
        return None

    def prompted(self, name: str) -> "TransformerModel":
        return TransformerModel(
            self._phi.prompted(name), name=self.name, batch_size=self._batch_size
        )

    @property
    def layers(self) -> int | None:
        return self._phi.stack.layers + 1

    def encode_layers(self, texts: Sequence[str]) -> Float[Tensor, "layers m d"]:
        return self._phi.encode_layers(require_texts(texts), batch_size=self._batch_size)

    def features(self) -> TransformerFeatures:
        return self._phi

    def identity(self) -> str:
        phi, reader = self._phi, self._phi.reading()
        content = content_digest(*phi.modules)
        if content is None:
            return UNKNOWN
        return joined_digest(
            content,
            tokenizer_settings(reader.tokenizer),
            [reader.context, reader.prompt],
            [phi.layer, phi.head, phi.pool, phi.output, phi.dimensions, phi.similarity],
        )


class PlainTransformer(Model):
    """A transformer that cannot be run from rows, or has no gradient: its pooled last hidden
    states, and no map.

    Args:
        loaded: the model and its tokenizer; texts longer than the context are cut.
        pool: mean, cls, last or max.
        name: for tables and records.
        refused: why the model has no map.
        batch_size: texts of equally many tokens that run together, at most.
    """

    def __init__(
        self,
        loaded: LoadedModel,
        pool: str,
        *,
        name: str,
        refused: InputError,
        batch_size: int = 32,
    ):
        self.name = name
        self._model = encoder_part(getattr(loaded.model, "base_model", loaded.model)).eval()
        self._tokenizer, self._pool, self._batch_size = loaded.tokenizer, pool, batch_size
        self._context = context_of(loaded.tokenizer, self._model)
        self._refused, self._answers = refused, Answers(name)

    def encode(self, texts: Sequence[str]) -> Float[Tensor, "m d"]:
        listed = require_texts(texts)
        cut = {
            "truncation": self._context is not None,
            "max_length": self._context,
            "verbose": False,
        }
        ids = [self._tokenizer(text, **cut)["input_ids"] for text in listed]
        lost = next((text for text, each in zip(listed, ids, strict=True) if not len(each)), None)
        if lost is not None:
            raise InputError(f"{self.name} has no token for the text {lost[:40]!r}; leave it out")
        for text, each in zip(listed, ids, strict=True):
            require_rows(
                each,
                embedding_rows(self._model),
                self._tokenizer,
                f"the text {text[:40]!r} in {self.name}",
            )
        device = next((tensor.device for tensor in self._model.parameters()), torch.device("cpu"))
        with running(f"{self.name} failed on {len(listed)} texts"):
            rows = by_length(
                ids, self._batch_size, lambda batch: self._pooled(batch.to(device))[None]
            )[0]
        return self._answers.rows(listed, rows)

    def _pooled(self, ids: Tensor) -> Float[Tensor, "b d"]:
        output = call(self._model, ids, attention_mask=torch.ones_like(ids))
        states = (
            output if isinstance(output, Tensor) else getattr(output, "last_hidden_state", None)
        )
        return POOLS[self._pool]((output[0] if states is None else states).float())

    def read_span(self, text: str) -> Span:
        return span_within(text, self._tokenizer, self._context)

    def identity(self) -> str:
        content = content_digest(self._model)
        if content is None:
            return UNKNOWN
        return joined_digest(
            content, tokenizer_settings(self._tokenizer), [self._context, self._pool]
        )

    def features(self) -> TransformerFeatures:
        raise InputError(
            f"where gradients are needed {self.name} cannot be used: {self._refused}"
        ) from self._refused
