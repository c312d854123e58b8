"""The change that one moved word makes to one dense layer, which a search follows along great circles."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.activations import Activation
from wordsens.gaussian import OnDemandGaussian
from wordsens.maps.dense.word_change import NARROW, DenseChange
from wordsens.search.linear_entry import LinearEntryObjective
from wordsens.search.plan import Stages

_CACHED = 1 << 15
"""Numbers handled at once in entrywise passes: 256 KiB in float64, so that a pass's temporaries stay in the cache."""


_FAR_ANGLES = (0.1, 0.25, 0.5, 0.9, 1.5, -0.1, -0.25, -0.5)


class OneLayerChange(DenseChange, LinearEntryObjective):
    """The change of RF, through which Delta enters linearly: psi(e) = act(V flat(X) + e) - act(V flat(X))."""

    stages = Stages(starts=24, steps=12, finalists=3, finish=40, tolerance=1e-7)
    _FRUGAL_STAGES = Stages(starts=8, steps=5, finalists=1, finish=40, tolerance=1e-4)

    def _search_widely(self, activation: Activation) -> None:
        """A narrow layer's words are also searched by ascent: crossing then reaches hills that restarts do not."""
        if activation.saturates:
            self.far_angles = _FAR_ANGLES
        if self.width <= NARROW:
            self.narrow, self.ascent, self.kinked = True, self._SMALL_STAGES, activation.kinked

    @property
    def width(self) -> int:
        return len(self._base)

    def linearized(self, entered: Float[Tensor, "b width"]) -> Float[Tensor, "b width"]:
        return entered * self._activation.derivative(self._steps[0]).square()

    def slope(self, entered: Float[Tensor, "b width"]) -> Float[Tensor, "b width"]:
        slopes = torch.empty_like(entered)
        for at in self._pieces(len(entered)):
            moved = self._steps[0][at] + entered[:, at]
            slopes[:, at] = (self._activation(moved) - self._base[at]) * self._activation.derivative(moved)
        return slopes

    def along(
        self, entered: Float[Tensor, "b width"], across: Float[Tensor, "b width"], angle: Float[Tensor, " b"]
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, " b"], Float[Tensor, " b"]]:
        cosine, sine = angle.cos().unsqueeze(1), angle.sin().unsqueeze(1)
        value, first, second = (torch.zeros_like(angle) for _ in range(3))
        for at in self._pieces(len(entered)):
            here = (entered[:, at] * cosine).addcmul_(across[:, at], sine)
            turn = (across[:, at] * cosine).addcmul_(entered[:, at], sine, value=-1)
            moved = self._steps[0][at] + here
            slope = self._activation.derivative(moved)
            change = self._activation(moved).sub_(self._base[at])
            turn *= slope
            value += torch.linalg.vecdot(change, change)
            first += torch.linalg.vecdot(change, turn)
            second += torch.linalg.vecdot(turn, turn) - torch.linalg.vecdot(change.mul_(slope), here)
        return value, first, second

    def release(self, words: Int[Tensor, " w"], perturbations: Float[Tensor, "w d"]) -> None:
        """Seal the blocks of these words, where what an on-demand matrix remembers has passed half of its budget."""
        matrix, d = self._layers[0], self.rows.shape[1]
        if not isinstance(matrix, OnDemandGaussian) or 2 * matrix.bytes <= matrix.gaussian_bytes:
            return
        for word, perturbation in zip(words.tolist(), perturbations, strict=True):
            matrix.seal_block(torch.stack([self.rows[word], perturbation]), word * d)

    def _pieces(self, batch: int) -> list[slice]:
        size = max(1, _CACHED // max(1, batch))
        return [slice(start, start + size) for start in range(0, self.width, size)]
