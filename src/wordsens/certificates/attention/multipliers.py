"""Multipliers of the bound: Newton's method on the bound (3) with its suprema smoothed.

No multipliers need to be right: `relaxation.bound_at` holds for any. The bound over all z is taken
on intervals between ten places of z (`swept`).
"""

from itertools import pairwise
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from wordsens.certificates.attention.relaxation import (
    Multipliers,
    Pairs,
    bound_at,
    forces,
    rise_between,
)
from wordsens.certificates.attention.text import AttentionText, Geometry, SelfRow
from wordsens.certificates.base import rounding

_NODE_STRIDE = 2  # the search looks at every second node, in float32
_CONJUGATE_STEPS = 6  # in float32: a step is damped far beyond its rounding
_LARGEST_CURVATURE = 1e15  # in float32; a score as steep as a jump goes beyond
_LEAST_CURVATURE = 1.0
_LONGEST_STEP = 1.0  # of a linear multiplier, in standard deviations of the exponents it changes
_LAM_SHARE = 0.25  # of lam, that one step adds at most

# Places of z = Delta . (x_i - centre)/(‖x_i - centre‖ radius) at which multipliers are optimised;
# the bound is interpolated between them. Dense around .45, where the sup usually lies. A little
# beyond [-1, 1]: ‖direction‖ is 1 up to rounding.
_PLACES = (-1 - 1e-9, -0.4, 0.0, 0.18, 0.32, 0.42, 0.52, 0.64, 0.8, 1 + 1e-9)
_FIRST = 5
_FIRST_TEMPERATURES = (0.5, 0.5, 0.4, 0.4, 0.3, 0.3, 0.2, 0.2, 0.15, 0.15)
_NEXT_TEMPERATURES = (0.3, 0.2, 0.2, 0.15, 0.1)


class State(NamedTuple):
    """lam; y, the linear multipliers of t_j divided by 2 lam; beta. One row per word."""

    lam: Float[Tensor, " w"]
    y: Float[Tensor, "w N"]
    beta: Float[Tensor, "w N"]


class MultiplierSearch:
    """Newton steps for all words of a chunk at once.

    With S = U (I - a U^T U)^-1 U^T, a the geometry's score weight, and one curvature c_j per row, a
    Newton system is (S - h h^T/k + diag(c)) step = residual for each word: conjugate gradients,
    preconditioned by (S + mean c)^-1, which all words share. O(steps N² w); S's eigenvectors once,
    O(N³).
    """

    def __init__(self, geometry: Geometry):
        self._geometry = geometry
        a = geometry.score_weight
        values, self._vectors = torch.linalg.eigh(geometry.query_gram)
        values = values.clamp(min=0, max=0.999 / a)
        self._spectrum = values / (1 - a * values)
        self._resolvent = (self._vectors / (1 - a * values)) @ self._vectors.T
        self._stiffness = (self._vectors * self._spectrum) @ self._vectors.T
        self._from_offsets = self._resolvent @ geometry.cross_gram

    def start(self, pairs: Pairs) -> State:
        """No linear multipliers, and lam a tenth of the sum of the rows' largest changes."""
        worst = (pairs.base.amax(dim=-1) * pairs.counted).sum(dim=1)
        zeros = torch.zeros_like(pairs.reach)
        return State(0.1 * torch.where(worst > 0, worst, 1.0), zeros, zeros)

    def multipliers(self, pairs: Pairs, state: State, z: Float[Tensor, " w"]) -> Multipliers:
        """alpha, beta and gamma of a state: the centre y' has y' . direction = z."""
        (h, k), a = self._push(pairs), self._geometry.score_weight
        from_beta = state.beta @ self._geometry.cross_gram.T
        drift = (pairs.along_offsets * state.beta + a * h * from_beta + h * state.y).sum(dim=1)
        push = (z - drift).unsqueeze(1) / k * h
        t = state.y @ self._stiffness + state.beta @ self._from_offsets.T + push
        alpha = (state.y + a * t) * pairs.counted
        gamma = z - (alpha * pairs.along_queries + state.beta * pairs.along_offsets).sum(dim=1)
        return Multipliers(state.lam, alpha, state.beta, gamma)

    def improve(
        self, pairs: Pairs, state: State, z: Float[Tensor, " w"], temperatures: tuple[float, ...]
    ) -> State:
        """One Newton step per temperature; these are relative to a third of the mean worst change
        of a row.

        The suprema over t are smoothed: means are over the nodes of a row, each weighted by exp(h /
        temperature).
        """
        a, b = self._geometry.score_weight, self._geometry.output_weight
        counted, push = pairs.counted, self._push(pairs)
        picked = slice(None, None, _NODE_STRIDE)
        base = pairs.base + pairs.q.abs() * pairs.crude.unsqueeze(-1)
        worst = (base.amax(dim=-1) * counted).sum(dim=1)
        mean_worst = worst / counted.sum(dim=1).clamp(min=1)
        unit = torch.where(mean_worst > 0, mean_worst, 1.0) / 3
        t, q, base = (array[..., picked].float() for array in (pairs.t, pairs.q, base))
        square = t.square()
        powers = (t, square, square * t, square.square(), q, q.square())
        for temperature in temperatures:
            heat = (temperature * unit).unsqueeze(1)
            by = self.multipliers(pairs, state, z)
            force = forces(self._geometry, pairs, by, z)
            linear, quadratic, pull, hold = (
                array.float().unsqueeze(-1)
                for array in (force.linear, force.quadratic, force.pull, force.hold)
            )
            heights = torch.addcmul(base, q, torch.addcmul(linear, q, quadratic))
            heights.addcmul_(t, torch.addcmul(pull, t, hold, value=-1))
            weight = torch.softmax(heights / heat.float().unsqueeze(-1), dim=-1)
            t1, t2, t3, t4, q1, q2 = (
                (weight * power).sum(dim=-1).double() * counted for power in powers
            )
            t_variance = (t2 - t1.square()).clamp(min=0)
            q_variance = (q2 - q1.square()).clamp(min=0)

            # The gradient along y is -2 lam residual. Along lam, at fixed 2 lam y, it is `slope`;
            # `mixed` / (2 lam) are the second derivatives in both.
            lam = state.lam.unsqueeze(1)
            residual = (t1 - force.t) * counted
            curvature = (2 * lam * t_variance / heat).clamp(_LEAST_CURVATURE / a)
            fixed = (force.t * state.y + state.beta * force.e).sum(dim=1) + by.gamma * z
            slope = 1 - a * t2.sum(dim=1) - fixed
            slope = slope - q_variance.sum(dim=1) / (4 * state.lam.square() * b)
            mixed = (2 * lam * a * (t3 - t1 * t2) / heat - 2 * force.t) * counted
            steps = self._solve(torch.stack([residual, mixed]), curvature, push, counted)
            along = 2 * lam * steps[0]
            mixed = mixed / (2 * lam)
            lam_curvature = (a**2 * (t4 - t2.square()).clamp(min=0) / heat).sum(dim=1)
            stretched = (force.t * state.y).sum(dim=1).clamp(min=0)
            lam_curvature = lam_curvature + 2 * stretched / state.lam
            left = lam_curvature - (mixed * steps[1]).sum(dim=1)
            least = lam_curvature.clamp(min=torch.finfo(lam.dtype).tiny)
            left = torch.where(left > 0, left, least)
            lam_step = -(slope + (mixed * along).sum(dim=1)) / left
            longest = _LAM_SHARE * state.lam
            lam_step = lam_step.minimum(longest).maximum(-0.7 * longest)
            step = along - steps[1] * lam_step.unsqueeze(1)

            spread = (step.abs() * t_variance.sqrt() / heat).amax(dim=1)
            share = (_LONGEST_STEP / spread.clamp(min=_LONGEST_STEP)).nan_to_num(0.0)
            eta = 2 * lam * state.y + (share.unsqueeze(1) * step).nan_to_num(0.0, 0.0, 0.0)
            new_lam = state.lam + (share * lam_step).nan_to_num(0.0, 0.0, 0.0)
            beta = (0.5 * state.beta + 0.25 * q1 / new_lam.unsqueeze(1)) * pairs.coupled
            state = State(new_lam, eta / (2 * new_lam.unsqueeze(1)) * counted, beta)
        return state

    def _push(self, pairs: Pairs) -> tuple[Float[Tensor, "w N"], Float[Tensor, "w 1"]]:
        """Of the Newton systems, what fixes z: h = S's resolvent times the u_j . direction, and
        k."""
        h = pairs.along_queries @ self._resolvent
        along = (pairs.along_queries * h).sum(dim=1, keepdim=True)
        return h, 1 + self._geometry.score_weight * along

    def _solve(
        self,
        sides: Float[Tensor, "sides w N"],
        curvature: Float[Tensor, "w N"],
        push: tuple[Float[Tensor, "w N"], Float[Tensor, "w 1"]],
        counted: Float[Tensor, "w N"],
    ) -> Float[Tensor, "sides w N"]:
        """(S - h h^T / k + diag(curvature))^-1 sides, about.

        Rows that do not count are solved for like others, and their part is left out of the
        solution. With M = S + mean c, S M^-1 r = r - mean c M^-1 r.
        """
        size = sides.abs().amax(dim=-1, keepdim=True)
        size = size.clamp(min=torch.finfo(sides.dtype).tiny)
        curvature = curvature.clamp(max=_LARGEST_CURVATURE)
        left, curvature, h, k, spectrum, vectors, weight = (
            array.float()
            for array in (sides / size, curvature, *push, self._spectrum, self._vectors, counted)
        )
        mean = curvature.log().mean(dim=1, keepdim=True).exp()
        inverse = 1 / (spectrum + mean)
        solution, direction = torch.zeros_like(left), torch.zeros_like(left)
        energy = left.new_zeros(*left.shape[:-1], 1)
        stiff = direction
        for _ in range(_CONJUGATE_STEPS):
            whole = ((left @ vectors) * inverse) @ vectors.T * weight
            new_energy = (left * whole).sum(dim=-1, keepdim=True)
            # A system that is solved leaves nothing to divide: the step is zero then.
            share = torch.where(energy > 0, new_energy / energy, 0.0)
            direction = whole + share * direction
            energy = new_energy
            pushed_back = (direction * h).sum(dim=-1, keepdim=True) / k * h
            stiff = ((direction @ vectors) * spectrum) @ vectors.T
            image = (stiff - pushed_back + curvature * direction) * weight
            length = (direction * image).sum(dim=-1, keepdim=True)
            share = torch.where(length > 0, energy / length, 0.0)
            solution, left = solution + share * direction, left - share * image
        return solution.double() * size * counted


def swept(
    text: AttentionText, search: MultiplierSearch, pairs: Pairs, row: SelfRow
) -> Float[Tensor, " w"]:
    """The Lagrangian's bounds over all z of some words' squared changes, rounded outward.

    From the first place outward, to the right and to the left, the multipliers of the last place
    are improved for the next.
    """

    def at(place: int) -> Float[Tensor, " w"]:
        return torch.full_like(row.fixed, _PLACES[place])

    most = torch.zeros_like(row.fixed)
    start = search.improve(pairs, search.start(pairs), at(_FIRST), _FIRST_TEMPERATURES)
    for places in (range(_FIRST, len(_PLACES)), range(_FIRST, -1, -1)):
        state = start
        for near, far in pairwise(places):
            before = state
            # Where z is +-1 nothing else can move: a neighbour's multipliers do, and there are none
            # to improve.
            if abs(_PLACES[far]) < 1:
                state = search.improve(pairs, state, at(far), _NEXT_TEMPERATURES)
            ends = [(before, at(near)), (state, at(far))]
            if far < near:
                ends.reverse()
            multipliers = [search.multipliers(pairs, end, z) for end, z in ends]
            zs = [z for _, z in ends]
            most = torch.maximum(most, _between(text, pairs, row, multipliers, zs))
    return most


def _between(
    text: AttentionText,
    pairs: Pairs,
    row: SelfRow,
    by: list[Multipliers],
    zs: list[Float[Tensor, " w"]],
) -> Float[Tensor, " w"]:
    """The bound over z from one end of an interval to the other, rounded outward."""
    nearest = torch.where(zs[0] * zs[1] <= 0, 0.0, torch.minimum(zs[0].abs(), zs[1].abs()))
    across = (1 - nearest.square()).clamp(min=0).sqrt() * (1 + 1e-15)
    left, left_size = bound_at(text.geometry, pairs, by[0], zs[0], across)
    right, right_size = bound_at(text.geometry, pairs, by[1], zs[1], across)
    # V (V^T x_i - o_j) as computed, in the terms q r_j . y.
    moved = (pairs.q.abs().amax(dim=-1) * pairs.counted).sum(dim=1)
    terms = 1 + text.weights[0].norms.terms / sum(text.queries.shape)
    size = torch.maximum(left_size, right_size)
    size = size + 4 * terms * text.lift_size * text.longest * moved
    fixed = torch.maximum(left, right) + row.fixed
    left, right = left + row.at(zs[0], across), right + row.at(zs[1], across)
    by_z = torch.maximum(left, right)
    rise = rise_between(by[0], zs[0], by[1], zs[1])
    bound = (torch.minimum(fixed, by_z) + rise).clamp(min=0)
    roundings = rounding(4 * sum(text.geometry.queries.shape) + 200)
    bound = bound * (1 + 1e-12) + roundings * (2 * size + row.fixed)
    # Multipliers that went astray give no bound.
    valid = bound.isfinite() & (by[0].lam > 0) & (by[1].lam > 0)
    return torch.where(valid, bound, torch.inf)
