"""Noisy ascents: they leave a kink at which a climb jams, and outlive a gradient that is not a number."""

import pytest
import torch
from wordsens.search.noisy import _climb_noisily

from wordsens.search.climb import Climb, Momentum
from wordsens.search.objective import Objective
from wordsens.seeds import generator

D, B = 6, 40


class Ridge(Objective):
    """10 + Delta_0 - 20 |Delta_1 + ... |: along the ridge where the sum is 0 it rises, across it falls steeply."""

    def __init__(self, broken=0.0):
        super().__init__((D,), dtype=torch.float64, device=torch.device("cpu"), memory_budget=1 << 20)
        self._broken, self._stream = broken, generator(0, "broken")

    def bytes_per_pair(self):
        return 1

    def _evaluate(self, perturbations, words, *, gradient):
        total = perturbations[:, 1:].sum(dim=1)
        slope = -20 * total.sign().unsqueeze(1).expand_as(perturbations).clone()
        slope[:, 0] = 1.0
        slope[torch.rand(len(slope), generator=self._stream) < self._broken] = torch.nan
        return 10 + perturbations[:, 0] - 20 * total.abs(), slope if gradient else None


def climbed(objective, noisily):
    stream = generator(0, "noisy")
    start = torch.nn.functional.normalize(torch.randn(B, D, generator=stream, dtype=torch.float64), dim=1)
    climb = Climb(objective, torch.zeros(B, dtype=torch.long), torch.ones(B, dtype=torch.float64), start)
    if noisily:
        _climb_noisily(climb, lambda: torch.randn(B, D, generator=stream, dtype=torch.float64) / D**0.5, 1.0, steps=100)
        return climb.squared
    rule = Momentum(climb)
    for _ in range(100):
        rule.step(climb, 1e-9)
    return climb.squared


def test_they_climb_along_a_ridge():
    """The sup is 11, along Delta_0."""
    noisy, plain = climbed(Ridge(), True), climbed(Ridge(), False)
    assert float(noisy.max()) <= 11
    assert float(noisy.median()) > 10.7 > 10.2 > float(plain.median())


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_a_gradient_that_is_not_a_number_costs_a_step_and_no_ascent(share):
    assert float(climbed(Ridge(share), True).min()) > 9.8  # ascents that kept it ended at -1
