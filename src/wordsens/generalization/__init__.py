"""The one-word experiment: does a model that just learned X tell X with one word changed, its label flipped, apart?"""

from wordsens.generalization.frontier import OneWordFrontier, one_word_frontier
from wordsens.generalization.labels import linear_labels, random_labels
from wordsens.generalization.loss import OBJECTIVE_NAMES
from wordsens.generalization.new_text import NewText
from wordsens.generalization.one_word import one_word_generalization
from wordsens.generalization.result import OneWordGeneralization, TheoremConditions
from wordsens.generalization.swaps import one_word_swap
from wordsens.generalization.together import OneWordOutcomes, one_word_outcomes

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
