"""Each term of attention's certificates against brute force, on problems in which it dominates: a
bound may not be less than what is found, nor so much more that half of it would still do."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tests.certificates.attention_cases import SCORES as NAMES
from wordsens.certificates.attention.bounds import _Heads
from wordsens.certificates.attention.text import (
    AttentionText,
    attention_text,
    directions,
    rounding_errors,
    self_row,
    self_steps,
)
from wordsens.maps.attention.head import HeadWeights
from wordsens.maps.attention.scores import SCORES, Softmax
from wordsens.maps.attention.scores.base import Expansion, Rounding, RowSteps
from wordsens.seeds import generator

HIDDEN = -torch.inf
OFF = -1e9  # The bias of a score that never becomes positive, nor has any softmax weight.


def matrix(values: list) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def vector(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def assert_tight(brute: Tensor, bound: Tensor, most: float) -> None:
    """brute <= bound <= most brute, apart from rounding."""
    assert bool((brute <= bound * (1 + 1e-9) + 1e-14).all())
    assert bool((bound <= most * brute + 1e-14).all())


def ball(d: int) -> Tensor:
    """The axes, 4,000 random directions, and 1,000 points inside the unit ball."""
    axes = torch.eye(d, dtype=torch.float64)
    drawn = torch.randn(5000, d, generator=generator(0, "ball"), dtype=torch.float64)
    points = torch.cat([axes, -axes, drawn])
    points = points / torch.linalg.vector_norm(points, dim=1, keepdim=True)
    points[-1000:] *= torch.linspace(0, 1, 1000, dtype=torch.float64).unsqueeze(1)
    return points


def text_of(rows: Tensor, weight: Tensor, score: str, bias: Tensor | None = None) -> AttentionText:
    return attention_text(rows, [HeadWeights(weight, bias=bias)], SCORES[score])


def mapped(text: AttentionText, word: int, delta: Tensor) -> tuple[Tensor, Tensor]:
    """Scores and outputs, by the definition, of the texts whose word is moved by each delta."""
    rows = text.rows.repeat(len(delta), 1, 1)
    rows[:, word] += delta
    head = text.weights[0]
    scores = rows @ head.matrix @ rows.mT + (0.0 if head.bias is None else head.bias)
    return scores, text.score.attention(scores) @ rows


class Recording(Softmax):
    """Reports how far the scores of row i are said to move."""

    def row_steps(self, scores: Tensor, moves: Tensor, error: Tensor) -> RowSteps:
        return RowSteps(moves, moves)


@pytest.mark.parametrize("radius", [0.01, 1.0, 100.0])
def test_scores_of_the_words_own_row_move_as_far_as_their_bounds(radius: float) -> None:
    """The word is a top eigenvector of W + W^T: its score with itself moves by exactly its bound
    at every radius. The second head's scores are negative multiples, the last word is hidden."""
    rows = matrix([[1, 0], [0.3, 2], [-1, 1], [5, 5]])
    weight = matrix([[2, 1], [-1, -1]])
    hiding = torch.zeros(4, 4, dtype=torch.float64)
    hiding[:, 3] = HIDDEN
    heads = [HeadWeights(factor * weight, bias=hiding) for factor in (1, -3)]
    text = attention_text(rows, heads, Recording())
    bound = self_steps(text, torch.tensor([0]), vector(radius), rounding_errors(text)).change
    moved = rows + matrix([[1], [0], [0], [0]]) * radius * ball(2).unsqueeze(1)
    change = (moved @ weight @ moved.mT - rows @ weight @ rows.T)[:, 0].abs().amax(dim=0)
    change[3] = 0
    assert_tight(torch.stack([change, 3 * change]), bound[:, 0], 1.001)


# Word 0 moves: scores that react, rows, W, row 0's bias, radius, the largest bound over brute.
NONE = [[0.0] * 3] * 3
OWN_ROWS = {
    "own weight": (NAMES, [[1, 0, 0], [0, 1, 0], [0, 0, 1]], NONE, (1, 1, 1), 0.5, 1.001),
    "others": (
        ("relu", "relu-unnormalized", "sigmoid"),
        [[0, 0, 1], [1, 1, 0], [1, -1, 0]],
        [[0, 0, 0], [0, 10, 0], [1, 0, 0]],
        (-50, 0, 0),
        1e-3,
        1.05,
    ),
    "others of linear": (
        ("linear",),
        [[0, 0, 1], [1, 1, 0], [1, -1, 0]],
        [[0, 0, 0], [0, 10, 0], [1, 0, 0]],
        (0, 0, 0),
        1e-3,
        1.06,
    ),
    # Changes of weights sum to zero, and both sides are counted: twice the change.
    "others of softmax": (
        ("softmax",),
        [[0, 0, 1], [1, 1, 0], [1, -1, 0]],
        [[0, 0, 0], [0, 10, 0], [1, 0, 0]],
        (-50, 0, 0),
        1e-4,
        2.03,
    ),
    "own score": (("relu",), [[1, 0], [0, 1]], [[1, 0], [0, 0]], (0, 1), 1e-3, 1.09),
    "own score, not divided": (
        ("relu-unnormalized", "linear"),
        [[2, 0], [0, 0]],
        [[1, 0], [0, 0]],
        (0, 0),
        1e-3,
        1.01,
    ),
    "another word": (
        ("softmax",),
        [[0, 0, 0], [0, 1, 0], [0, -5, 0], [0, 0, 100]],
        [[0, 0, 0], [0, 1e6, 0], [0, 0, 0]],
        (0, 50, 0, HIDDEN),
        0.01,
        1.001,
    ),
    "zeros": (
        ("relu",),
        [[0, 9, 0], [1, 9, 0], [-1, 9, 0]],
        [[0, 0, 0], [0, 0, 0], [0, 10, 0]],
        (OFF, 1, 1),
        1.0,
        1.001,
    ),
    "the word itself": (
        ("softmax", "relu"),
        [[5, 0], [-1, 0]],
        [[10, 0], [0, 10]],
        (-500, 100),
        5.0,
        1.001,
    ),
}


@pytest.mark.parametrize(
    ("problem", "score"), [(name, score) for name in OWN_ROWS for score in OWN_ROWS[name][0]]
)
def test_the_words_own_row_changes_as_much_as_its_bound(problem: str, score: str) -> None:
    _, rows, weight, bias, radius, most = OWN_ROWS[problem]
    biases = vector(*bias).expand(len(rows), -1)
    text = text_of(matrix(rows), matrix(weight), score, biases)
    words, reach = torch.tensor([0]), vector(radius)
    direction, _ = directions(text, words)
    bound = self_row(text, words, reach, direction, rounding_errors(text)).fixed.sqrt()
    _, outputs = mapped(text, 0, radius * ball(text.rows.shape[1]))
    change = torch.linalg.vector_norm(outputs[:, 0] - text.outputs[0], dim=1).amax() / radius
    assert_tight(change.view(1), bound, most)


@pytest.mark.parametrize("radius", [0.05, 2.0])
@pytest.mark.parametrize("z", [-1.0, -0.3, 0.6])
def test_the_hull_of_the_words_own_row_is_exact_at_each_z(radius: float, z: float) -> None:
    rows = matrix([[1, 0.5], [-0.2, 2], [0.3, -1], [2, 2]])
    text = text_of(rows, matrix([[0.5, 1], [0, -0.3]]), "relu")
    words = torch.arange(4)
    direction, _ = directions(text, words)
    reach, zs = torch.full((4,), radius, dtype=torch.float64), torch.full((4,), z, dtype=torch.float64)
    row = self_row(text, words, reach, direction, rounding_errors(text))
    aside = direction @ matrix([[0, 1], [-1, 0]]) * (1 - z**2) ** 0.5
    ends = torch.stack([z * direction + aside, z * direction - aside]) * radius + rows
    own = torch.linalg.vector_norm(ends - text.outputs, dim=2).amax(dim=0)
    apart = torch.cdist(text.outputs, rows).fill_diagonal_(0).amax(dim=1)
    farthest = torch.maximum(apart, torch.linalg.vector_norm(text.outputs, dim=1))
    exact = (torch.maximum(own, farthest) / radius).square()
    assert_tight(exact, row.at(zs, (1 - zs.square()).sqrt()), 1 + 1e-9)


def gains_of(score: str, scores: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """By the definition: what each weight gains, as `Expansion` counts it; zeta; the new weights."""
    weight = {"softmax": torch.exp, "sigmoid": torch.sigmoid, "linear": torch.clone}
    old, new = (weight.get(score, torch.relu)(values) for values in (scores, scores + moved))
    if score not in ("softmax", "relu"):
        return new - old, torch.ones_like(new[:, :1]), new
    before, after = old.sum(), new.sum(dim=1, keepdim=True)
    zeta = before / after
    if score == "softmax":  # Weights a e^tau / Z, sum of a tau = 0: zeta is 1 / Z.
        zeta = before / (old * moved.exp()).sum(dim=1, keepdim=True)
        return zeta * (new - old) / before, zeta, new / after
    return (new - old) / after, zeta, new / after


def moves_of(score: str, scores: Tensor, moves: Tensor) -> Tensor:
    """A grid of moves of three scores, corners included; of mean zero where the score ignores a
    common shift."""
    line = torch.linspace(-1, 1, 25, dtype=torch.float64)
    tau = torch.cartesian_prod(*(size * line for size in moves))
    if SCORES[score].shift_invariant:
        share = torch.softmax(scores, dim=0)
        tau[:, 2] = -(tau[:, :2] @ share[:2]) / share[2]
    return tau[(tau.abs() <= moves * (1 + 1e-12)).all(dim=1)]


# Score, its row's scores, the largest move, and the length of all moves over the largest possible.
EXPANSIONS = [
    *(("softmax", (0.7, 0.0, 0.0), size, 1.0) for size in (0.01, 0.3, 2.0)),
    *(("softmax", (-4.0, 0.2, 0.2), size, 1.0) for size in (0.01, 0.3, 2.0)),
    ("relu", (0.7, 0.0, 0.0), 0.01, 1.0),
    ("relu", (0.1, 3.0, 3.0), 0.3, 1.0),
    ("relu", (-0.1, 3.0, 3.0), 0.3, 1.0),
    ("relu", (4.0, 4.0, 4.0), 3.0, 0.5),
    *(("relu-unnormalized", (0.7, -0.2, 0.0), size, 1.0) for size in (0.01, 0.3, 2.0)),
    *(("sigmoid", (0.7, 0.0, 0.0), size, 1.0) for size in (0.01, 0.3, 2.0)),
    ("sigmoid", (-4.0, -4.0, -4.0), 0.3, 1.0),
    ("linear", (0.7, 0.0, 0.0), 0.3, 1.0),
]


@pytest.mark.parametrize(("score", "row", "size", "share"), EXPANSIONS)
def test_every_term_of_an_expansion_is_reached(score: str, row: tuple, size: float, share) -> None:
    scores, error = vector(*row), torch.zeros(1, 1, dtype=torch.float64)
    moves = torch.full_like(scores, size)
    together = share * torch.linalg.vector_norm(moves)
    tau = moves_of(score, scores, moves)
    tau = tau[torch.linalg.vector_norm(tau, dim=1) <= together * (1 + 1e-12)]
    expansion = SCORES[score].expansion(scores[None], moves[None], together.view(1), error)
    gain, zeta, _ = gains_of(score, scores, tau)
    rest = (gain - zeta * expansion.slope * tau).abs()
    most = expansion.bend * tau.square() + expansion.spread * tau.abs()
    assert bool((rest <= most * (1 + 1e-9) + 1e-15).all())
    counted = most > 1e-3 * most.amax()  # Elsewhere rounding counts.
    assert not bool(counted.any()) or float((rest / most)[counted].amax()) >= 0.75
    assert_tight(zeta.amax(dim=0), expansion.scale, 1.2)
    assert_tight(gain.abs().amax(dim=0), expansion.rise[0], 1.4)


STEPS = [
    ("softmax", (-4.0, 0.2, 0.2), 0.01),
    ("softmax", (-8.0, 0.0, 0.0), 1.0),
    ("relu", (0.7, 0.0, 0.0), 0.01),
    ("relu", (0.7, 0.0, 0.0), 0.2),
    ("relu", (0.1, 3.0, 3.0), 0.3),
    *((score, (0.7, -0.2, 0.0), 0.3) for score in NAMES[2:]),
    *((score, (0.7, 3.0, -5.0), 2.0) for score in NAMES[2:]),
]


@pytest.mark.parametrize(("score", "row", "size"), STEPS)
def test_weights_step_as_far_as_their_bounds(score: str, row: tuple, size: float) -> None:
    scores, line = vector(*row), torch.linspace(-size, size, 25, dtype=torch.float64)
    moves = torch.full_like(scores, size)
    tau = torch.cartesian_prod(line, line, line)
    gain, _, weights = gains_of(score, scores, tau)
    change = weights - SCORES[score].attention(scores) if score == "softmax" else gain
    steps = SCORES[score].row_steps(scores[None, None], moves[None, None], moves.new_zeros(1, 1, 1))
    for brute, bound in ((change, steps.change), (weights, steps.after)):
        most = brute.abs().amax(dim=0)
        assert bool((most <= bound * (1 + 1e-9)).all())
        assert float((most / bound).nan_to_num(0).amax()) >= 0.7


# A score, its error, the speed of the gain, its error, and the largest bound over brute.
KINKS = {
    "score": ((0.0, 0.1, 1.0, 0.0), 1.001),
    "speed": ((0.0, 1e-4, 1.0, 0.3), 1.01),
    "reach": ((0.3, 1.0, 0.2, 0.0), 2.001),  # |t| where the bound says 2 |t|.
    "within reach": ((0.45, 0.1, 1.0, 0.1), 1.501),
    "clear": ((0.66, 0.1, 1.0, 0.1), 1.001),
}


@pytest.mark.parametrize("regime", KINKS)
def test_a_kink_is_off_by_its_bound(regime: str) -> None:
    """relu(s + t) - relu(s), of scores and gains that are off as far as they may be; radius 1/2."""
    (before, score, fastest, speed), most = KINKS[regime]
    line, radius = torch.linspace(-1, 1, 201, dtype=torch.float64), 0.5
    s, t = before + score * line[:, None], fastest * radius * line
    true = [torch.relu(s + t + by) - torch.relu(s) for by in (-speed * radius, speed * radius)]
    computed = torch.relu(before + t) - torch.relu(vector(before))
    off = (torch.stack(true) - computed).abs().amax() / radius
    blank, row = torch.zeros(1, 1, dtype=torch.float64), torch.tensor
    fields = [vector(value).view(1, 1) for value in (before, score, speed, fastest, radius)]
    rounding = Rounding(*fields, *[blank] * 5, torch.zeros(1, dtype=torch.long))
    assert_tight(off.view(1, 1), rounding.kink, most)


@pytest.mark.parametrize("score", ["softmax", "relu"])
def test_the_hull_of_all_rows_is_exact_at_its_extremes(score: str) -> None:
    """All rows that see word 0 draw it alone, or with relu and a negative score become zero."""
    rows = matrix([[1, 0, 0], [1, 2, 0], [1, -3, 0], [1, 1, 50]])
    hiding = matrix([[0, 0, 0, 0]] * 4)
    if score == "softmax":
        hiding[1, 0] = hiding[2, 3] = HIDDEN
    weight = HeadWeights(matrix([[1e4, 0, 0], [0, 0, 0], [0, 0, 0]]), bias=hiding)
    heads = _Heads(rows, [weight], 1.0, SCORES[score])
    for radius in (0.01, 1.0, 100.0):
        text = heads._text
        _, outputs = mapped(text, 0, radius * ball(3))
        change = torch.linalg.vector_norm(outputs - text.outputs, dim=(1, 2)).amax() / radius
        print(radius, change, heads._hull(torch.tensor([0]), vector(radius)))
