"""Tables of weights that are not divided hold between their nodes, for any scores and moves."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from wordsens.maps.attention.scores import SCORES, Tabulated
from wordsens.maps.attention.scores.bounds import RowMoves
from wordsens.seeds import generator

TABULATED = ("relu-unnormalized", "sigmoid")


def weight(name: str, scores: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
    """E_l by definition, the scores having moved; (n, ...)."""
    here = scores.view(-1, *[1] * (moved.dim() - 1)) + moved
    return here.clamp(min=0) if name == "relu-unnormalized" else 1 / (1 + torch.exp(-here))


@pytest.mark.parametrize("name", TABULATED)
@given(
    seed=st.integers(0, 10_000),
    size=st.sampled_from([1e-6, 0.1, 1.0, 3.0, 8.0]),
    turned=st.sampled_from([0.0, 0.1, 2.0]),
    unit=st.sampled_from([1e-20, 1.0, 1e20]),
)
def test_weights_stay_within_the_table(name: str, seed: int, size: float, turned: float, unit: float) -> None:
    random = generator(seed, "rows")
    n, d = 5, 7
    if name == "sigmoid":
        unit = 1.0
    scores = unit * torch.randn(n, generator=random, dtype=torch.float64)
    kappa = unit * size * torch.randn(n, d, generator=random, dtype=torch.float64) / math.sqrt(d)
    moves = torch.linalg.vector_norm(kappa, dim=1)
    turns = torch.zeros(n, dtype=torch.float64)
    turns[seed % n] = turned * size * unit
    score = SCORES[name]
    assert isinstance(score, Tabulated)
    error = torch.zeros(1, 1, dtype=torch.float64)
    table = score.table(RowMoves(scores[None], moves[None], turns[None], error))

    share = torch.linspace(0, 1, 9, dtype=torch.float64)
    left, right = table.tau[0, :, :-1, None], table.tau[0, :, 1:, None]
    lowest, highest = (
        part[0, :, :-1, None] + share * (part[0, :, 1:] - part[0, :, :-1]).unsqueeze(2)
        for part in (table.low, table.high)
    )
    for fraction in (-1.0, -0.3, 0.5, 1.0):
        pushed = fraction * turns.view(-1, 1, 1)
        inside = weight(name, scores, left + share * (right - left) + pushed)
        close = 1e-12 * table.size[0].view(-1, 1, 1)
        assert bool((inside >= lowest - table.below[0].unsqueeze(2) * (1 + 1e-9) - close).all())
        assert bool((inside <= highest + table.above[0].unsqueeze(2) * (1 + 1e-9) + close).all())
        assert bool((inside >= table.low[0, :, :-1, None] - close).all())
        assert bool((inside <= table.high[0, :, 1:, None] + close).all())
