"""The sensitivity penalty as a control of `train`."""

from jaxtyping import Float
from torch import Tensor

from wordsens.errors import require_positive
from wordsens.training.controls.contract import Control
from wordsens.training.controls.penalty import SensitivityPenalty
from wordsens.training.networks.contract import TextNetwork


class SensitivityControl(Control):
    """weight * penalty(X) is added to the loss of every step."""

    def __init__(self, penalty: SensitivityPenalty, weight: float = 1.0):
        self.penalty, self._weight = penalty, require_positive("weight", weight)

    def term(self, network: TextNetwork, rows: Float[Tensor, "b n d"]) -> Tensor:
        return self._weight * self.penalty(rows)
