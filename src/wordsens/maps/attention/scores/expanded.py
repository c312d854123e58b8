"""A row of weights to first order in all its scores, with a remainder: for bounds at small radii."""

from abc import abstractmethod
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.maps.attention.scores.certified import Certified


@dataclass(frozen=True)
class Expansion:
    """The answer of a row to its scores' moves t_l, tau_l = t_l - sum_m mean_m t_m, the weights' mean being subtracted
    where the score is `shift_invariant`. For some 0 <= zeta <= scale its output changes by

        sum_l (zeta slope_l tau_l + rest_l) (x_l - c) + (zeta a_i + rho) Delta,

    with |rest_l| <= bend_l tau_l² + spread_l |tau_l| and |rho| <= rise_i; c is the old output for divided scores and 0
    for others, a_i the old weight of the word whose row it is. Word first.

    Attributes:
        slope_error: how far rounding may have put each slope from a true one.
        cap: no weight exceeds it; 1 where nothing better is known. Only for weights that sum to one.
    """

    slope: Float[Tensor, "w n"]
    slope_error: Float[Tensor, "w n"]
    bend: Float[Tensor, "w n"]
    spread: Float[Tensor, "w n"]
    rise: Float[Tensor, "w n"]
    scale: Float[Tensor, " w"]
    cap: Float[Tensor, " w"]


class Expanded(Certified):
    """A certified score that also says how a whole row answers to first order.

    Attributes:
        shift_invariant: whether adding one number to all scores of a row leaves the weights as they are.
    """

    shift_invariant: bool = False

    @abstractmethod
    def expansion(
        self,
        scores: Float[Tensor, "w n"],
        moves: Float[Tensor, "w n"],
        together: Float[Tensor, " w"],
        error: Float[Tensor, "w 1"],
    ) -> Expansion:
        """For |tau_l| <= moves_l and (sum_l tau_l²)^(1/2) <= together; each score may be off by `error`."""


def secant_expansion(
    weights: Float[Tensor, "w n"], low: Float[Tensor, "w n"], high: Float[Tensor, "w n"], moves: Float[Tensor, "w n"]
) -> Expansion:
    """Of weights that are not divided, whose secants (w(s + t) - w(s))/t lie between `low` and `high`."""
    zeros, ones = torch.zeros_like(weights), torch.ones_like(weights[:, 0])
    return Expansion(0.5 * (high + low), zeros, zeros, 0.5 * (high - low), high * moves, ones, ones)
