"""The contract of objectives through which Delta enters linearly: one layer, whatever follows entry by entry.

phi(X^i(Delta)) - phi(X) = psi(A_i Delta), where A_i is a linear map and psi acts on each entry. Along a great circle of
the ball's sphere, A_i (cos t a + sin t b) = cos t A_i a + sin t A_i b: once A_i a and A_i b are known, the whole circle
is known without another product. Searches that need few products with A_i build on this (`search.krylov`).
"""

from abc import abstractmethod

from jaxtyping import Float, Int
from torch import Tensor

from wordsens.search.objective import Objective
from wordsens.search.plan import Stages


class LinearEntryObjective(Objective):
    """An objective of the form ‖psi(A_i Delta)‖², psi entrywise with psi(0) = 0.

    Attributes:
        narrow: whether the general ascent is run besides, by the stages `ascent`.
        far_angles: angles that every line search tries besides its own, where psi saturates: the squared change is then
            nearly constant between many steep places, and the next hill is beyond the reach of a Newton step.
    """

    far_angles: tuple[float, ...] = ()
    narrow: bool = False
    ascent: Stages = Stages()

    @property
    @abstractmethod
    def width(self) -> int:
        """k, the length of A_i Delta."""

    @abstractmethod
    def enter(self, perturbations: Float[Tensor, "b d"], words: Int[Tensor, " b"]) -> Float[Tensor, "b width"]:
        """A_i Delta for b pairs."""

    @abstractmethod
    def enter_transposed(self, slopes: Float[Tensor, "b width"], words: Int[Tensor, " b"]) -> Float[Tensor, "b d"]:
        """A_i^T u for b pairs."""

    @abstractmethod
    def linearized(self, entered: Float[Tensor, "b width"]) -> Float[Tensor, "b width"]:
        """psi'(0)² times A_i Delta: what A_i^T takes to half the gradient of the squared change as Delta goes to 0."""

    @abstractmethod
    def slope(self, entered: Float[Tensor, "b width"]) -> Float[Tensor, "b width"]:
        """psi psi' at A_i Delta: what A_i^T takes to half the gradient of the squared change."""

    @abstractmethod
    def along(
        self, entered: Float[Tensor, "b width"], across: Float[Tensor, "b width"], angle: Float[Tensor, " b"]
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"], Float[Tensor, " b"]]:
        """f(t) = ‖psi(cos t A_i a + sin t A_i b)‖² at angles t; f'(t) / 2; and f''(t) / 2 without its term in psi''."""

    @abstractmethod
    def release(self, words: Int[Tensor, " w"], perturbations: Float[Tensor, "w d"]) -> None:
        """Told when the search on these words is over: all that is not needed for the witnesses may be forgotten."""
