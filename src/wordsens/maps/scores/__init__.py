"""Attention scores: how they become weights, and what a score may offer beside that, as types (`contract`)."""

from wordsens.maps.scores.certified import Certified
from wordsens.maps.scores.closed_form import ClosedForm, Moved, Response
from wordsens.maps.scores.contract import Score, offered
from wordsens.maps.scores.divided_relu import DividedRelu
from wordsens.maps.scores.softmax import Softmax
from wordsens.maps.scores.undivided import Linear, Relu, Sigmoid

SCORES: dict[str, Score] = {score.name: score for score in (Softmax(), DividedRelu(), Relu(), Sigmoid(), Linear())}
"""The scores that the option `score` offers by name."""

__all__ = ["SCORES", "Certified", "ClosedForm", "Moved", "Response", "Score", "Softmax", "offered"]
