"""A check at decision time: whether two near-duplicates may be treated as the same, by rules,
without a model."""

from wordsens.evaluation.guard.judge import Guard, Judgement, guard
from wordsens.evaluation.guard.lost_meaning import LostPart, lost_meaning

__all__ = ["Guard", "Judgement", "LostPart", "guard", "lost_meaning"]
