"""Predictions of word sensitivity, conditions of the paper's theorems, and Lipschitz bounds of the
literature."""

from wordsens.theory.attention import raf_sensitivity as raf_sensitivity
from wordsens.theory.attention import raf_sensitivity_of_text as raf_sensitivity_of_text
from wordsens.theory.conditions import Condition as Condition
from wordsens.theory.conditions import PredictionWarning as PredictionWarning
from wordsens.theory.conditions import check_conditions as check_conditions
from wordsens.theory.depth import average_by_layer as average_by_layer
from wordsens.theory.lipschitz import LipschitzBound as LipschitzBound
from wordsens.theory.lipschitz import lipschitz_bounds as lipschitz_bounds
from wordsens.theory.prediction import Prediction as Prediction
from wordsens.theory.prediction import predict as predict
from wordsens.theory.random_features import rf_sensitivity as rf_sensitivity
from wordsens.theory.random_features import (
    rf_sensitivity_infinite_width as rf_sensitivity_infinite_width,
)
