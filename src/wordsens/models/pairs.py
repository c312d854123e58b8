"""Models that score two texts together, such as rerankers."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from wordsens.errors import InputError, require_choice, running
from wordsens.maps.transformer.features import TransformerFeatures
from wordsens.maps.transformer.loaded import SIDES
from wordsens.models.black_box import (
    PROBES,
    UNKNOWN,
    Model,
    content_digest,
    joined_digest,
    tokenizer_settings,
)
from wordsens.models.function import Answers, FunctionModel, require_texts
from wordsens.text.loaded_models import most_tokens, reading_module
from wordsens.text.transformer_encoder import require_rows_of, span_within
from wordsens.text.whole_words import Span

# Logits of a few units in float32 agree to 1e-6; a difference of this share is another function.
_TOLERANCE = 1e-3


class PairModel(ABC):
    """Anything that gives two texts a score, the higher the closer.

    Attributes:
        name: for tables and records.
    """

    name: str

    @abstractmethod
    def score(self, first: Sequence[str], second: Sequence[str]) -> Float[Tensor, " m"]:
        """The score of every pair: float64 on the CPU, finite.

        Raises:
            InputError: the texts are no texts or of two lengths, or the answer is not one number a
                pair.
        """

    def identity(self) -> str:
        """A digest of what decides the scores; UNKNOWN of a black box."""
        return UNKNOWN

    def read_spans(self, first: str, second: str) -> tuple[Span, Span]:
        """Where the part of each text that the model reads starts and stops; all of it where no
        limit is known."""
        return (0, len(first)), (0, len(second))

    def fixed(self, side: str, text: str) -> Model:
        """The score of a text that moves against one that stays, as a model with vectors of one
        number.

        Args:
            side: "first" (a query stays and the document moves) or "second".
            text: the one that stays.
        """
        require_choice("side", side, SIDES)

        def scores(moving: list[str]) -> Tensor:
            still = [text] * len(moving)
            pair = (still, moving) if side == "first" else (moving, still)
            return self.score(*pair).unsqueeze(1)

        return FunctionModel(scores, name=f"{self.name} with the {side} text fixed", zero=True)

    def features(self) -> TransformerFeatures:
        """The map whose features are the model's logits; InputError for a black box."""
        raise InputError(
            f"where gradients are needed {self.name} cannot be used: it only gives scores"
        )


class FunctionPairModel(PairModel):
    """A function from two lists of m texts to m scores, which nothing else is known of.

    Args:
        function: called with at most `batch_size` pairs at a time.
        name: for tables and records.
        batch_size: pairs at a time.
    """

    def __init__(
        self, function: Callable[[list[str], list[str]], Any], *, name: str, batch_size: int = 32
    ):
        self.name = name
        self._function, self._batch_size = function, batch_size
        self._answers = Answers(name)

    def score(self, first: Sequence[str], second: Sequence[str]) -> Float[Tensor, " m"]:
        one, two = require_texts(first), require_texts(second)
        if len(one) != len(two):
            raise InputError(
                f"`second` has {len(two)} texts and `first` {len(one)}; a pair needs one of each"
            )
        size = self._batch_size
        batches = [
            (one[start : start + size], two[start : start + size])
            for start in range(0, len(one), size)
        ]
        return torch.cat(
            [self._answers.scores(batch[0], self._called(*batch)) for batch in batches]
        )

    def _called(self, first: list[str], second: list[str]) -> Any:
        called = (
            f"it was called with two lists of texts, the first pair {first[0]!r} and {second[0]!r}"
        )
        with running(f"{self.name} failed on {len(first)} pairs", remedy=called):
            return self._function(first, second)


class MultiVectorModel(FunctionPairModel):
    """A MultiVectorEncoder of sentence-transformers (ColBERT): the first text is the query, the
    second the document; scores are those of its own `similarity_pairwise`, such as MaxSim.

    Args:
        model: the object, on its own device.
        name: for tables and records.
        batch_size: pairs at a time.
    """

    def __init__(self, model: Any, *, name: str, batch_size: int = 32):
        super().__init__(self._compared, name=name, batch_size=batch_size)
        self._model = model

    def read_spans(self, first: str, second: str) -> tuple[Span, Span]:
        query, document = (
            self._read_span(text, task) for text, task in ((first, "query"), (second, "document"))
        )
        return query, document

    def _read_span(self, text: str, task: str) -> Span:
        module, prompt = reading_module(self._model, task), self._model.prompts.get(task) or ""
        return span_within(text, module.tokenizer, most_tokens(module, task), prompt=prompt)

    def identity(self) -> str:
        content = content_digest(self._model)
        if content is None:
            return UNKNOWN
        return joined_digest(content, self._model.similarity_fn_name, *_prompts(self._model))

    def _compared(self, first: list[str], second: list[str]) -> Any:
        for texts, task in ((first, "query"), (second, "document")):
            reader, prompt = reading_module(self._model, task), self._model.prompts.get(task) or ""
            limit, model = most_tokens(reader, task), getattr(reader, "auto_model", None)
            require_rows_of(
                texts, reader.tokenizer, model, self.name, most_tokens=limit, prompt=prompt
            )
        training = self._model.training
        options = {"batch_size": self._batch_size, "show_progress_bar": False}
        try:
            return self._model.similarity_pairwise(
                self._model.encode_query(first, **options),
                self._model.encode_document(second, **options),
            )
        finally:
            self._model.train(training)


class CrossEncoderModel(FunctionPairModel):
    """A CrossEncoder of sentence-transformers; scores are those of its own `predict`.

    Args:
        model: the object, on its own device.
        name: for tables and records.
        batch_size: pairs at a time.

    Raises:
        InputError: a model with more than one score a pair.
    """

    def __init__(self, model: Any, *, name: str, batch_size: int = 32):
        if model.num_labels != 1:
            raise InputError(
                f"{name} gives {model.num_labels} scores a pair; use a CrossEncoder with one label"
            )
        super().__init__(self._predicted, name=name, batch_size=batch_size)
        self._model = model

    def identity(self) -> str:
        model, activation = self._model, self._model.activation_fn
        content = content_digest(model, activation) if isinstance(activation, nn.Module) else None
        if content is None:
            return UNKNOWN
        words = tokenizer_settings(model.tokenizer)
        return joined_digest(content, model.max_seq_length, words, *_prompts(model))

    def read_spans(self, first: str, second: str) -> tuple[Span, Span]:
        tokenizer, length = self._model.tokenizer, self._model.max_seq_length
        if length is None or not tokenizer.is_fast:
            return super().read_spans(first, second)
        encoded = tokenizer(
            first,
            second,
            truncation=True,
            max_length=length,
            return_offsets_mapping=True,
            verbose=False,
        )
        sides = encoded.sequence_ids(0)
        whole = tokenizer(first, second, verbose=False)["input_ids"]
        if len(whole) <= len(sides):
            return super().read_spans(first, second)
        places = [
            [
                offsets
                for offsets, side in zip(encoded["offset_mapping"], sides, strict=True)
                if side == each
            ]
            for each in (0, 1)
        ]
        read = [
            (min(start for start, _ in own), max(stop for _, stop in own)) if own else (0, 0)
            for own in places
        ]
        return read[0], read[1]

    def features(self) -> TransformerFeatures:
        """The map whose feature is the logit of a pair; its `embed_pair` gives what it takes.

        Raises:
            InputError: an architecture that is not known, or logits that are not those of
                `predict`.
        """
        phi = TransformerFeatures.from_pretrained(
            (self._model.model, self._model.tokenizer), output="logits"
        )
        one, two = PROBES[0], PROBES[2]
        ours = float(phi(phi.embed_pair(one, two)))
        theirs = float(
            self._model.predict([(one, two)], activation_fn=nn.Identity(), show_progress_bar=False)[
                0
            ]
        )
        if abs(ours - theirs) > _TOLERANCE * (1 + abs(theirs)):
            raise InputError(
                f"where gradients are needed {self.name} cannot be used: its own score is not its "
                "logit"
            )
        return phi

    def _predicted(self, first: list[str], second: list[str]) -> Any:
        model, limit = self._model, self._model.max_seq_length
        require_rows_of(
            [*first, *second], model.tokenizer, model.model, self.name, most_tokens=limit
        )
        training = self._model.training
        try:
            return self._model.predict(
                list(zip(first, second, strict=True)),
                batch_size=self._batch_size,
                show_progress_bar=False,
            )
        finally:
            self._model.train(training)


def _prompts(model: Any) -> tuple[Any, Any]:
    """What a model of sentence-transformers puts before texts, where it puts something there."""
    return getattr(model, "prompts", None), getattr(model, "default_prompt_name", None)
