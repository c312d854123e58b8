"""The one-word experiment: does a model that just learned X tell X with one word changed, its label
flipped, apart?

The model is the min-norm interpolation of labelled texts from the Gram matrix of their features
(`fit_min_norm`).
"""

from wordsens.generalization.min_norm import (
    TRAININGS,
    MinNormFit,
    SingularGramError,
    fit_min_norm,
)
from wordsens.generalization.new_text import NewText, one_word_generalization
from wordsens.generalization.result import (
    OBJECTIVE_NAMES,
    OneWordFrontier,
    OneWordGeneralization,
    OneWordOutcomes,
)

__all__ = [
    "OBJECTIVE_NAMES",
    "TRAININGS",
    "MinNormFit",
    "NewText",
    "OneWordFrontier",
    "OneWordGeneralization",
    "OneWordOutcomes",
    "SingularGramError",
    "fit_min_norm",
    "one_word_generalization",
]
