"""Predictions of word sensitivity, the theorems' rates, and which of their conditions a text meets. No bounds."""

from wordsens.theory.attention import raf_sensitivity
from wordsens.theory.conditions import Condition, Rate, check_conditions, rate
from wordsens.theory.prediction import Prediction, predict
from wordsens.theory.random_features import rf_sensitivity, rf_sensitivity_infinite_width

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
