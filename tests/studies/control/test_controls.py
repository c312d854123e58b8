"""Controls: the penalty's value is attained, its gradient is that of finite differences, and each
does what it says."""

import math

import pytest
import torch

import wordsens as ws
from wordsens.errors import InputError
from wordsens.studies import control

CONVERGED = ws.training.ShortSearch(texts=2, words=None, steps=300)
"""A search whose ascents have stopped moving in float64 on these small texts."""


def small(layer, n=4, d=5, **options):
    one = control.Architecture(layer=layer, hidden=6, **options)
    return control.build_network(one, n, d, seed=4, dtype=torch.float64)


def texts(count=3, n=4, d=5):
    return torch.stack([ws.gaussian_text(n, d, seed).rows for seed in range(count)])


def smooth(name):
    """Features whose gradient is continuous, as the envelope theorem asks; maxima like to lie on
    the kinks of ReLU."""
    if name != "tanh":
        return small(name)
    torch.manual_seed(0)
    layers = (
        torch.nn.Flatten(),
        torch.nn.Linear(20, 6),
        torch.nn.Tanh(),
        torch.nn.Linear(6, 6),
        torch.nn.Tanh(),
    )
    return torch.nn.Sequential(*layers).double()


@pytest.mark.slow_cases("linear-*", "sigmoid-*")
@pytest.mark.parametrize(
    ("name", "target", "way", "over"),
    [
        ("tanh", None, "lower", "mean"),
        ("tanh", 0.4, "hold", "max"),
        ("softmax", None, "lower", "max"),
        ("softmax", 0.4, "hold", "mean"),
        ("sigmoid", None, "raise", "mean"),
        ("linear", 2.0, "hold", "max"),
    ],
)
def test_the_gradient_is_that_of_finite_differences(name, target, way, over):
    """Central differences of the whole penalty, its search included, along random directions of all
    parameters."""
    net, X = smooth(name), texts()
    phi = net if name == "tanh" else net.features

    def term():
        return ws.training.SensitivityPenalty(phi, target, way=way, over=over, search=CONVERGED)(X)

    features = [one for called, one in net.named_parameters() if not called.startswith("head")]
    gradient = torch.autograd.grad(term(), features)
    stream = torch.Generator().manual_seed(0)
    for _ in range(2):
        along = [torch.randn(one.shape, generator=stream, dtype=one.dtype) for one in features]
        step, ends = 1e-5, []
        for sign in (1, -2):
            with torch.no_grad():
                for one, move in zip(features, along, strict=True):
                    one += sign * step * move
            ends.append(float(term().detach()))
        with torch.no_grad():
            for one, move in zip(features, along, strict=True):
                one += step * move
        wanted = (ends[0] - ends[1]) / (2 * step)
        got = float(sum((one * move).sum() for one, move in zip(gradient, along, strict=True)))
        assert got == pytest.approx(wanted, rel=1e-4, abs=1e-7)


def test_the_value_is_attained_and_near_the_full_search():
    net, X = small("softmax"), texts()
    penalty = ws.training.SensitivityPenalty(
        net.features, over="max", search=ws.training.ShortSearch(texts=3, words=None, steps=60)
    )
    calls = [penalty.sensitivity(X).sort().values for _ in range(5)]
    found = torch.stack(calls).amax(dim=0).tolist()  # each call has starts of its own
    full = sorted(ws.word_sensitivity(net.feature_map(), text).value for text in X)
    for short, long in zip(found, full, strict=True):
        assert 0.8 * long < short <= long * (1 + 1e-9)
    assert not penalty.last.numel()  # set where the penalty itself is asked


def test_ways_and_the_mean_over_words_are_their_formulas():
    net, X = small("relu"), texts(2)

    def ask(**options):
        penalty = ws.training.SensitivityPenalty(net.features, **{"search": CONVERGED, **options})
        return float(penalty(X).detach()), penalty.last

    lowered, values = ask()
    assert lowered == pytest.approx(float(values.mean()))
    assert ask(way="raise")[0] == pytest.approx(-float(values.log().mean()))
    assert ask(target=0.3)[0] == pytest.approx(float((values / 0.3).log().square().mean()))
    assert bool((ask(over="max")[1] > values).all())


@pytest.mark.parametrize("way", ["lower", "raise"])
def test_three_lines_in_a_loop_of_ones_own_move_the_full_searchs_value(way):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(20, 8), torch.nn.Tanh())
    X = texts().float()
    phi = ws.FunctionFeatures(lambda text: net(text[None])[0], dtype=torch.float32)
    before = ws.word_sensitivity(phi, X[0], search="quick").value
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
    penalty = ws.training.SensitivityPenalty(net, way=way)
    for _ in range(40):
        optimiser.zero_grad()
        penalty(X).backward()
        optimiser.step()
    after = ws.word_sensitivity(phi, X[0], search="quick").value
    assert (after < 0.7 * before) if way == "lower" else (after > 1.4 * before)


def test_the_spectral_penalty_is_the_sum_of_the_squared_operator_norms():
    net = small("dense", layers=2)
    penalty = control.SpectralPenalty(0.5)
    for _ in range(200):
        term = penalty.term(net, texts(), 0)
    wanted = 0.5 * sum(
        torch.linalg.matrix_norm(one.weight, 2) ** 2 for one in (*net.blocks, net.head)
    )
    assert float(term.detach()) == pytest.approx(float(wanted.detach()), rel=1e-6)
    (slope,) = torch.autograd.grad(term, net.head.weight)
    assert torch.allclose(slope, net.head.weight)  # of .5 ‖w‖²


def test_word_dropout_blanks_its_share_and_never_a_whole_text():
    net, X, labels = small("softmax"), torch.ones(400, 5, 2), torch.ones(400)
    kept = control.WordDropout(0.4).texts(net, X, labels, 0).amax(dim=2)
    assert abs(float(kept.mean()) - 0.6) < 0.05  # four standard errors
    assert bool(
        (control.WordDropout(0.99).texts(net, X, labels, 0).amax(dim=2).sum(dim=1) >= 1).all()
    )


def test_adversarial_words_raise_the_loss_and_move_one_word():
    net, X = small("softmax"), texts()
    labels = torch.tensor([1.0, -1.0, 1.0], dtype=torch.float64)
    moved = control.AdversarialWords(0.5, steps=5).texts(net, X, labels, 0)
    lengths = (moved - X).norm(dim=2)
    assert bool(((lengths > 0).sum(dim=1) == 1).all())
    assert float(lengths.max()) == pytest.approx(0.5 * math.sqrt(5), rel=1e-12)
    assert bool((labels * net(moved) < labels * net(X)).all())


def test_supervised_pairs_move_flips_apart_and_the_others_together():
    """Six pairs of texts, three of which are said to be flips."""
    rows = [ws.TextMatrix(ws.gaussian_text(4, 5, seed).rows) for seed in range(12)]
    pairs = control.text_pairs([(rows[2 * at], rows[2 * at + 1], at < 3) for at in range(6)])
    net, flipped = small("softmax"), torch.arange(6) < 3
    assert torch.equal(pairs[0].labels != pairs[1].labels, flipped)
    supervised = control.SupervisedPairs(pairs, batch=12)
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)

    def changes():
        with torch.no_grad():
            before, after = (net.features(part.rows().double()) for part in pairs)
        return (after - before).norm(dim=1) / before.norm(dim=1)

    def loss(found):
        short = (1 - found).clamp(min=0)
        return float(torch.where(flipped, short, found).square().mean())

    start = changes()
    for step in range(150):
        optimiser.zero_grad()
        supervised.term(net, texts(), step).backward()
        optimiser.step()
    end = changes()
    assert loss(end) < 0.25 * loss(start)
    assert bool((end[~flipped] < start[~flipped]).all())
    assert float(end[flipped].min()) > float(end[~flipped].max())


def test_a_weight_that_is_not_positive_is_refused():
    for control_class, wrong in (
        (control.SpectralPenalty, {"weight": -1.0}),
        (control.WordDropout, {"share": 0.0}),
        (control.AdversarialWords, {"steps": 0}),
    ):
        with pytest.raises(InputError, match=f"`{next(iter(wrong))}`"):
            control_class(**wrong)


def test_a_text_whose_features_are_zero_is_left_out_and_counted():
    penalty = ws.training.SensitivityPenalty(lambda X: torch.relu(X))
    X = torch.stack([torch.ones(3, 4), -torch.ones(3, 4)])
    assert bool(torch.isfinite(penalty(X)))
    assert (penalty.left_out, len(penalty.last)) == (1, 1)
