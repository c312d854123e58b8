"""Predictions of word sensitivity, conditions of the paper's theorems, and Lipschitz bounds of the
literature."""

from wordsens.theory.attention import raf_sensitivity, raf_sensitivity_of_text
from wordsens.theory.conditions import Condition, PredictionWarning, check_conditions
from wordsens.theory.depth import average_by_layer
from wordsens.theory.lipschitz import lipschitz_bounds
from wordsens.theory.prediction import Prediction, predict
from wordsens.theory.random_features import rf_sensitivity, rf_sensitivity_infinite_width

__all__ = [
    "Condition",
    "Prediction",
    "PredictionWarning",
    "average_by_layer",
    "check_conditions",
    "lipschitz_bounds",
    "predict",
    "raf_sensitivity",
    "raf_sensitivity_of_text",
    "rf_sensitivity",
    "rf_sensitivity_infinite_width",
]
