"""The contract of a control: texts that it changes, and a term that it adds to the loss."""

from jaxtyping import Float
from torch import Tensor

from wordsens.errors import require_positive
from wordsens.studies.control.networks.contract import TextNetwork
from wordsens.training.penalty import SensitivityPenalty


class Control:
    """A control of word sensitivity during training. By itself it changes nothing."""

    def texts(
        self, network: TextNetwork, rows: Float[Tensor, "b n d"], labels: Float[Tensor, " b"], step: int
    ) -> Float[Tensor, "b n d"]:
        """The texts that the network is shown in that step in place of these."""
        return rows

    def term(self, network: TextNetwork, rows: Float[Tensor, "b n d"]) -> Tensor | None:
        """A differentiable number that is added to the loss of a step; None for nothing."""
        return None


class SensitivityControl(Control):
    """weight * penalty(X) is added to the loss of every step."""

    def __init__(self, penalty: SensitivityPenalty, weight: float = 1.0):
        self.penalty, self._weight = penalty, require_positive("weight", weight)

    def term(self, network: TextNetwork, rows: Float[Tensor, "b n d"]) -> Tensor:
        return self._weight * self.penalty(rows)
