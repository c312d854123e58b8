"""Attention scores: how they become weights, and what a score may offer beside that, as types
(`base`)."""

from wordsens.maps.attention.scores.base import (
    Certified,
    ClosedForm,
    Expanded,
    Moved,
    Response,
    Score,
    offered,
)
from wordsens.maps.attention.scores.elementwise import Linear, Relu, Sigmoid
from wordsens.maps.attention.scores.relu import DividedRelu
from wordsens.maps.attention.scores.softmax import Softmax

SCORES: dict[str, Score] = {
    score.name: score for score in (Softmax(), DividedRelu(), Relu(), Sigmoid(), Linear())
}
"""The scores that the option `score` offers by name."""

__all__ = [
    "SCORES",
    "Certified",
    "ClosedForm",
    "Expanded",
    "Moved",
    "Response",
    "Score",
    "Softmax",
    "offered",
]
