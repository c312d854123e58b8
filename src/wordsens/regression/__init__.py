"""Min-norm interpolation from the Gram matrix of the features, and its update by one more text."""

from wordsens.regression.features import TrainingFeatures as TrainingFeatures
from wordsens.regression.min_norm import TRAININGS as TRAININGS
from wordsens.regression.min_norm import Conditioning as Conditioning
from wordsens.regression.min_norm import ConditioningWarning as ConditioningWarning
from wordsens.regression.min_norm import MinNormFit as MinNormFit
from wordsens.regression.min_norm import SingularGramError as SingularGramError
from wordsens.regression.min_norm import Update as Update
from wordsens.regression.min_norm import fit_min_norm as fit_min_norm
