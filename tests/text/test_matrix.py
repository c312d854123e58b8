"""TextMatrix: what is a text, how it is cut and converted, and what is refused."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from wordsens.errors import InputError
from wordsens.text.matrix import TextMatrix, as_text_matrix, require_rows, rescale_rows


def rows(n=4, d=3):
    return torch.arange(1.0, n * d + 1, dtype=torch.float64).view(n, d)


def refused(call, *arguments, **options):
    with pytest.raises(InputError) as caught:
        call(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class TestTextMatrix:
    def test_words_have_names(self):
        assert len(TextMatrix(rows())) == 4
        assert TextMatrix(rows()).word(2) == "#2"
        assert TextMatrix(rows(2), tokens=("good", "bad")).word(1) == "bad"

    def test_one_token_a_row(self):
        assert refused(TextMatrix, rows(), tokens=("a", "b")) == (
            "`tokens` has 2 entries, but `rows` has 4 rows; give one token a row"
        )

    def test_truncation_takes_the_first_words_and_coordinates_and_rescales(self):
        text = TextMatrix(rows(), tokens=("a", "b", "c", "d"), label=1, source="here")
        short = text.truncated(2, 2)
        assert (short.tokens, short.label, short.source) == (("a", "b"), 1, "here")
        torch.testing.assert_close(short.rows.norm(dim=1), torch.full((2,), math.sqrt(2), dtype=torch.float64))
        torch.testing.assert_close(short.rows[1] / short.rows[1].norm(), rows()[1, :2] / rows()[1, :2].norm())

    @pytest.mark.parametrize(("words", "dimension"), [(5, 3), (4, 4), (0, 3), (4, 0), (-1, None)])
    def test_a_text_is_never_padded(self, words, dimension):
        said = refused(TextMatrix(rows(), source="here").truncated, words, dimension)
        assert said == (
            f"text 'here' has 4 words and 3 coordinates, so its first {words} words and "
            f"{3 if dimension is None else dimension} coordinates cannot be taken; "
            "choose a longer text or a smaller size"
        )

    def test_conversion(self, device):
        there = TextMatrix(rows(), tokens=tuple("abcd")).to(torch.float32, device)
        assert (there.rows.dtype, there.rows.device.type, there.tokens) == (torch.float32, device, tuple("abcd"))


class TestRequireRows:
    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_no_nan_and_no_infinity(self, bad):
        broken = rows()
        broken[2, 1] = bad
        assert refused(TextMatrix, broken) == "`rows` has NaN or infinity in row 2; every entry must be finite"

    def test_no_zero_row(self):
        broken = rows()
        broken[3] = 0
        assert refused(require_rows, broken, "X") == (
            "`X` has only zeros in row 3; drop that word or give it an embedding"
        )


class TestRescaleRows:
    @given(st.integers(1, 5), st.integers(1, 40), st.integers(0, 2**16), st.floats(-150, 150))
    def test_rows_get_length_sqrt_d_and_keep_their_direction(self, n, d, seed, exponent):
        X = torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        scaled = rescale_rows(10.0**exponent * X)
        torch.testing.assert_close(scaled, X * math.sqrt(d) / X.norm(dim=1, keepdim=True), rtol=1e-13, atol=1e-14)

    def test_a_zero_row_has_no_direction(self):
        assert "row 0" in refused(rescale_rows, torch.zeros(2, 3))


class TestAsTextMatrix:
    def test_containers(self):
        text = TextMatrix(rows(), source="here")
        assert as_text_matrix(text) is text
        for container in (rows(), rows().numpy(), np.asfortranarray(rows().numpy()), rows().numpy()[::-1][::-1]):
            assert torch.equal(as_text_matrix(container).rows, rows())

    def test_an_array_is_copied(self):
        array = rows().numpy().copy()
        text = as_text_matrix(array)
        array[0, 0] = 99
        assert text.rows[0, 0] == 1

    def test_integers_are_refused(self):
        assert refused(as_text_matrix, rows().long().numpy()) == (
            "`X` (shape (4, 3), torch.int64) must be a floating-point matrix, n words by d coordinates"
        )
