"""What learning one more text does to the parameters: the fine-tuned and the retrained direction."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from wordsens.results import Result

TRAININGS = ("fine-tuned", "retrained")


@dataclass(frozen=True, eq=False, repr=False)
class Update(Result):
    """The parameters after (X, y) is learned: theta = theta* + direction (y - phi(X).theta*).

    Attributes:
        training: "fine-tuned": direction = phi(X) / ‖phi(X)‖², one exact gradient step (Theorem 4).
            "retrained": direction = Pphi / (‖Pphi‖² + ridge), the min-norm interpolation of the N + 1 texts
            (Theorem 5), by the bordered inverse of the kernel matrix.
        direction: (p,), float64.
        alignment: phi(X).direction, the feature alignment of X with itself: 1, or less with a ridge.
    """

    training: str
    direction: Float[Tensor, " p"]
    alignment: float
