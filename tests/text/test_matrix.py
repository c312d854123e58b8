"""TextMatrix: what is a text, how it is cut and converted, and what is refused."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from wordsens.errors import InputError
from wordsens.text import correlated_text, gaussian_text, orthogonal_text
from wordsens.text.matrix import TextMatrix, as_text_matrix, rescale_rows


def rows(n=4, d=3):
    return torch.arange(1.0, n * d + 1, dtype=torch.float64).view(n, d)


class TestTextMatrix:
    def test_truncation_takes_the_first_words_and_coordinates_and_rescales(self):
        text = TextMatrix(rows(), tokens=("a", "b", "c", "d"), label=1, source="here")
        short = text.truncated(2, 2)
        assert (short.tokens, short.label, short.source) == (("a", "b"), 1, "here")
        torch.testing.assert_close(
            short.rows.norm(dim=1), torch.full((2,), math.sqrt(2), dtype=torch.float64)
        )
        torch.testing.assert_close(
            short.rows[1] / short.rows[1].norm(), rows()[1, :2] / rows()[1, :2].norm()
        )


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_no_nan_and_no_infinity(bad):
    broken = rows()
    broken[2, 1] = bad
    with pytest.raises(InputError, match="`rows` has NaN or infinity in row 2; every entry must"):
        TextMatrix(broken)


class TestRescaleRows:
    @given(st.integers(1, 5), st.integers(1, 40), st.integers(0, 2**16), st.floats(-150, 150))
    def test_rows_get_length_sqrt_d_and_keep_their_direction(self, n, d, seed, exponent):
        X = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        scaled = rescale_rows(10.0**exponent * X)
        torch.testing.assert_close(
            scaled, X * math.sqrt(d) / X.norm(dim=1, keepdim=True), rtol=1e-13, atol=1e-14
        )


class TestAsTextMatrix:
    def test_an_array_is_copied(self):
        array = rows().numpy().copy()
        text = as_text_matrix(array)
        array[0, 0] = 99
        assert text.rows[0, 0] == 1


MAKERS = [gaussian_text, orthogonal_text, lambda n, d, seed=0: correlated_text(n, d, 0.4, seed)]


def cosines(text):
    """The n (n - 1) / 2 cosines of pairs of rows."""
    gram = text.rows @ text.rows.T / text.rows.shape[1]
    return gram[tuple(torch.triu_indices(len(text), len(text), offset=1))]


@pytest.mark.parametrize("make", MAKERS)
def test_rows_have_length_sqrt_d(make):
    rows = make(7, 20).rows
    assert rows.shape == (7, 20)
    assert rows.dtype == torch.float64
    torch.testing.assert_close(
        rows.square().sum(dim=1), torch.full((7,), 20.0, dtype=torch.float64), rtol=1e-12, atol=0
    )


@pytest.mark.parametrize("make", MAKERS)
def test_a_seed_fixes_the_text_and_another_changes_it(make):
    torch.manual_seed(1)
    first = make(5, 8, seed=3).rows
    torch.manual_seed(2)
    assert torch.equal(first, make(5, 8, seed=3).rows)
    assert not torch.allclose(first, make(5, 8, seed=4).rows)


def test_gaussian_cosines_have_the_law_of_uniform_directions():
    found = cosines(gaussian_text(200, 50))
    assert abs(found.mean().item()) < 5e-3
    # The cosine of two uniform directions has variance 1 / d.
    assert found.var().item() * 50 == pytest.approx(1, abs=0.05)


def test_orthogonal_rows_are_orthogonal_up_to_n_equal_d():
    assert cosines(orthogonal_text(30, 30)).abs().max().item() < 1e-12


@pytest.mark.parametrize("mean_cosine", [0.0, 0.3, 0.95])
def test_correlated_cosines_are_exact_below_d_rows(mean_cosine):
    for n in (2, 11):
        found = cosines(correlated_text(n, 12, mean_cosine))
        assert (found - mean_cosine).abs().max().item() < 1e-12


def test_correlated_cosines_scatter_as_stated_with_many_rows():
    mean_cosine, d = 0.6, 40
    found = torch.cat([cosines(correlated_text(60, d, mean_cosine, seed)) for seed in range(5)])
    assert found.mean().item() == pytest.approx(mean_cosine, abs=3e-3)
    assert found.std().item() == pytest.approx((1 - mean_cosine) / math.sqrt(d - 1), rel=0.05)
