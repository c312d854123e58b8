"""Adversarial one-word training: one word of every training text is moved against its label."""

import math

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.errors import require_count, require_positive
from wordsens.seeds import Seed, generator
from wordsens.studies.control.controls.contract import Control
from wordsens.studies.control.networks.contract import TextNetwork
from wordsens.training.short_search import MovedTexts, ascend


class AdversarialWords(Control):
    """A random word of every training text is moved so that the loss rises most; the label stays.

    The Delta, ‖Delta‖ <= share sqrt(d), is what a few steps of projected ascent find: the adversarial training of Madry
    and others (2018), in the ball of one word.

    Args:
        share: of the paper's radius sqrt(d).
        steps: of ascent.
        seed: of the words and the starts.
    """

    def __init__(self, share: float = 0.5, steps: int = 3, seed: Seed = 0):
        generator(seed)
        self._share, self._steps = require_positive("share", share), require_count("steps", steps)
        self._seed = seed

    def texts(
        self, network: TextNetwork, rows: Float[Tensor, "b n d"], labels: Float[Tensor, " b"], step: int
    ) -> Float[Tensor, "b n d"]:
        stream = generator(self._seed, "adversarial words", step)
        words = torch.randint(rows.shape[1], (len(rows), 1), generator=stream).to(rows.device)
        result = worst_words(network, rows, labels, words, self._radius(rows), self._steps, stream)
        return MovedTexts(rows, words)(result)

    def _radius(self, rows: Tensor) -> float:
        return self._share * math.sqrt(rows.shape[2])


def worst_words(
    network: TextNetwork,
    rows: Float[Tensor, "b n d"],
    labels: Float[Tensor, " b"],
    words: Tensor,
    radius: float,
    steps: int,
    stream: torch.Generator,
) -> Float[Tensor, "p d"]:
    """For each of the words (b, w) the Delta that short ascent finds to raise -label logit most; p = b w."""
    signs, moved = labels.repeat_interleave(words.shape[1]), MovedTexts(rows, words)

    def against(texts: Tensor) -> Tensor:
        return -signs * network(texts)

    drawn = torch.randn(words.numel(), rows.shape[2], generator=stream).to(rows)
    return ascend(against, moved, radius * torch.nn.functional.normalize(drawn, dim=1), radius, steps)
