"""Min-norm interpolation from the Gram matrix of the features, and what one more text changes."""

from wordsens.regression.features import TrainingFeatures
from wordsens.regression.fit import MinNormFit, fit_min_norm
from wordsens.regression.solver import Conditioning, ConditioningWarning, SingularGramError
from wordsens.regression.update import TRAININGS, Update

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
