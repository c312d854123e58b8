"""The contract of a model that scores two texts together, such as a reranker, and a function as
one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.display.numbers import plural
from wordsens.errors import InputError, running
from wordsens.models.function import Answers, require_texts
from wordsens.models.identity import UNKNOWN
from wordsens.models.text_model import TextModel
from wordsens.text.whole_words import Span


class PairModel(ABC):
    """Anything that gives two texts a score, which is higher for closer texts.

    Attributes:
        name: for tables and records.
    """

    name: str

    @abstractmethod
    def score(self, first: Sequence[str], second: Sequence[str]) -> Float[Tensor, " m"]:
        """The score of every pair: float64 on the CPU, finite.

        Raises:
            InputError: the lists hold no strings or differ in length, or the answer is not one
                number per pair.
        """

    def identity(self) -> str:
        """A digest of what decides the scores; UNKNOWN for a black box."""
        return UNKNOWN

    def read_spans(self, first: str, second: str) -> tuple[Span, Span]:
        """Start and end of the part of each text that the model reads; the whole text if no limit
        is known."""
        return (0, len(first)), (0, len(second))

    def text_model(self) -> TextModel:
        """The transformer whose logit is the score; InputError if there is none."""
        raise InputError(
            f"where gradients are needed {self.name} cannot be used: it only gives scores"
        )


class FunctionPairModel(PairModel):
    """A function from two lists of m texts to m scores, about which nothing else is known.

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
                f"`second` has {len(two)} texts and `first` {len(one)}; give lists of equal length"
            )
        scores = []
        for start in range(0, len(one), self._batch_size):
            batch = slice(start, start + self._batch_size)
            texts = f"the first pair {one[start]!r} and {two[start]!r}"
            failed = f"{self.name} failed on {plural(len(one[batch]), 'pair')}"
            called = f"it was called with two lists of texts, {texts}"
            with running(failed, remedy=called):
                answer = self._function(one[batch], two[batch])
            scores.append(self._answers.scores(one[batch], answer))
        return torch.cat(scores)
