"""The one-word experiment: does a model that just learned X tell X with one word changed, its label
flipped, apart?

The model is the min-norm interpolation of labelled texts from the Gram matrix of their features
(`fit_min_norm`).
"""

from wordsens.generalization.min_norm import (
    TRAININGS,
    Conditioning,
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
    TheoremConditions,
)
from wordsens.generalization.setting import linear_labels, random_labels

__all__ = [
    "OBJECTIVE_NAMES",
    "TRAININGS",
    "Conditioning",
    "MinNormFit",
    "NewText",
    "OneWordFrontier",
    "OneWordGeneralization",
    "OneWordOutcomes",
    "SingularGramError",
    "TheoremConditions",
    "fit_min_norm",
    "linear_labels",
    "one_word_generalization",
    "random_labels",
]
