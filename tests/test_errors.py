"""The guards: what passes, and the exact message of what does not."""

import numpy as np
import pytest

from wordsens.errors import (
    BudgetError,
    InputError,
    MissingExtraError,
    WordsensError,
    ZeroFeaturesError,
    require_choice,
    require_count,
    require_positive,
)


def message(guard, *arguments, **options):
    with pytest.raises(InputError) as caught:
        guard(*arguments, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("value", [1, 0.5, 1e-300, np.float32(2.5), np.float64(3), np.int64(4)])
def test_positive_numbers_pass_as_floats(value):
    passed = require_positive("radius", value)
    assert type(passed) is float
    assert passed == value


@pytest.mark.parametrize("value", [1, 7, np.int64(3), np.uint8(200)])
def test_counts_pass_as_ints(value):
    passed = require_count("n", value)
    assert type(passed) is int
    assert passed == value


def test_choices():
    assert require_choice("score", "relu", ("softmax", "relu")) == "relu"
    expected = "`score` (='Relu') must be one of softmax, relu; did you mean 'relu'?"
    assert message(require_choice, "score", "Relu", ("softmax", "relu")) == expected
    assert message(require_choice, "score", "xyz", ["softmax"]) == "`score` (='xyz') must be one of softmax"
    assert message(require_choice, "score", None, ["softmax"]) == "`score` (=None) must be one of softmax"
    assert message(require_choice, "score", ["softmax"], ["softmax"]) == "`score` (=['softmax']) must be one of softmax"


def test_the_family():
    assert issubclass(InputError, WordsensError) and issubclass(InputError, ValueError)
    assert issubclass(ZeroFeaturesError, InputError)
    assert issubclass(BudgetError, WordsensError) and issubclass(BudgetError, MemoryError)
    error = MissingExtraError("pandas", "tables", "to_pandas")
    assert isinstance(error, WordsensError) and isinstance(error, ImportError)
    assert str(error) == (
        "to_pandas needs the package 'pandas', which is not installed; install it with: pip install 'wordsens[tables]'"
    )
