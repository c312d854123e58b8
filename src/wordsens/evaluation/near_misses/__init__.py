"""Near misses: pairs of opposites made from a user's own texts by one changed word."""

from wordsens.evaluation.near_misses.make import near_misses

__all__ = ["near_misses"]
