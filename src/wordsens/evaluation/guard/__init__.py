"""A check at decision time: whether two near-duplicates may be treated as the same, by rules, without a model."""

from wordsens.evaluation.guard.judge import Guard, Judgement, guard

__all__ = ["Guard", "Judgement", "guard"]
