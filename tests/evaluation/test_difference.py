"""When a difference counts and when it is excluded, against the numbers that its interval holds."""

import itertools

import numpy as np
import pytest

from wordsens.evaluation.difference import Difference

ENDS = (-0.04, -0.03, -0.02, -0.01, 0.0, 0.01, 0.02, 0.03, 0.04)


def row(low, high, p, margin=0.02):
    middle = None if low is None or high is None else (low + high) / 2
    return Difference(
        part="check",
        name="negation",
        count=60,
        first=0.5,
        second=0.5,
        difference=middle or 0.0,
        low=low,
        high=high,
        margin=margin,
        p=p,
    )


@pytest.mark.parametrize("p", [0.01, 0.05, 0.051, 1.0])
def test_it_counts_where_no_number_of_its_interval_is_within_the_margin(p):
    """And is excluded where all are; the test of all rows can only take a difference away."""
    for low, high in itertools.combinations_with_replacement(ENDS, 2):
        held = np.array([end for end in ENDS if low <= end <= high])
        within = np.abs(held) <= 0.02
        found = row(low, high, p)
        assert found.differs == (p <= 0.05 and not within.any())
        assert found.excluded == within.all()


def test_without_an_interval_nothing_is_said():
    for low, high in ((None, None), (None, 0.5), (0.5, None)):
        assert not row(low, high, 0.001).differs
        assert not row(low, high, 0.001).excluded
