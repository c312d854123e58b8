"""Tables of weights before they are divided hold between their nodes, and bound the sum, for any scores and moves."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from wordsens.maps.attention.scores import SCORES, Tabulated, offered
from wordsens.maps.attention.scores.tabulated import RowMoves
from wordsens.seeds import generator

TABULATED = [name for name, score in SCORES.items() if offered(score, Tabulated) is not None]


def weight(name: str, scores: torch.Tensor, moved: torch.Tensor) -> torch.Tensor:
    """E_l by definition, the scores having moved; (n, ...)."""
    here = scores.view(-1, *[1] * (moved.dim() - 1)) + moved
    match name:
        case "softmax":
            return torch.exp(here - torch.logsumexp(scores, 0))
        case "relu":
            return here.clamp(min=0) / scores.clamp(min=0).sum()
        case "relu-unnormalized":
            return here.clamp(min=0)
        case _:
            return 1 / (1 + torch.exp(-here))


def test_all_scores_but_the_linear_one_have_tables() -> None:
    assert [name for name in SCORES if name != "linear"] == TABULATED


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
    if name in ("softmax", "sigmoid"):
        unit = 1.0
    scores = unit * torch.randn(n, generator=random, dtype=torch.float64)
    kappa = unit * size * torch.randn(n, d, generator=random, dtype=torch.float64) / math.sqrt(d)
    if name == "softmax":
        kappa -= torch.softmax(scores, 0) @ kappa
    elif name == "relu":
        scores[0] = scores[0].abs()
    moves = torch.linalg.vector_norm(kappa, dim=1)
    turns = torch.zeros(n, dtype=torch.float64)
    turns[seed % n] = turned * size * unit
    score = SCORES[name]
    assert isinstance(score, Tabulated)
    error = torch.zeros(1, 1, dtype=torch.float64)
    table = score.table(RowMoves(scores[None], moves[None], turns[None], (kappa @ kappa.T)[None], error, 1e-13))

    y = torch.randn(d, 400, generator=random, dtype=torch.float64)
    y = torch.cat([y, -kappa.T, kappa.T, -(kappa.T @ (scores > 0).double()).unsqueeze(1)], dim=1)
    y = y / torch.linalg.vector_norm(y, dim=0).clamp(min=1e-300)  # no score may be positive
    q = turns.unsqueeze(1) * (2 * torch.rand(n, y.shape[1], generator=random, dtype=torch.float64) - 1)
    total = weight(name, scores, kappa @ y + q).sum(dim=0)
    if score.normalized:
        assert bool((total >= table.least * (1 - 1e-9)).all() & (total <= table.most * (1 + 1e-9)).all())

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


def test_the_least_sum_of_a_divided_relu_is_nearly_attained() -> None:
    """A dual bound is exact for a convex function, but for the steps that were not taken."""
    random = generator(3, "rows")
    scores = torch.randn(20, generator=random, dtype=torch.float64)
    kappa = 0.6 * torch.randn(20, 30, generator=random, dtype=torch.float64) / math.sqrt(30)
    moves, zeros = torch.linalg.vector_norm(kappa, dim=1), torch.zeros(1, 20, dtype=torch.float64)
    row = RowMoves(scores[None], moves[None], zeros, (kappa @ kappa.T)[None], zeros[:, :1], 1e-13)
    score = SCORES["relu"]
    assert isinstance(score, Tabulated)
    least = float(score.table(row).least)
    y = torch.zeros(30, dtype=torch.float64)
    for k in range(400):
        active = (scores + kappa @ y > 0).double()
        y = y - 0.5 / (1 + k / 20) * kappa.T @ active
        y = y / max(1.0, float(torch.linalg.vector_norm(y)))
    attained = float((scores + kappa @ y).clamp(min=0).sum() / scores.clamp(min=0).sum())
    assert 0 < least <= attained <= 1.05 * least
