"""Min-norm interpolation from the Gram matrix of the features, and its update by one more text."""

from wordsens.regression.features import TrainingFeatures
from wordsens.regression.fit import TRAININGS, MinNormFit, Update, fit_min_norm
from wordsens.regression.solver import Conditioning, ConditioningWarning, SingularGramError

__all__ = [
    "TRAININGS",
    "Conditioning",
    "ConditioningWarning",
    "MinNormFit",
    "SingularGramError",
    "TrainingFeatures",
    "Update",
    "fit_min_norm",
]
