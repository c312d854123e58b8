"""A loss of (delta, F) as something that the search of `wordsens.search` can climb."""

from collections.abc import Callable
from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.functionals.contract import WordFunctionals
from wordsens.search.objective import WordChange
from wordsens.search.plan import SearchPlan

Loss = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
"""From the functionals (b, 2) and the items (b,) to losses (b,), at least 0, and their derivatives (b, 2)."""

Observer = Callable[[Tensor, Tensor, Tensor], None]
"""Told of every evaluation: functionals (b, 2), words (b,), perturbations (b, d)."""

FEW_WORDS = 4
"""Up to this many words are searched thoroughly; of more, those that come out best of a first look."""

THOROUGH = SearchPlan(
    starts=16, climb_steps=60, population=6, generations=3, children=8, finalists=4, steps=80, tolerance=1e-8
)
FIRST_LOOK = SearchPlan(
    starts=12, climb_steps=10, population=4, generations=2, children=4, finalists=2, steps=30, tolerance=1e-7
)
# Fully connected features are nearly linear in one word: the first gradient points to the optimum.
THOROUGH_LINEAR = SearchPlan(
    starts=4, climb_steps=8, population=2, generations=0, children=2, finalists=2, steps=30, tolerance=1e-7
)
FIRST_LOOK_LINEAR = SearchPlan(
    starts=3, climb_steps=3, population=1, generations=0, children=1, finalists=1, steps=0, tolerance=1e-7
)


def plans_for(functionals: WordFunctionals) -> tuple[SearchPlan, SearchPlan]:
    """The plans of a first look at many words, and of a thorough search of a few."""
    if functionals.one_word_at_a_time:
        return FIRST_LOOK_LINEAR, THOROUGH_LINEAR
    return FIRST_LOOK, THOROUGH


class Pursuit(WordChange):
    """Items, each a word and a loss of its own; what is climbed is 1 / (1 + loss).

    Args:
        functionals: evaluates (delta, F - F(X)).
        words: (m,), the word of each item.
        loss: of the functionals and the items.
        wanted: the signs in which the two functionals should move, for the starting points.
        observe: told of every evaluation.
        plan: of the search; its rule is chosen by whether the functionals have kinks.
    """

    smooth = False

    def __init__(
        self,
        functionals: WordFunctionals,
        words: Int[Tensor, " m"],
        loss: Loss,
        *,
        wanted: tuple[float, float] = (0.0, 0.0),
        observe: Observer | None = None,
        plan: SearchPlan,
    ):
        super().__init__(functionals.rows, 1.0, functionals.memory_budget)
        self._functionals, self._item_words, self._loss = functionals, words, loss
        self._wanted, self._observe = wanted, observe
        self.plan = replace(plan, rule="momentum" if functionals.kinked else "quasi-newton")

    def bytes_per_pair(self) -> int:
        return self._functionals.bytes_per_pair()

    def functionals(self, perturbations: Float[Tensor, "b d"], items: Int[Tensor, " b"]) -> Float[Tensor, "b 2"]:
        """(delta, F - F(X)) of each pair of an item and a Delta."""
        return self._functionals.values(perturbations, self._item_words[items])

    def starting_directions(self, words: Int[Tensor, " w"]) -> Float[Tensor, "starts w d"]:
        """Down the loss at Delta = 0; towards the wanted F with delta unchanged; each functional; the map's own."""
        different, index = self._item_words[words].unique(return_inverse=True)
        zero = self.rows.new_zeros(len(different), self.rows.shape[1])
        shift = self._gradient(zero, different, 0)[index]
        alignment = self._gradient(zero, different, 1)[index]
        at_zero = self.rows.new_zeros(len(words), 2)
        slopes = self._loss(at_zero, words)[1]
        down = -(slopes[:, :1] * shift + slopes[:, 1:] * alignment)
        toward_shift, toward = (sign if sign else 1.0 for sign in self._wanted)
        along = (alignment * shift).sum(dim=1, keepdim=True)
        squared = shift.square().sum(dim=1, keepdim=True)
        apart = alignment - torch.where(squared > 0, along / torch.where(squared > 0, squared, 1.0), 0.0) * shift
        own = self._functionals.starting_directions().unsqueeze(1).expand(-1, len(words), -1)
        return torch.cat([torch.stack([down, toward * apart, toward * alignment, toward_shift * shift]), own])

    def _gradient(self, zero: Tensor, words: Tensor, which: int) -> Float[Tensor, "w d"]:
        def pull(values: Tensor) -> Tensor:
            weights = torch.zeros_like(values)
            weights[:, which] = 1
            return weights

        return self._functionals.values_and_gradient(zero, words, pull)[1]

    def _evaluate(
        self, perturbations: Float[Tensor, "b *shape"], words: Int[Tensor, " b"], *, gradient: bool
    ) -> tuple[Float[Tensor, " b"], Float[Tensor, "b *shape"] | None]:
        moved = self._item_words[words]
        if not gradient:
            values = self._functionals.values(perturbations, moved)
            slope = None
        else:
            # The chunk is already as small as the functionals want it: `pull` sees all of it.
            def pull(values: Tensor) -> Tensor:
                loss, slopes = self._loss(values, words)
                return -slopes / (1 + loss).square().unsqueeze(1)

            values, slope = self._functionals.values_and_gradient(perturbations, moved, pull)
        if self._observe is not None:
            self._observe(values, moved, perturbations)
        return 1 / (1 + self._loss(values, words)[0]), slope
