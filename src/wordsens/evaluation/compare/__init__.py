"""Comparing two models on the same texts: pairs, words and neighbours."""

from wordsens.evaluation.compare.compare import ComparePlan, compare

__all__ = ["ComparePlan", "compare"]
