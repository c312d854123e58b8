"""The judgement of a network on texts that it did not learn: loss, accuracy, and accuracy while one word moves."""

import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import softplus

from wordsens.seeds import Seed, generator
from wordsens.studies.control.controls.adversarial import worst_words
from wordsens.studies.control.networks.contract import TextNetwork
from wordsens.studies.control.tasks.contract import Labelled
from wordsens.training.short_search import MovedTexts

_TEXTS_AT_ONCE = 128
"""Texts that are judged in one batch: at 256 words the scores of as many take 34 MB."""

ATTACK_STEPS = 5
"""Steps of ascent against a label. More may find more: the robust accuracy is an upper bound."""


@torch.no_grad()
def judged(network: TextNetwork, part: Labelled) -> tuple[float, float]:
    """The mean logistic loss and the accuracy on a part of a task; a logit of 0 counts half."""
    weight = network.head.weight
    margins = torch.cat(
        [
            part.labels[at].to(weight) * network(part.rows(at).to(weight))
            for at in torch.arange(len(part)).split(_TEXTS_AT_ONCE)
        ]
    ).double()
    return float(softplus(-margins).mean()), share_right(margins)


def share_right(margins: Float[Tensor, " m"]) -> float:
    """The share of margins, label times logit, that are positive; a margin of 0 counts half."""
    return float(((margins > 0).double() + 0.5 * (margins == 0)).mean())


def robust_accuracy(network: TextNetwork, part: Labelled, *, texts: int, words: int, seed: Seed = 0) -> float:
    """The share of texts whose label stays right while one word moves in the ball of radius sqrt(d), at most.

    Of each of the first `texts` texts, `words` random words are moved against the label one after another by a short
    ascent: an upper bound of the share that no single word can turn.
    """
    few = torch.arange(min(texts, len(part)))
    weight = network.head.weight
    rows, labels = part.rows(few).to(weight), part.labels[few].to(weight)
    stream = generator(seed, "robust accuracy", rows.shape[1])
    chosen = torch.rand(rows.shape[:2], generator=stream).argsort(dim=1)[:, :words].to(weight.device)
    with torch.no_grad():
        right = labels * network(rows) > 0
    for at in range(chosen.shape[1]):
        one = chosen[:, at : at + 1]
        delta = worst_words(network, rows, labels, one, math.sqrt(rows.shape[2]), ATTACK_STEPS, stream)
        with torch.no_grad():
            right &= labels * network(MovedTexts(rows, one)(delta)) > 0
    return float(right.double().mean())
