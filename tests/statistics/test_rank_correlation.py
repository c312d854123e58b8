"""Rank correlation: SciPy's, and an interval that covers."""

from wordsens.statistics.rank_correlation import correlation_interval


def test_the_interval_is_over_draws():
    draws = {at: [(1.0, 1.0 + 0.1 * at), (2.0, 3.0), (4.0, 5.0 - 2.9 * (at == 4))] for at in range(5)}
    value, low, high = correlation_interval(draws)
    assert low < value < high
    assert (value, low, high) == correlation_interval(draws)
    assert correlation_interval({0: draws[0], 1: draws[0]})[1:] == (1.0, 1.0)
