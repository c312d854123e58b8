"""The penalty, at texts whose sensitivity is not defined."""

import torch

from wordsens.training import SensitivityPenalty


def test_a_text_without_features_puts_no_nan_into_the_gradient():
    """The gradient of a square root at 0 is infinite; that text is left out."""
    weight = torch.nn.Parameter(torch.tensor(2.0))

    def phi(texts):
        return (weight * texts.square()).sum(dim=(1, 2)).sqrt().unsqueeze(1)

    texts = torch.cat([torch.zeros(1, 3, 4), torch.ones(2, 3, 4)])
    penalty = SensitivityPenalty(phi, seed=0)
    penalty(texts).backward()
    assert penalty.left_out == 1
    assert weight.grad is not None and torch.isfinite(weight.grad)
