"""Each term of attention's certificates against brute force, on problems in which it dominates: a
bound may not be less than what is found, nor so much more that half of it would still do."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from tests.certificates.attention_cases import SCORES as NAMES
from wordsens.certificates.attention.bounds import _Heads
from wordsens.certificates.attention.first_order import (
    coordinates_of,
    others_form,
    self_form,
    self_moves,
)
from wordsens.certificates.attention.multipliers import MultiplierSearch, _between
from wordsens.certificates.attention.relaxation import (
    Multipliers,
    Pairs,
    _row_suprema,
    bound_at,
    forces,
    pairs_of,
    row_errors,
)
from wordsens.certificates.attention.text import (
    AttentionText,
    RoundingErrors,
    attention_text,
    directions,
    rounding_errors,
    self_row,
    self_steps,
)
from wordsens.maps.attention.head import HeadWeights
from wordsens.maps.attention.scores import SCORES, Softmax
from wordsens.maps.attention.scores.base import Rounding, RowSteps
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
    "others apart": (
        ("relu-unnormalized", "linear"),
        [[0, 0, 0], [0, 1, 0], [0, 0, 1]],
        [[0, 0, 0], [0, 10, 0], [0, 0, 10]],
        (0, 1, 1),
        1e-3,
        1.01,
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
    reach, zs = vector(*[radius] * 4), vector(*[z] * 4)
    row = self_row(text, words, reach, direction, rounding_errors(text))
    aside = direction @ matrix([[0, 1], [-1, 0]]) * (1 - z**2) ** 0.5
    ends = torch.stack([z * direction + aside, z * direction - aside]) * radius + rows
    own = torch.linalg.vector_norm(ends - text.outputs, dim=2).amax(dim=0)
    apart = torch.cdist(text.outputs, rows).fill_diagonal_(0).amax(dim=1)
    farthest = torch.maximum(apart, torch.linalg.vector_norm(text.outputs, dim=1))
    exact = (torch.maximum(own, farthest) / radius).square()
    assert_tight(exact, row.at(zs, (1 - zs.square()).sqrt()), 1 + 1e-9)


def gains_of(score: str, scores: Tensor, moved: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """By the definition: the gain of each weight as `Expansion` has it, zeta, the new weights."""
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


# The score, the scores of its row, the largest move, and the length of all moves over the largest.
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


@pytest.mark.parametrize("off", [0.0, 0.02])
@pytest.mark.parametrize(("score", "row", "size", "share"), EXPANSIONS)
def test_every_term_of_an_expansion_is_reached(
    score: str, row: tuple, size: float, share: float, off: float
) -> None:
    """Of scores that are off by up to `off`; what that adds is bounded, and not closely."""
    scores, error = vector(*row), vector(off).view(1, 1)
    moves = torch.full_like(scores, size)
    together = share * torch.linalg.vector_norm(moves)
    tau = moves_of(score, scores, moves)
    tau = tau[torch.linalg.vector_norm(tau, dim=1) <= together * (1 + 1e-12)]
    expansion = SCORES[score].expansion(scores[None], moves[None], together.view(1), error)
    most = expansion.bend * tau.square() + expansion.spread * tau.abs()
    counted = most > 1e-3 * most.amax()  # Elsewhere rounding counts.
    rests, scales, rises = [], [], []
    for signs in torch.cartesian_prod(*[vector(-1, 1)] * 3):
        gain, zeta, _ = gains_of(score, scores + off * signs, tau)
        rest = (gain - zeta * expansion.slope * tau).abs()
        rests.append(rest - zeta * expansion.slope_error * tau.abs())
        scales.append(zeta.amax(dim=0))
        rises.append(gain.abs().amax(dim=0))
    rest, close = torch.stack(rests).amax(dim=0), off == 0
    assert bool((rest <= most * (1 + 1e-9) + 1e-15).all())
    assert_tight(torch.stack(scales).amax(dim=0), expansion.scale, 1.2 if close else 1e9)
    assert_tight(torch.stack(rises).amax(dim=0), expansion.rise[0], 1.4 if close else 1e9)
    if close and bool(counted.any()):
        assert float((rest / most)[counted].amax()) >= 0.75


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
    blank = torch.zeros(1, 1, dtype=torch.float64)
    fields = [vector(value).view(1, 1) for value in (before, score, speed, fastest, radius)]
    rounding = Rounding(*fields, *[blank] * 5, torch.zeros(1, dtype=torch.long))
    assert_tight(off.view(1, 1), rounding.kink, most)


# The score, the rows, the scores of each row before the move, and the radius.
LEVEL, LINE = [[9, 0, 0], [9, 5, 0], [9, 500, 0]], [[9, 0, 0], [4, 0, 0], [4, 0, 0]]
HULLS = {
    "far": ("softmax", LEVEL, [[50, 0, HIDDEN], [50, 0, HIDDEN], [HIDDEN, 0, 0]], 0.01),
    "zero": ("relu", LEVEL[:2] + LEVEL[:1], [[1, OFF, OFF]] * 3, 0.01),
    "the word": ("softmax", LINE, [[0, 50, 0], [0, 50, 0], [HIDDEN, 0, 0]], 5.0),
}


@pytest.mark.parametrize("problem", HULLS)
def test_the_hull_of_all_rows_is_reached(problem: str) -> None:
    """Steep scores: all rows that see word 0 turn to it, or from it, at once."""
    score, rows, before, radius = HULLS[problem]
    weight = matrix([[1e4, 0, 0], [0, 0, 0], [0, 0, 0]])
    bias = matrix(before) - matrix(rows) @ weight @ matrix(rows).T
    heads = _Heads(matrix(rows), [HeadWeights(weight, bias=bias)], 1.0, SCORES[score])
    text = heads._text
    _, outputs = mapped(text, 0, radius * ball(3))
    change = torch.linalg.vector_norm(outputs - text.outputs, dim=(1, 2)).amax() / radius
    assert_tight(change.view(1), heads._hull(torch.tensor([0]), vector(radius)), 1.001)


SMALL = [[0.4, 1, -0.3], [1, 0.8, 0.5], [-0.6, 0.7, 1]]
SMOOTH, KINKED = ("softmax", "sigmoid", "linear"), ("relu", "relu-unnormalized")
AXES, ALIKE = [[0, 0, 0], [0, 1, 0], [0, 0, 2]], [[1, 0, 0, 0], [1, 1e-3, 0, 0]]
# Scores, rows, W, row 0's bias, radius, the largest bound over brute; of row 0, then of others.
FORMS = {
    "slopes": (NAMES, SMALL, [[1, 0, 1], [0, 2, 0], [1, 0, 3]], (0, 0, 0), 1e-5, 1.002),
    "twist": (("softmax", "relu"), AXES, [[5e4, 0, 0], *NONE[:2]], (1, 1, 1), 1e-3, 1.07),
    "long twist": (("softmax",), AXES, [[3e6, 0, 0], *NONE[:2]], (-9, 1, 1), 1e-3, 1.1),
    "bent twist": (
        ("softmax",),
        [[5e-4, 0, 0], [0, 1, 0], [0, 1, 0]],
        [[1.5e6, 0, 0], *NONE[:2]],
        (-12, 0, 0),
        1e-3,
        1.1,
    ),
    "twisted kink": (
        ("relu-unnormalized",),
        [[0, 9, 0], [0, 0, 0], [0, 0, 0]],
        [[1e6, 0, 0], *NONE[:2]],
        (0, OFF, OFF),
        1e-3,
        1.01,
    ),
    "weight": (
        ("softmax", "relu"),
        [[0, 1, 0]] * 3,
        [[3e6, 0, 0], *NONE[:2]],
        (1, 9, 9),
        1e-3,
        1.4,
    ),
    "bend": (
        ("softmax",),
        [[0, 0, 0], [1, 0, 1e-3], [1, 0, -1e-3]],
        [[0, 0, 0], [0, 0, 1e6], [0, -1e6, 0]],
        (0, 0, 0),
        3e-4,
        1.15,
    ),
    "kink": (
        ("relu-unnormalized", "relu"),
        [[0, 1, 0], [1, 0, 0], [0, 1, 0]],
        [[1e3, 0, 0], *NONE[:2]],
        (OFF, 0, 1),
        1e-4,
        1.25,
    ),
}
OTHERS = {
    "slopes": (SMOOTH, SMALL, [[1, 0, 1], [0, 2, 0], [1, 0, 3]], (0, 0, 0), 1e-5, 1.002),
    # p² counts twice where a score has kinks.
    "kinked": (KINKED, SMALL, [[1, 0, 1], [0, 2, 0], [1, 0, 3]], (0, 0, 0), 1e-5, 1.11),
    "most": (("softmax",), SMALL, [[1, 0, 1], [0, 2, 0], [1, 0, 3]], (4, 0, 0), 1e-5, 1.002),
    "range": (("softmax",), ALIKE, 0, (0, 0), 0.1, 1.02),
    "ranges": (
        ("softmax",),
        [*ALIKE, [1, 0, 1e-3, 0], [1, 0, 0, 1e-3]],
        0,
        (0, 0, 0, 0),
        0.1,
        1.07,
    ),
}
OWN = [(FORMS, name, score) for name in FORMS for score in FORMS[name][0]]
REST = [(OTHERS, name, score) for name in OTHERS for score in OTHERS[name][0]]


@pytest.mark.parametrize(("table", "problem", "score"), OWN + REST)
def test_forms_of_small_radii_are_reached(table: dict, problem: str, score: str) -> None:
    _, rows, weight, bias, radius, most = table[problem]
    biases = vector(*bias).expand(len(rows), -1)
    weight = matrix(weight) if weight else vector(0, 5e3, 5e3, 5e3).diag()
    text = text_of(matrix(rows), weight, score, biases)
    word, coordinates = torch.tensor([0]), coordinates_of(text)
    pairs = pairs_of(text, word, vector(radius), vector(0.0))
    y = ball(len(weight))
    _, outputs = mapped(text, 0, radius * y)
    changed = (outputs - text.outputs) / (radius * pairs.unit)
    if table is OTHERS:
        form, changed = others_form(text, coordinates, pairs), changed[:, 1:]
    else:
        form = self_form(text, text.score, coordinates, rounding_errors(text), pairs, 0)
        changed = changed[:, :1]
    brute = torch.linalg.vector_norm(changed, dim=(1, 2))
    bound = ((y @ form.matrix[0]) * y).sum(dim=1).sqrt() + form.constant
    assert bool((brute <= bound * (1 + 1e-9)).all())
    assert_tight(brute.amax().view(1), form.bound(0.0), most)


@pytest.mark.parametrize("score", ["softmax", "linear"])
def test_scores_move_by_their_linear_and_quadratic_parts(score: str) -> None:
    """tau_l = radius kappa_l . y + away_l q, exactly, q = radius² y . W y."""
    radius, y = 0.7, ball(3)
    weight = matrix([[1, 0.4, 1], [-0.3, 2, 0], [1, 0.2, 3]])
    text = text_of(matrix(SMALL), weight, score)
    errors, word = rounding_errors(text), torch.tensor([1])
    pairs = pairs_of(text, word, vector(radius), vector(0.0))
    moves = self_moves(text, text.score, coordinates_of(text), errors, pairs, 0)
    scores, _ = mapped(text, 1, radius * y)
    tau = (scores - text.scores)[:, 1] / radius
    if score == "softmax":
        tau = tau - (tau @ torch.softmax(text.scores[1], dim=0)).unsqueeze(1)
    quadratic = radius * ((y @ weight) * y).sum(dim=1, keepdim=True) * moves.away
    assert torch.allclose(tau, y @ moves.kappa[0].T + quadratic, atol=1e-12)
    assert_tight(quadratic.abs().amax(dim=0), moves.twisted[0], 1.01)
    speeds = torch.linalg.vector_norm(moves.kappa, dim=2)
    assert_tight(speeds, moves.speeds, 1 + 1e-9)
    centre = text.outputs[1] if score == "softmax" else 0.0
    distances = torch.linalg.vector_norm(text.rows - centre, dim=1)
    assert_tight(distances, moves.distances[0], 1 + 1e-9)


def prepared(score: str, radius: float) -> tuple[AttentionText, Pairs, list[Multipliers]]:
    """A text of three words, row 1 of which attends to word 0 most, the pairs of all its words and
    rows, and random multipliers, twice."""
    rows, bias = 1.5 * torch.eye(3, 4, dtype=torch.float64) + ball(4)[20:23], 3 * torch.eye(3)
    weight = torch.eye(4, dtype=torch.float64)
    text = text_of(rows, weight, score, bias[[2, 0, 1]].double())
    pairs = pairs_of(text, torch.arange(3), vector(*[radius] * 3), vector(1.0, 1.0, 1.0))
    drawn, lam = ball(4)[200:212, :3].view(4, 3, 3), vector(2.0, 3.0, 4.0)
    ends = [
        Multipliers(lam, alpha * pairs.counted, 0.3 * beta * pairs.coupled, alpha[0])
        for alpha, beta in (drawn[:2], drawn[2:])
    ]
    return text, pairs, ends


def lagrangian(
    text: AttentionText, pairs: Pairs, by: Multipliers, z: Tensor
) -> tuple[Tensor, Tensor]:
    """Of (3), as its proof has it: of each row, at the nodes and at the largest e, and the rest."""
    geometry, lam = text.geometry, by.lam[:, None, None]
    direction, _ = directions(text, pairs.words)
    centre = by.alpha @ geometry.queries + by.beta @ geometry.offsets
    centre = centre + by.gamma.unsqueeze(1) * direction
    t_centre = (centre @ geometry.queries.T).unsqueeze(2)
    e_centre = (centre @ geometry.offsets.T).unsqueeze(2)
    alpha, beta, coupled = by.alpha.unsqueeze(2), by.beta.unsqueeze(2), pairs.coupled.unsqueeze(2)
    t, q, b = pairs.t, pairs.q, geometry.output_weight
    e = e_centre + (q - 2 * lam * beta) / (2 * lam * b)
    free = q * e - lam * (b * (e - e_centre).square() + 2 * beta * e)
    held = lam * (geometry.score_weight * (t - t_centre).square() + 2 * alpha * t)
    across = (1 - z.square()).sqrt()[:, None, None] * pairs.crude.unsqueeze(2)
    along = q * (pairs.reach * z[:, None]).unsqueeze(2) + q.abs() * across
    rows = pairs.base + along + coupled * free - held
    outside = by.lam * (1 + centre.square().sum(dim=1) - 2 * by.gamma * z)
    return rows * pairs.counted.unsqueeze(2), outside


def answers(
    text: AttentionText, pairs: Pairs, t: Tensor, off: float = 0.0
) -> tuple[Tensor, Tensor]:
    """p and g, by the definition, where each row's score with each word moves by t in its unit, and
    by `off` besides."""
    moved = t * (pairs.radius.unsqueeze(1) * text.geometry.speed).unsqueeze(2) + off
    word = torch.eye(len(text.rows), dtype=torch.float64)[:, None, None, :]
    weights = text.score.attention(text.scores[:, None] + word * moved.unsqueeze(3))
    p = (weights * word).sum(dim=3)
    before = text.score.attention(text.scores).T.unsqueeze(2)
    rest = torch.where(pairs.curve.mostly.unsqueeze(2), 1.0, 1 - before)
    g = (p - before) / (rest if text.score.normalized else 1.0) / pairs.radius[:, None, None]
    return p / pairs.unit[:, None, None], g / pairs.unit[:, None, None]


def refined(text: AttentionText, pairs: Pairs) -> Pairs:
    """With 2,001 nodes in place of the curve's."""
    t = pairs.t[..., -1:] * torch.linspace(-1, 1, 2001, dtype=torch.float64)
    p, g = answers(text, pairs, t)
    base = p.square() + g.square() * pairs.squares.unsqueeze(2)
    return replace(pairs, t=t, q=2 * p * g, base=base)


@pytest.mark.parametrize("score", NAMES)
def test_squared_changes_of_rows_are_as_their_pairs_have_them(score: str) -> None:
    text, pairs, _ = prepared(score, 0.8)
    y = ball(4)[:4000]
    t = (text.geometry.queries @ y.T).expand(3, -1, -1)
    p, g = answers(text, pairs, t)
    direction, _ = directions(text, pairs.words)
    z = (direction @ y.T).unsqueeze(1)
    e = text.geometry.offsets @ y.T
    reach, coupled, crude = (
        part.unsqueeze(2) for part in (pairs.reach, pairs.coupled, pairs.crude)
    )
    square = p.square() + g.square() * pairs.squares.unsqueeze(2)
    least = square + 2 * p * g * (reach * z + coupled * e)
    most = least + 2 * (p * g).abs() * crude * (1 - z.square()).clamp(min=0).sqrt()
    for word in range(3):
        _, outputs = mapped(text, word, 0.8 * y)
        change = (outputs - text.outputs) / (pairs.radius * pairs.unit)[word]
        exact, counted = change.square().sum(dim=2).T, pairs.counted[word] > 0
        assert_tight(exact.amax(dim=1)[counted], most[word].amax(dim=1)[counted], 1.3)
        assert bool((exact <= most[word] * (1 + 1e-9) + 1e-12)[counted].all())
        plain = counted & (pairs.crude[word] == 0)
        assert torch.allclose(exact[plain], most[word][plain])


def test_bends_of_cells_are_the_largest_second_derivatives_of_q() -> None:
    """`bend` is |q''| s² on every cell, where e_j carries the rest of a row: q = 2 p g by the
    definition, on 41 places of each cell."""
    text, pairs, _ = prepared("softmax", 0.8)
    left, width = pairs.t[..., :-1], pairs.t[..., 1:] - pairs.t[..., :-1]
    places = [answers(text, pairs, left + share * width) for share in torch.linspace(0, 1, 41)]
    q = torch.stack([2 * p * g for p, g in places])
    turns = (q[2:] - 2 * q[1:-1] + q[:-2]).abs().amax(dim=0) * 40**2
    known = (pairs.coupled > 0).unsqueeze(2) & (width > 1e-3 * pairs.t[..., -1:])
    assert bool((turns <= pairs.bend * (1 + 1e-3))[known].all())
    assert float((turns / pairs.bend)[known].amax()) >= 0.7


@pytest.mark.parametrize("off", [(1e-5, 0, 0), (0, 1e-5, 0), (0, 0, 1e-5)])
@pytest.mark.parametrize("score", NAMES)
def test_errors_of_rows_cover_scores_speeds_and_outputs_that_are_off(
    score: str, off: tuple
) -> None:
    text, pairs, _ = prepared(score, 0.8)
    scores, speeds, outputs = (torch.full((3,), size, dtype=torch.float64) for size in off)
    errors = RoundingErrors(speeds, 0 * speeds, scores, outputs, norm=1.0, longest=0.0)
    apart = off[2] if text.score.normalized else 0.0
    t = pairs.t[..., -1:] * torch.linspace(-1, 1, 401, dtype=torch.float64)
    true, length = answers(text, pairs, t), pairs.squares.sqrt().unsqueeze(2)
    worst = torch.zeros(3, 3, dtype=torch.float64)
    for signs in torch.cartesian_prod(*[vector(-1, 1)] * 4):
        other = replace(text, scores=text.scores + off[0] * signs[:3])
        p, g = answers(other, pairs, t, float(0.8 * signs[3] * off[1]))
        error = (p - true[0]).abs() + (g - true[1]).abs() * length + g.abs() * apart
        worst = torch.maximum(worst, error.amax(dim=2))
    brute = torch.linalg.vector_norm(worst * pairs.counted, dim=1) * pairs.unit
    assert_tight(brute, row_errors(text, errors, pairs), 11.0)


@pytest.mark.parametrize("kind", ["drawn", "inside"])
@pytest.mark.parametrize("radius", [0.1, 0.6, 7.5, 200.0])
@pytest.mark.parametrize("score", NAMES)
def test_the_lagrangian_is_that_of_the_proof(score: str, radius: float, kind: str) -> None:
    """With the second multipliers rows have their maxima inside cells, where p falls."""
    text, pairs, (by, _) = prepared(score, radius)
    if kind == "inside":
        by = Multipliers(0.014 * by.lam, 0 * by.alpha, 1.3 * pairs.coupled, 0 * by.gamma)
    z = vector(-0.3, 0.2, 0.9)
    across = (1 - z.square()).sqrt()
    rows, outside = lagrangian(text, pairs, by, z)
    force = forces(text.geometry, pairs, by, z)
    q, t = pairs.q, pairs.t
    linear, quadratic, pull = (
        part.unsqueeze(2) for part in (force.linear, force.quadratic, force.pull)
    )
    h = pairs.base + q * (linear + quadratic * q) + t * (pull - force.hold.unsqueeze(2) * t)
    h = h + q.abs() * (pairs.crude * across.unsqueeze(1)).unsqueeze(2)
    h = h * pairs.counted.unsqueeze(2)
    constant = (rows - h)[..., 0]
    assert torch.allclose(h + constant.unsqueeze(2), rows, rtol=1e-10, atol=1e-10)
    assert torch.allclose(force.outside - constant.sum(dim=1), outside, rtol=1e-10)
    exact, _ = lagrangian(text, refined(text, pairs), by, z)
    bound = _row_suprema(text.geometry, pairs, by, force, across) * pairs.counted + constant
    brute = exact.amax(dim=2)
    assert bool((brute <= bound + 1e-9).all())
    assert bool((bound - brute <= 0.02 * rows.abs().amax()).all())


def interpolated(
    text: AttentionText, pairs: Pairs, ends: list[Multipliers], share: float
) -> Multipliers:
    """At a share of the way from one end to the other of lam, 2 lam (alpha - a t'), 2 lam (beta - b
    e') and 2 lam gamma, which vary linearly."""
    geometry, (direction, _) = text.geometry, directions(text, pairs.words)
    u, v, a, b = geometry.queries, geometry.offsets, geometry.score_weight, geometry.output_weight
    parts = []
    for by in ends:
        force = forces(geometry, pairs, by, torch.zeros_like(by.lam))
        lam = by.lam.unsqueeze(1)
        pulls = 2 * lam * (by.alpha - a * force.t) * pairs.counted
        turns = 2 * lam * (by.beta - b * force.e) * pairs.coupled
        parts.append((by.lam, pulls, turns, 2 * by.lam * by.gamma))
    lam, pulls, turns, push = (torch.lerp(x, y, share) for x, y in zip(*parts, strict=True))
    w = pulls @ u + turns @ v + push.unsqueeze(1) * direction
    held = a * (u.T * pairs.counted.unsqueeze(1)) @ u + b * (v.T * pairs.coupled.unsqueeze(1)) @ v
    rest = lam[:, None, None] * (torch.eye(u.shape[1], dtype=torch.float64) - held)
    centre = torch.linalg.solve(rest, w / 2)
    alpha = (pulls / (2 * lam.unsqueeze(1)) + a * centre @ u.T) * pairs.counted
    beta = (turns / (2 * lam.unsqueeze(1)) + b * centre @ v.T) * pairs.coupled
    return Multipliers(lam, alpha, beta, push / (2 * lam))


@pytest.mark.parametrize("kind", ["drawn", "pushed"])
@pytest.mark.parametrize("score", NAMES)
@pytest.mark.parametrize("radius", [0.6, 5.0])
def test_intervals_of_z_are_bounded_and_closely(score: str, kind: str, radius: float) -> None:
    text, pairs, ends = prepared(score, radius)
    zs = vector(0.2, 0.2, 0.2), vector(0.4, 0.5, 0.6)
    if kind == "pushed":
        zs, zero = (vector(-1, -1, -1), vector(1, 1, 1)), torch.zeros_like(pairs.reach)
        ends = [Multipliers(300 * zs[1], zero, zero, 0.05 * z) for z in zs]
    direction, _ = directions(text, pairs.words)
    row = self_row(text, pairs.words, pairs.radius, direction, rounding_errors(text))
    row = row.in_units(pairs.unit)
    row = row._replace(fixed=row.fixed * (10 if kind == "drawn" else 1))
    bound = _between(text, pairs, row, ends, list(zs))
    brute, fine = [], refined(text, pairs)
    for share in torch.linspace(0, 1, 51).tolist():
        z = torch.lerp(*zs, share)
        by = interpolated(text, pairs, ends, share)
        rows, outside = lagrangian(text, fine, by, z)
        own = torch.minimum(row.fixed, row.at(z, (1 - z.square()).sqrt()))
        brute.append(rows.amax(dim=2).sum(dim=1) + outside + own)
    assert_tight(torch.stack(brute).amax(dim=0), bound, 1.1)


@pytest.mark.parametrize("score", NAMES)
def test_sizes_of_terms_cover_relative_errors_of_the_centre(score: str) -> None:
    """Of a long centre; products of vectors are off by 1e-7 of their lengths."""
    text, pairs, (by, _) = prepared(score, 0.8)
    z, geometry = vector(-0.3, 0.2, 0.9), text.geometry
    by = by._replace(alpha=20 * by.alpha.abs(), beta=20 * by.beta.abs(), gamma=20 * by.gamma.abs())
    bound, size = bound_at(geometry, pairs, by, z, torch.ones_like(z))
    u, v = (torch.linalg.vector_norm(part, dim=1) for part in (geometry.queries, geometry.offsets))
    worst = torch.zeros_like(z)
    for signs in torch.cartesian_prod(*[1e-7 * vector(-1, 1)] * 5):
        off = replace(
            geometry,
            query_gram=geometry.query_gram + signs[0] * torch.outer(u, u),
            cross_gram=geometry.cross_gram + signs[1] * torch.outer(u, v),
            offset_gram=geometry.offset_gram + signs[2] * torch.outer(v, v),
        )
        turned = replace(
            pairs,
            along_queries=pairs.along_queries + signs[3] * u,
            along_offsets=pairs.along_offsets + signs[4] * v,
        )
        moved, _ = bound_at(off, turned, by, z, torch.ones_like(z))
        worst = torch.maximum(worst, (moved - bound).abs())
    assert_tight(worst, 1e-7 * size, 9.0)


def test_newton_systems_are_solved() -> None:
    """(S - h h^T / k + diag(c)) x = r over the rows that count, against a dense solver."""
    text, pairs, _ = prepared("softmax", 0.8)
    search = MultiplierSearch(text.geometry)
    h, k = search._push(pairs)
    sides, curvature = ball(4)[300:302, :3].view(2, 1, 3).expand(2, 3, 3), vector(2.0, 5.0, 3.0)
    sides, curvature = sides * pairs.counted, curvature.expand(3, 3)
    found = search._solve(sides, curvature, (h, k), pairs.counted)
    for word in range(3):
        matrix = search._stiffness - torch.outer(h[word], h[word]) / k[word]
        matrix = matrix + torch.diag(curvature[word])
        keep = pairs.counted[word] > 0
        exact = torch.linalg.solve(matrix[keep][:, keep], sides[:, word, keep].T).T
        assert torch.allclose(found[:, word, keep], exact, rtol=1e-4, atol=1e-5)
