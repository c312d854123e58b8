"""Predictions of word sensitivity, the theorems' rates, and which of their conditions a text meets. No bounds."""

from wordsens.theory.attention import raf_sensitivity
from wordsens.theory.conditions import Condition, check_conditions
from wordsens.theory.finite_width import rf_sensitivity
from wordsens.theory.infinite_width import rf_sensitivity_infinite_width
from wordsens.theory.prediction import Prediction, predict
from wordsens.theory.rates import Rate, rate

__all__ = [
    "Condition",
    "Prediction",
    "Rate",
    "check_conditions",
    "predict",
    "raf_sensitivity",
    "rate",
    "rf_sensitivity",
    "rf_sensitivity_infinite_width",
]
