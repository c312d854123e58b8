"""CrossEncoders of sentence-transformers."""

from typing import Any

from torch import nn

from wordsens.errors import InputError
from wordsens.models.hooks import frozen_views
from wordsens.models.identity import UNKNOWN, content_digest, joined_digest, tokenizer_settings
from wordsens.models.model import PROBES
from wordsens.models.pairs import FunctionPairModel
from wordsens.models.sentence_transformer import evaluating
from wordsens.models.text_model import TextModel
from wordsens.models.tokens import require_rows
from wordsens.text.whole_words import Span

# Logits of a few units agree to 1e-6 in float32; a difference of this share is another function.
_TOLERANCE = 1e-3


class CrossEncoderModel(FunctionPairModel):
    """A CrossEncoder; scores are those of its own `predict`.

    Args:
        model: the object, on its own device.
        name: for tables and records.
        batch_size: pairs at a time.

    Raises:
        InputError: a model with more than one score per pair.
    """

    def __init__(self, model: Any, *, name: str, batch_size: int = 32):
        if model.num_labels != 1:
            raise InputError(
                f"{name} gives {model.num_labels} scores per pair; use a CrossEncoder with one "
                "label"
            )
        super().__init__(self._predicted, name=name, batch_size=batch_size)
        self._model = model

    def identity(self) -> str:
        model, activation = self._model, self._model.activation_fn
        content = content_digest(model, activation) if isinstance(activation, nn.Module) else None
        if content is None:
            return UNKNOWN
        prompts = getattr(model, "prompts", None), getattr(model, "default_prompt_name", None)
        words = tokenizer_settings(model.tokenizer)
        return joined_digest(content, model.max_seq_length, words, *prompts)

    def read_spans(self, first: str, second: str) -> tuple[Span, Span]:
        tokenizer, length = self._model.tokenizer, self._model.max_seq_length
        whole = tokenizer(first, second, verbose=False)["input_ids"]
        if length is None or len(whole) <= length or not tokenizer.is_fast:
            return super().read_spans(first, second)
        cut = {"truncation": True, "max_length": length, "return_offsets_mapping": True}
        encoded = tokenizer(first, second, verbose=False, **cut)
        spans: list[list[Span]] = [[], []]
        for side, span in zip(encoded.sequence_ids(0), encoded["offset_mapping"], strict=True):
            if side is not None:
                spans[side].append(span)
        one, two = ((own[0][0], own[-1][1]) if own else (0, 0) for own in spans)
        return one, two

    def text_model(self) -> TextModel:
        """The transformer whose logit is the score of a pair with the rows of `enter_pair`;
        InputError if its logits are not those of `predict`."""
        (view,) = frozen_views([self._model.model])
        model = TextModel(view, self._model.tokenizer, self.name).text_model()
        one, two = PROBES[0], PROBES[2]
        ours = float(model.logits(model.enter_pair(one, two, 1)[0].unsqueeze(0)))
        options = {"activation_fn": nn.Identity(), "show_progress_bar": False}
        theirs = float(self._model.predict([(one, two)], **options)[0])
        if abs(ours - theirs) > _TOLERANCE * (1 + abs(theirs)):
            raise InputError(
                f"where gradients are needed {self.name} cannot be used: its own score is not its "
                "logit"
            )
        return model

    def _predicted(self, first: list[str], second: list[str]) -> Any:
        model = self._model
        rows = getattr(model.model.get_input_embeddings(), "num_embeddings", None)
        for text in (*first, *second):
            ids = model.tokenizer(text, verbose=False)["input_ids"][: model.max_seq_length]
            require_rows(ids, rows, model.tokenizer, f"the text {text[:40]!r} in {self.name}")
        pairs = list(zip(first, second, strict=True))
        with evaluating(model):
            return model.predict(pairs, batch_size=self._batch_size, show_progress_bar=False)
