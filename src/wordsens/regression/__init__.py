"""Min-norm interpolation from the Gram matrix of the features, and its update by one more text."""

from wordsens.regression.features import TrainingFeatures as TrainingFeatures
from wordsens.regression.fit import TRAININGS as TRAININGS
from wordsens.regression.fit import MinNormFit as MinNormFit
from wordsens.regression.fit import Update as Update
from wordsens.regression.fit import fit_min_norm as fit_min_norm
from wordsens.regression.solver import Conditioning as Conditioning
from wordsens.regression.solver import ConditioningWarning as ConditioningWarning
from wordsens.regression.solver import SingularGramError as SingularGramError
