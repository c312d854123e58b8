"""Attention scores: how they become weights, and what a score may offer beside that, as types (`contract`)."""

from wordsens.maps.attention.scores.certified import Certified
from wordsens.maps.attention.scores.closed_form import ClosedForm, Moved, Response
from wordsens.maps.attention.scores.contract import Score, offered
from wordsens.maps.attention.scores.divided_relu import DividedRelu
from wordsens.maps.attention.scores.expanded import Expanded
from wordsens.maps.attention.scores.softmax import Softmax
from wordsens.maps.attention.scores.tabulated import Tabulated
from wordsens.maps.attention.scores.undivided import Linear, Relu, Sigmoid

SCORES: dict[str, Score] = {score.name: score for score in (Softmax(), DividedRelu(), Relu(), Sigmoid(), Linear())}
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
    "Tabulated",
    "offered",
]
