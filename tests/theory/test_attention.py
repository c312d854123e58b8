"""The prediction for attention, and what is proved of the problem that it solves."""

import math

import numpy as np
import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.theory.attention import SHIFT, _deviations, over_words, relu_problem, softmax_problem
from wordsens.theory.comparison import ScalarProblem
from wordsens.theory.rows import (
    Direction,
    Others,
    Rows,
    alike_rows,
    gram_moments,
    relu_others,
    relu_self_row,
    softmax_others,
    softmax_self_row,
    text_rows,
    weight_moments,
)

POSITIVE = {"softmax": torch.exp, "relu": torch.relu}


def gaussian(random, *shape):
    return torch.randn(*shape, generator=random, dtype=torch.float64)


def standard_error(values):
    return float(values.std()) / math.sqrt(len(values))


@pytest.mark.parametrize(
    ("n", "positive", "variance"),
    [
        (2, torch.exp, 1.0),
        (20, torch.exp, 1.0),
        (50, torch.exp, 0.5),
        (6, torch.relu, 1.0),
        (40, torch.relu, 1.0),
    ],
)
def test_the_moments_of_the_weights_agree_with_monte_carlo(n, positive, variance):
    """100,000 rows of seed 0; with another one, outside five standard errors with probability below
    1e-6.

    Of a softmax's lean both the definition and what Stein's lemma makes of it, which is not 1 - E
    sum a²: .583, not .890 of 20.
    """
    scores = gaussian(torch.Generator().manual_seed(0), 100_000, n)
    raised = positive(math.sqrt(variance) * scores)
    weights = raised / raised.sum(dim=1, keepdim=True).clamp(min=1e-300)
    second, third, fourth = (weights.pow(power).sum(dim=1) for power in (2, 3, 4))
    products = (weights * scores).sum(dim=1).square() - (weights * scores).square().sum(dim=1)
    by_stein = variance * ((1 - second) - 4 * (second - third) + 6 * (second.square() - fourth))
    concentration, lean = weight_moments(n, positive, variance)
    leans = [products, by_stein] if positive is torch.exp else [products]
    for found, ours in ((second, concentration), *((each, lean) for each in leans)):
        assert float(ours) == pytest.approx(float(found.mean()), abs=5 * standard_error(found))


def test_the_other_scores_of_a_row_under_relu_agree_with_plain_sampling():
    """100,000 rows of 59 scores: the variance of the sum R of the positive ones, and Delta's part
    along their mean."""
    scores = gaussian(torch.Generator().manual_seed(0), 100_000, 59)
    r, others = scores.clamp(min=0), relu_others(alike_rows(60, 192, 0.0, 1.0, torch.relu))
    # p = r / (R + r), at r = s + 10.
    drawn = others.drawn(torch.full((1, 1), 10.0, dtype=torch.float64))[:, 0]
    sums = (others.along + 10) * (1 / drawn - 1)
    variance = others.weights @ (sums - others.weights @ sums) ** 2
    assert float(variance) == pytest.approx(float(r.sum(dim=1).var()), rel=0.02)
    lean = (r * scores).sum(dim=1) / r.sum(dim=1)
    assert others.pull == pytest.approx(float(lean.mean()), rel=0.02)


def largest_of_n(rows):
    """What Proposition 3 of docs/proofs.md lets the largest of n words add."""
    n, d = rows.shape
    gamma = float(torch.linalg.matrix_norm(rows, ord=2)) / math.sqrt(d)
    return (2 * (gamma + 1) ** 2 + gamma**2) * math.sqrt(2 * math.log(n) / n)


def test_the_largest_of_n_words_needs_rows_without_a_common_direction():
    """d = n: what the largest may add falls like sqrt(log n / n) for independent rows, and grows
    where the mean cosine is .3."""
    sizes = (50, 200, 800)
    apart = [largest_of_n(ws.gaussian_text(n, n, seed=0).rows) for n in sizes]
    common = [largest_of_n(ws.correlated_text(n, n, 0.3, seed=0).rows) for n in sizes]
    rates = [value / math.sqrt(math.log(n) / n) for n, value in zip(sizes, apart, strict=True)]
    assert rates == pytest.approx([rates[0]] * 3, rel=0.1)
    assert common[0] < common[1] / 1.5 < common[2] / 1.5**2


def test_softmax_attention_needs_coordinates_for_the_length_of_the_text():
    """Theorem 3 asks for large d. Means over three maps and texts, where one scatters by 10 %: with
    d = 64 S falls from 2.6 to 1.3, with d = 3.2 n it grows."""

    def mean(n, d):
        words = range(0, n, max(1, n // 16))
        return np.mean(
            [
                ws.word_sensitivity(
                    ws.RandomAttentionFeatures(d, seed=seed),
                    ws.gaussian_text(n, d, seed=seed),
                    words,
                    search="quick",
                    certificate=False,
                ).value
                for seed in range(3)
            ]
        )

    short = mean(20, 64)
    assert mean(640, 64) < 0.6 * short
    assert mean(80, 256) > 1.15 * short


@pytest.mark.parametrize(
    ("n", "q", "spread", "score", "off"),
    [
        (20, 0.0, 1.0, "softmax", 0.03),
        (120, 0.0, 1.0, "softmax", 0.03),
        (30, 0.3, 0.0, "softmax", 0.03),
        (20, 0.0, 1.0, "relu", 0.05),
        (120, 0.0, 1.0, "relu", 0.05),
    ],
)
def test_what_attention_keeps_agrees_with_the_map(n, q, spread, score, off):
    """E ‖phi(X)‖² / (n d) over 20 maps and texts at d = 192: within 3 or 5 %, or five standard
    errors.

    Without the spread, 20 % low at n = 120 under softmax.
    """
    kept = []
    for seed in range(20):
        X = ws.correlated_text(n, 192, q, seed=seed) if q else ws.gaussian_text(n, 192, seed=seed)
        phi = ws.RandomAttentionFeatures(192, score=score, seed=seed)
        kept.append(phi(X.rows).square().sum() / (192 * n))
    kept = torch.stack(kept)
    found, error = float(kept.mean()), 5 * standard_error(kept)
    retained = alike_rows(n, 192, q, spread, POSITIVE[score]).retained
    assert retained == pytest.approx(found, abs=max(error, off * found))


@pytest.mark.slow_cases("relu-40-192-*")
@pytest.mark.parametrize(
    ("score", "n", "d", "tolerance"),
    [("softmax", 40, 192, 0.05), ("relu", 40, 192, 0.05), ("relu", 120, 92, 0.1)],
)
def test_a_typical_word_and_the_largest_are_near_the_prediction(score, n, d, tolerance):
    """S ‖phi(X)‖ of 20 words of one map and text, which scatters less from text to text than S.

    Under ReLU rows can be left to their word nearly never at n = 120, d = 92.
    """
    rows = ws.gaussian_text(n, d, seed=1).rows
    phi = ws.RandomAttentionFeatures(d, score=score, seed=1)
    search = "quick" if score == "softmax" else "normal"
    found = ws.word_sensitivity(phi, rows, words=range(20), search=search, certificate=False)
    measured = found.per_word * float(phi(rows).norm()) / math.sqrt(d)
    norm = math.sqrt(n * alike_rows(n, d, 0.0, 1.0, POSITIVE[score]).retained)
    for words, each in ((1, measured.median()), (20, measured.max())):
        predicted = ws.theory.raf_sensitivity(n, d, score=score, words=words) * norm
        assert predicted == pytest.approx(float(each), rel=tolerance)


def test_a_typical_word_of_rows_that_share_a_direction():
    rows, phi = (
        ws.correlated_text(40, 192, 0.3, seed=0).rows,
        ws.RandomAttentionFeatures(192, seed=0),
    )
    found = ws.word_sensitivity(
        phi, rows, words=range(8), search="quick", certificate=False
    ).per_word.median()
    sizes = ws.theory.raf_sensitivity(40, 192, mean_cosine=0.3, spread=0.0, words=1)
    assert sizes == pytest.approx(float(found), rel=0.08)


@pytest.mark.slow_cases("80-96-*", "20-96-*")
@pytest.mark.parametrize(
    ("n", "d", "q", "at"),
    [
        (20, 96, 0.0, (0.5, 0.0, 0.0, 1.0, 0.0)),
        (80, 192, 0.3, (0.6, 0.5, 0.0, 1.0, 0.0)),
        (80, 96, 0.0, (0.4, 0.0, 0.2, 1.1, 0.0)),
    ],
)
def test_the_scalar_problem_agrees_with_plain_sampling(n, d, q, at):
    """20,000 draws of (s, g), a fine grid of t and y, in NumPy; its standard error is below .5
    %."""
    random = np.random.default_rng(0)
    c, b, w, alpha, _ = at
    own, spread = 1 - q, 1.0 if w else 0.0
    rows = alike_rows(n, d, q, spread)
    concentration, lean = map(float, weight_moments(n, torch.exp, own))
    rest = math.sqrt(1 - c**2)
    free = 1 - b**2 - w**2 - (alpha - 1) ** 2
    s, g = math.sqrt(own) * random.standard_normal(20_000), random.standard_normal(20_000)
    z = rest * b * math.sqrt(q * d) + (c + rest * w) * s
    z = z + rest * math.sqrt(own * (alpha**2 + spread * free)) * g
    a = 1 / (1 + (n - 1) * np.exp(own / 2 - math.sqrt(own) * s))
    apart = 1 - q + own * (concentration + lean * spread / d)
    found = []
    for y in np.geomspace(0.02, 1.5, 30):
        sup = np.full(len(z), -np.inf)
        for t in np.linspace(z.min(), z.max() + math.sqrt(d), 400):
            p = 1 / (1 + (1 / a - 1) * np.exp(-t))
            along = c * math.sqrt(own) - own * (1 - concentration) * t / d
            psi = p**2 + (p - a) ** 2 * apart + 2 * p * (p - a) * along
            sup = np.maximum(sup, psi - (t - z) ** 2 * y / own)
        found.append(d * rest**2 * free * y + n * sup.mean())
    value, _ = ScalarProblem(rows, softmax_others(rows), None).least(at)
    assert float(value) == pytest.approx(min(found), rel=0.015)


def test_row_i_under_softmax_agrees_with_plain_sampling():
    """400 rows of 2,000 scores. Words are orthogonal, Delta apart from them but for its part along
    x_i; means of quotients are taken as quotients of means, hence 10 %."""
    n, c = 2000, 0.3
    shares = torch.tensor([c, 0.0, 0.0, 1.0, 0.0], dtype=torch.float64)
    row = softmax_self_row(alike_rows(n, 768, 0.0, 0.0), Direction(*shares))
    random = torch.Generator().manual_seed(0)
    before, new = gaussian(random, 2, 400, n)
    after = torch.exp((1 + c) * before + math.sqrt(1 - c**2) * new)
    old = torch.softmax(before, dim=1)
    for itself in (0.0, 8.0, 12.0):
        total = after.sum(dim=1, keepdim=True) + math.exp(itself)
        share = math.exp(itself) / total.squeeze(1)
        moved = (after / total - old).square().sum(dim=1) + share**2 * (2 + 2 * c)
        found = float(row.change(torch.tensor([itself], dtype=torch.float64)))
        assert found == pytest.approx(float(moved.mean()), rel=0.1)


def relu_row_i(n, d, c, lowered, deviations=0.0):
    shares = torch.tensor([c, 0.0, 0.0, 1.0, lowered], dtype=torch.float64)
    return relu_self_row(alike_rows(n, d, 0.0, 0.0, torch.relu), Direction(*shares), deviations)


@pytest.mark.parametrize("lowered", [0.0, 0.8, 6.0])
def test_row_i_agrees_with_plain_sampling(lowered):
    """1,000 rows of 400 scores: what lowering them costs, and the squared change at a score with
    the word itself.

    Words are orthogonal, Delta apart from them but for its part along x_i. Means of quotients are
    taken as quotients of means, hence 3 %: of order 1/n.
    """
    n, d, c, count = 400, 768, 0.3, 1000
    row = relu_row_i(n, d, c, lowered)
    random, length = torch.Generator().manual_seed(0), 2 + 2 * c
    before, new = gaussian(random, 2, count, n)
    after, cut = (1 + c) * before + math.sqrt(1 - c**2) * new, lowered * math.sqrt(length)
    taken = after.clamp(min=0, max=cut)
    paid = taken.square().sum(dim=1)
    assert float(row.lowering) == pytest.approx(float(paid.mean()), rel=0.01, abs=1e-9)
    of_word = (1 + c) * before[:200].unsqueeze(2) + math.sqrt(1 - c**2) * torch.linspace(
        -3, 3, 13
    ).double()
    law = torch.exp(-(torch.linspace(-3, 3, 13).double() ** 2) / 2)
    expected = of_word.clamp(min=0, max=cut) ** 2 @ (law / law.sum())
    cheaper = relu_row_i(n, d, c, lowered, deviations=1.0)
    assert float(row.lowering - cheaper.lowering) ** 2 == pytest.approx(
        float(expected.var()) * n, rel=0.05, abs=1e-9
    )
    rest, old = after.clamp(min=0) - taken, before.clamp(min=0)
    for itself in (-1.0, 40.0, 160.0):
        total = rest.sum(dim=1, keepdim=True) + max(itself, 0.0)
        weights = rest / total.clamp(min=1e-300)
        share = max(itself, 0.0) / total.squeeze(1).clamp(min=1e-300)
        moved = (weights - old / old.sum(dim=1, keepdim=True)).square().sum(
            dim=1
        ) + share**2 * length
        if float(total.min()) > 0:
            assert float(row.change(torch.tensor([itself]).double())) == pytest.approx(
                float(moved.mean()), rel=0.03
            )


def test_a_prediction_belongs_to_a_relu_map_and_a_text_without_a_mean_cosine():
    rows = ws.gaussian_text(24, 48, seed=0).rows
    found = ws.theory.predict(ws.RandomAttentionFeatures(48, score="relu", seed=0), rows)
    assert found is not None and found.kind == "prediction"
    assert found.value == ws.theory.raf_sensitivity(24, 48, score="relu")
    assert [reason.split(" ")[0] for reason in found.outside] == ["d"]
    shared = ws.correlated_text(24, 48, 0.3, seed=0).rows
    assert ws.theory.predict(ws.RandomAttentionFeatures(48, score="relu", seed=0), shared) is None


def steps(n: int, d: int, spread: float) -> ScalarProblem:
    """Rows that count one once t_j is past 1: no word of their own, nothing but who is drawn."""
    zero = torch.zeros(1, dtype=torch.float64)
    others = Others(
        torch.ones(1, dtype=torch.float64),
        zero,
        zero,
        _drawn,
        0.0,
        0.0,
        4.0,
        (1, 1, 1),
    )
    return ScalarProblem(Rows(n, d, (0.0,), spread, 1.0, 0.0, 0.0, 0.0), others, None)


def _drawn(t: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(8 * (t - 1))


@pytest.mark.parametrize("independent_rows", [False, True])
def test_gordons_problem_bounds_the_expected_largest_over_the_ball(independent_rows):
    """In the plane the largest over Delta is found on a grid; 400 draws of the matrix, or of both.
    Not convex: steps.

    The mean may exceed the scalar problem by chance alone by four standard errors with probability
    below 1e-4.
    """
    n, d = 12, 2
    stream = torch.Generator().manual_seed(0)
    angles = torch.linspace(0, 2 * math.pi, 241, dtype=torch.float64)
    lengths = math.sqrt(d) * torch.linspace(0.2, 1, 9, dtype=torch.float64).unsqueeze(1)
    ball = torch.stack([(lengths * angles.cos()).flatten(), (lengths * angles.sin()).flatten()])
    found = []
    for _ in range(400):
        weight = gaussian(stream, d if independent_rows else n, d) / math.sqrt(d)
        rows = gaussian(stream, n, d) @ weight / math.sqrt(d) if independent_rows else weight
        found.append(_drawn(rows @ ball).square().sum(dim=0).max())
    values = torch.stack(found)
    problem = steps(n, d, float(independent_rows))
    alphas = (0.7, 0.9, 1.0, 1.2, 1.4, 1.7) if independent_rows else (1.0,)
    bound = max(float(problem.least((0.0, 0.0, 0.0, alpha, 0.0))[0]) for alpha in alphas)
    assert 0.5 * bound <= float(values.mean()) <= bound + 4 * standard_error(values)


def test_the_largest_of_more_words_is_larger_and_the_typical_one_the_least():
    values = [ws.theory.raf_sensitivity(30, 96, words=words) for words in (1, 2, 10, 30)]
    assert values == sorted(values) and values[0] < values[-1] == ws.theory.raf_sensitivity(30, 96)


def test_what_rows_share_scatters_words_along_a_parabola():
    """Its mean, variance and third moment under a Gaussian, by quadrature, beside the typical
    word's own."""
    rows = alike_rows(40, 192, 0.3, 0.0)
    typical, law = softmax_problem(rows).solve(), over_words(rows)
    shifts = (-SHIFT, 0.0, SHIFT)
    values = [float(softmax_problem(rows, shift).least(typical.direction)[0]) for shift in shifts]
    at, weights = np.polynomial.hermite_e.hermegauss(9)
    weights, parabola = weights / weights.sum(), np.polyval(np.polyfit(shifts, values, 2), at)
    mean = weights @ parabola
    spread, third = (weights @ (parabola - mean) ** power for power in (2, 3))
    expected = mean, spread + typical.variance, third + typical.third
    assert (law.value, law.variance, law.third) == pytest.approx(expected, rel=1e-9)


def test_words_scatter_by_the_length_of_their_keys_and_the_cost_of_row_i():
    """The logarithm of a key's length has the variance 1 / (2 d)."""
    rows = alike_rows(40, 192, 0.0, 1.0, torch.relu)
    typical, law = relu_problem(rows).solve(), over_words(rows, "relu")
    short, long = (
        float(relu_problem(rows, scale=scale).least(typical.direction)[0]) for scale in (0.95, 1.05)
    )
    by_length = ((long - short) / 0.1) ** 2 / (2 * 192)
    by_cost = (relu_problem(rows, deviations=1.0).solve().value - typical.value) ** 2
    assert law.variance == pytest.approx(typical.variance + by_length + by_cost, rel=1e-4)
    assert min(by_length, by_cost) > 1e-3 * law.variance


def test_words_of_one_text_scatter_by_what_attention_retains_too():
    """Solved for from the predictions of three numbers of words: both variances, added."""
    rows = ws.correlated_text(24, 48, 0.2, seed=1).rows[torch.arange(40) % 24]
    typical, *others = text_rows(rows @ rows.T / 48, 48)
    counts = (1, 10, 100)
    squared = [
        ws.theory.raf_sensitivity_of_text(rows, words=words) ** 2 * 40 * typical.retained
        for words in counts
    ]
    # The value, the deviation, and the deviation times a sixth of the skewness.
    series = [(1.0, at, at**2 - 1) for at in map(_deviations, counts)]
    _, deviation, _ = np.linalg.solve(series, squared)
    law = over_words(typical)
    own = [float(softmax_problem(word).least(law.direction)[0]) for word in others]
    assert deviation**2 == pytest.approx(law.variance + np.var(own, ddof=1), rel=1e-5)


def test_the_prediction_does_not_fade_with_the_number_of_words_when_d_grows_with_it():
    values = [ws.theory.raf_sensitivity(n, 8 * n) for n in (50, 200)]
    assert values[0] < values[1]


def test_a_texts_own_gram_matrix_says_what_attention_keeps_of_it():
    """40 maps of one text with repeated rows: E ‖phi(X)‖² within five standard errors, and within 5
    % of the mean."""
    rows = ws.correlated_text(24, 48, 0.2, seed=1).rows[torch.arange(40) % 24]
    retained = torch.stack(
        [
            ws.RandomAttentionFeatures(48, seed=seed)(rows).square().sum() / (48 * 40)
            for seed in range(40)
        ]
    )
    error = 5 * float(retained.std()) / math.sqrt(len(retained))
    typical, *others = text_rows(rows @ rows.T / 48, 48)
    assert typical.retained == pytest.approx(float(retained.mean()), abs=error)
    assert others[0].cross < others[-1].cross


def test_moments_of_a_gram_matrix():
    exact = ws.correlated_text(10, 48, 0.25, seed=0).rows
    cosine, spread = gram_moments(exact @ exact.T / 48, 48)
    assert (cosine, spread) == (pytest.approx(0.25), 0.0)
    noise = ws.gaussian_text(40, 48, seed=0).rows
    assert gram_moments(noise @ noise.T / 48, 48) == (0.0, 1.0)


def test_bad_arguments_are_refused():
    for options, name in (
        ({"mean_cosine": -0.1}, "mean_cosine"),
        ({"mean_cosine": 1.0}, "mean_cosine"),
        ({"spread": -1.0}, "spread"),
        ({"words": 0}, "words"),
        ({"score": "sigmoid"}, "score"),
        ({"score": "relu", "mean_cosine": 0.1}, "mean_cosine"),
    ):
        with pytest.raises(InputError, match=f"`{name}`"):
            ws.theory.raf_sensitivity(10, 10, **options)
    with pytest.raises(InputError, match="rows of length"):
        ws.theory.raf_sensitivity_of_text(2 * ws.gaussian_text(4, 8, seed=0).rows)


@pytest.mark.filterwarnings("ignore::wordsens.theory.PredictionWarning")
@pytest.mark.parametrize(
    ("n", "d", "cosine"), [(2, 768, 0.0), (20, 768, 0.3), (7, 560, 0.3), (200, 2000, 0.3)]
)
def test_prices_at_an_end_of_their_bracket_are_found(n, d, cosine):
    """Where Delta costs next to nothing: d large beside n. S grows with d, and stays finite."""
    values = [ws.theory.raf_sensitivity(n, size, mean_cosine=cosine) for size in (d // 4, d)]
    assert 1 < values[0] < values[1] < math.sqrt(2 * n) * 2
