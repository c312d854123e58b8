"""Fitting a power law, and knowing when not to."""

import math

import numpy as np
import pytest
from scipy.stats import linregress

from wordsens.errors import InputError
from wordsens.statistics.power_law import fit_power_law, unfit_for_power_law


def test_the_fit_is_that_of_scipy():
    stream = np.random.default_rng(0)
    sizes = np.repeat([10, 20, 50, 100], 5)
    values = 2.5 * sizes**-0.4 * np.exp(0.1 * stream.standard_normal(20))
    fit = fit_power_law(sizes.tolist(), values.tolist())
    peer = linregress(np.log(sizes), np.log(values))
    assert fit.exponent == pytest.approx(peer.slope, rel=1e-12)
    assert fit.standard_error == pytest.approx(peer.stderr, rel=1e-10)
    assert fit.constant == pytest.approx(math.exp(peer.intercept), rel=1e-12)
    assert fit.at(50) == pytest.approx(fit.constant * 50**fit.exponent)


def drawn(stream, texts=20, words=4):
    """Words of texts that differ by more than their words do: n, log value and text of each."""
    lengths = stream.integers(10, 120, size=texts)
    sizes, owners = np.repeat(lengths, words), np.repeat(np.arange(texts), words)
    own = 0.3 * stream.standard_normal(texts)[owners]
    return (
        sizes.tolist(),
        sizes**-0.5 * np.exp(own + 0.1 * stream.standard_normal(len(sizes))),
        owners.tolist(),
    )


def test_the_standard_error_by_text_is_the_jackknife():
    sizes, values, owners = drawn(np.random.default_rng(2))
    fit = fit_power_law(sizes, values.tolist(), texts=owners)
    left = [[place for place, own in enumerate(owners) if own != text] for text in range(20)]
    slopes = [
        linregress(np.log([sizes[at] for at in keep]), np.log(values[keep])).slope for keep in left
    ]
    expected = math.sqrt(19 / 20 * sum((slope - np.mean(slopes)) ** 2 for slope in slopes))
    assert fit.standard_error == pytest.approx(expected, rel=1e-10)
    assert fit.exponent == fit_power_law(sizes, values.tolist()).exponent


@pytest.mark.parametrize(
    ("sizes", "values", "message"),
    [
        ([1, 2], [1.0, 1.0], "must give at least three points of at least two sizes"),
        ([2, 2, 2], [1.0, 1.0, 1.0], "must give at least three points of at least two sizes"),
        ([1, 2, 3], [1.0, 0.0, 1.0], "smallest 0.0"),
    ],
)
def test_points_that_cannot_be_fitted(sizes, values, message):
    with pytest.raises(InputError, match=message):
        fit_power_law(sizes, values)


@pytest.mark.parametrize("sizes", [(10, 20, 40), (10, 20, 40, 80), (10, 10, 40, 40)])
def test_the_interval_of_few_points_covers_the_exponent(sizes):
    """2,000 laws with normal errors: .95 covered, less five standard errors of .0049. Two standard
    errors cover .70 of three points, .82 of four."""
    errors = np.random.default_rng(0).normal(scale=0.1, size=(2000, len(sizes)))
    laws = [
        fit_power_law(sizes, [n**-0.5 * math.exp(e) for n, e in zip(sizes, row, strict=True)])
        for row in errors
    ]
    covered = np.mean([law.interval[0] <= -0.5 <= law.interval[1] for law in laws])
    assert abs(covered - 0.95) < 0.0245


def test_an_exponent_needs_texts_twice_as_long_as_the_shortest():
    assert unfit_for_power_law([100, 120, 140, 160, 199], range(5)) is not None
    assert unfit_for_power_law([1.0, 1.2, 1.4, 1.6, 2.0], range(5)) is None
