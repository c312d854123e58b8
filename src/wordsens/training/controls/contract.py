"""The contract of a control: texts that it changes, and a term that it adds to the loss."""

from jaxtyping import Float
from torch import Tensor

from wordsens.training.networks.contract import TextNetwork


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
