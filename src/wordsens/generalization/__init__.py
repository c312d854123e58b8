"""The one-word experiment: does a model that just learned X tell X with one word changed, its label flipped, apart?"""

from wordsens.generalization.frontier import OneWordFrontier, one_word_frontier
from wordsens.generalization.loss import OBJECTIVE_NAMES
from wordsens.generalization.new_text import NewText, linear_labels, random_labels
from wordsens.generalization.one_word import OneWordGeneralization, TheoremConditions, one_word_generalization
from wordsens.generalization.outcomes import OneWordOutcomes, one_word_outcomes
from wordsens.generalization.swap import one_word_swap

__all__ = [
    "OBJECTIVE_NAMES",
    "NewText",
    "OneWordFrontier",
    "OneWordGeneralization",
    "OneWordOutcomes",
    "TheoremConditions",
    "linear_labels",
    "one_word_frontier",
    "one_word_generalization",
    "one_word_outcomes",
    "one_word_swap",
    "random_labels",
]
