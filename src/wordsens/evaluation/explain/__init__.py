"""Explaining one score or one embedding by its words."""

from wordsens.evaluation.explain.explain import explain

__all__ = ["explain"]
