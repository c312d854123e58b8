"""The table of all measures: each against its own function or by hand, and bounds that bound."""

import itertools
import math

import numpy as np
import pytest
import torch

import wordsens as ws

X = ws.gaussian_text(5, 6, seed=3)
SHORT = ws.SearchPlan("quick", starts=2, steps=5)
MAPS = {
    "rf": ws.RandomFeatures(5, 6, seed=0),
    "raf": ws.RandomAttentionFeatures(6, seed=0),
    "two heads": ws.RandomAttentionFeatures(6, seed=0, heads=2),
    "function": ws.FunctionFeatures(torch.tanh),
}
ANY = [
    "sup S",
    "average case",
    "small-radius limit",
    "average sensitivity",
    "block sensitivity",
    "random sensitivity",
]
BOUNDED = ["Castin-type", "Dasoulas-type"]
OF_WEIGHTS = ["attention entropy", "log n", "largest column"]
OF_ATTENTION = [*BOUNDED, *(f"{name}, at X" for name in BOUNDED), *OF_WEIGHTS]
EXPECTED = {
    "rf": [*ANY, "certificate"],
    "raf": [*ANY, "certificate", *OF_ATTENTION, "stable rank"],
    "two heads": [*ANY, "certificate", *OF_ATTENTION, "stable rank"],
    "function": [*ANY, "stable rank"],
}


def profile(phi, text=X, **options):
    return ws.sensitivity_profile(phi, text, **{"search": SHORT, **options})


def values(result):
    return {row.name: row.value for row in result.measures}


@pytest.mark.parametrize("name", MAPS)
def test_every_measure_of_a_map(name):
    result = profile(MAPS[name], seed=2)
    measured = values(result)
    assert sorted(measured) == sorted(EXPECTED[name])
    assert len(measured) == len(result.measures)
    expected = ws.word_sensitivity(MAPS[name], X, seed=2, search=SHORT)
    assert measured["sup S"] == expected.value
    assert measured.get("certificate") == expected.upper
    limit = ws.jacobian_sensitivity(MAPS[name], X)
    assert measured["small-radius limit"] == pytest.approx(limit.value * math.sqrt(6), rel=1e-9)
    assert 0 < measured["average case"] < measured["sup S"]
    assert measured["average sensitivity"] > 0 < measured["random sensitivity"]
    for row in result.measures:
        if "upper bound" in row.kind:
            assert row.value >= measured["small-radius limit" if row.radius == 0 else "sup S"]
    assert len(set(map(len, result.columns().values()))) == 1


def test_bounds_by_radius():
    result = profile(MAPS["raf"], radius=2.0)
    assert [bound.radius for bound in result.lowest] == pytest.approx([0.02, 0.2, 2.0])
    for lowest in result.lowest:
        at_radius = [bound for bound in result.bounds if bound.radius == lowest.radius]
        assert [bound.name for bound in at_radius] == ["certificate", *BOUNDED]
        assert lowest.value == min(bound.value for bound in at_radius)
        sup = ws.word_sensitivity(
            MAPS["raf"], X, radius=lowest.radius, search=SHORT, certificate=False
        )
        assert sup.value <= lowest.value
    assert profile(MAPS["rf"]).bounds == ()


def test_a_linear_map_by_hand():
    """phi(X) = 2 X, rows of a triangle: s_i is the variance of the two other rows over ‖X‖² =
    14."""
    rows = torch.diag(torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
    result = profile(ws.FunctionFeatures(lambda X: 2 * X), ws.TextMatrix(rows))
    measured = values(result)
    # Rows v and w apart by sqrt(v² + w²): each is half of it from their mean.
    assert measured["average sensitivity"] == pytest.approx(((4 + 9) + (1 + 9) + (1 + 4)) / 4 / 14)
    apart = [math.sqrt(a * a + b * b) for a, b in ((1, 2), (1, 3), (2, 3))]
    assert measured["random sensitivity"] == pytest.approx(sum(apart) / 3 / math.sqrt(14))
    assert measured["stable rank"] == pytest.approx(14 / 9)
    assert {row.kind for row in result.measures if "sensitivity" in row.name} == {"exact"}


def exact_substitution(phi, rows):
    """Average and block sensitivity over all n^n texts of the rows, blocks of any words."""
    n = len(rows)
    texts = torch.cartesian_prod(*[torch.arange(n)] * n)
    features = phi(rows[texts]).unflatten(0, [n] * n)
    norm = phi(rows).norm()

    def variance(block):
        places = [
            [row for row in range(n) if row != place] if place in block else [place]
            for place in range(n)
        ]
        drawn = (features[np.ix_(*places)] / norm).flatten(end_dim=n - 1)
        return float((drawn - drawn.mean(dim=0)).square().sum(dim=1).mean())

    variances = {
        block: variance(block)
        for size in range(1, n + 1)
        for block in itertools.combinations(range(n), size)
    }

    def best(places):
        """Of the blocks one holds the first place."""
        return (
            max(
                (
                    value + best(tuple(sorted({*places} - {*block})))
                    for block, value in variances.items()
                    if block[0] == places[0] and {*block} <= {*places}
                ),
                default=0.0,
            )
            if places
            else 0.0
        )

    return sum(variances[place,] for place in range(n)), best(tuple(range(n)))


def test_estimates_scatter_about_the_exact_values_as_their_errors_say():
    """25 seeds. Means within four standard errors, scatter within a factor of 1.7 of the stated
    errors: a false alarm in 1,000 draws of the seeds. What is called a lower bound is one for every
    seed."""
    text = ws.gaussian_text(6, 8, seed=5604)
    phi = ws.FunctionFeatures(ws.RandomFeatures(6, 8, seed=5604).features, batched=True)
    average, block = exact_substitution(phi, text.rows)
    plan = ws.SearchPlan("quick", starts=1, steps=1)
    names = ("average case", "average sensitivity", "block sensitivity", "random sensitivity")
    found = {name: [] for name in names}
    for seed in range(25):
        for row in profile(phi, text, seed=seed, search=plan).measures:
            if row.name in names:
                found[row.name].append(row)
    assert any(row.value > block for row in found["block sensitivity"])
    for row in found["block sensitivity"]:
        assert row.kind == "estimate" or (row.kind == "lower bound" and row.value <= block)
    means = {}
    for name, rows in found.items():
        values = torch.tensor([row.value for row in rows])
        stated = torch.tensor([row.error for row in rows]).square().mean().sqrt()
        assert 1 / 1.7 < values.std() / stated < 1.7, name
        means[name] = float(values.mean()), float(values.std()) / 5
    mean, error = means["average sensitivity"]
    assert abs(mean - average) < 4 * error
    mean, error = means["block sensitivity"]
    assert mean < block + 4 * error


def test_equal_weights_have_the_largest_entropy():
    phi = ws.RandomAttentionFeatures.of_weight(torch.zeros(2, 6, 6))
    measured = values(profile(phi))
    assert measured["attention entropy"] == pytest.approx(math.log(5)) == measured["log n"]
    assert measured["stable rank"] == pytest.approx(1)


def test_the_largest_column_is_one_words_squared_weights():
    """Of two heads, of a tied transformer, and of one that has it behind several layers."""
    rows = X.rows.numpy()
    for phi in (MAPS["two heads"], ws.RandomTransformer(6, 1, attention="l2", tied=True, seed=1)):
        weights = phi.attention_of(X.rows).numpy()
        assert weights.shape[1:] == (len(rows), len(rows))
        largest = max((weights[:, :, word] ** 2).sum(axis=1).max() for word in range(len(rows)))
        assert values(profile(phi))["largest column"] == pytest.approx(largest)
    deep = values(profile(ws.RandomTransformer(6, 2, seed=1)))
    assert "largest column" not in deep and "stable rank" in deep


def test_rows_of_ones_own_and_a_budget():
    phi = MAPS["function"]
    other = 2 * X.rows[:1]
    measured = values(profile(phi, alternatives=other))
    assert measured["average sensitivity"] == 0
    changes = (torch.tanh(other) - torch.tanh(X.rows)).norm(dim=1)
    assert measured["random sensitivity"] == pytest.approx(
        float(changes.mean() / torch.tanh(X.rows).norm())
    )
    assert "average sensitivity" not in values(profile(phi, memory_budget=10_000))
    with pytest.raises(ws.InputError, match="alternatives"):
        profile(phi, alternatives=torch.ones(2, 3))


def test_a_map_sampled_on_demand_has_two_measures():
    phi = ws.RandomFeatures(5, 6, seed=0, gaussian="lazy")
    assert list(values(profile(phi, words=[0]))) == ["sup S", "certificate"]
