"""Multipliers of the normal bound: Newton's method on the bound with its suprema smoothed.

Nothing here is rigorous, and nothing needs to be: `relaxation.bound_at` holds for any multipliers.
"""

from copy import copy
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.attention.geometry import Geometry
from wordsens.certificates.attention.relaxation import Centre, Forces, Multipliers, Pairs, centre_of, forces, outside

_NODE_STRIDE = 2  # the search looks at every second node, in float32
_CONJUGATE_STEPS = 8  # in float32: a step is damped far beyond its rounding
_LARGEST_IN_FLOAT32 = 1e15  # of curvatures; a score as steep as a jump goes beyond
_LONGEST_STEP = 2.0  # of a linear multiplier, in standard deviations of the exponents it changes
_LEAST_CURVATURE = 1.0
_LAM_SHARE, _CAUTIOUS_LAM_SHARE = 0.35, 0.15  # of lam, that one step adds at most
_ASTRAY = 1.15  # a step that raises the bound by more than this is taken back


@dataclass(frozen=True)
class State:
    """lam; y, the linear multipliers of t_j divided by 2 lam; beta. One row a word."""

    lam: Float[Tensor, " w"]
    y: Float[Tensor, "w N"]
    beta: Float[Tensor, "w N"]

    def of(self, chosen: Int[Tensor, " c"]) -> "State":
        """The state of some of the words."""
        return State(self.lam[chosen], self.y[chosen], self.beta[chosen])

    def replaced(self, chosen: Bool[Tensor, " w"], other: "State") -> "State":
        """The state of `other` for the chosen words."""
        pick = chosen.unsqueeze(1)
        return State(
            torch.where(chosen, other.lam, self.lam),
            torch.where(pick, other.y, self.y),
            torch.where(pick, other.beta, self.beta),
        )


@dataclass(frozen=True)
class _Nodes:
    """Every second node, in float32."""

    t: Tensor
    q: Tensor
    base: Tensor


@dataclass(frozen=True)
class _Moments:
    """Means over the nodes of a row, each weighted by exp(h / temperature)."""

    t: Tensor
    t_variance: Tensor
    t_square_covariance: Tensor
    t_square_variance: Tensor
    q: Tensor
    q_variance: Tensor


@dataclass(frozen=True)
class _Push:
    """Of the Newton systems, what holds z: h = S's resolvent times the u_j . direction, and k. They depend on the words
    alone."""

    h: Float[Tensor, "w N"]
    k: Float[Tensor, " w"]


@dataclass(frozen=True)
class _Seen:
    """A state, and what follows: the centre, the force that holds z, the rows' h at the nodes, the largest of each."""

    state: State
    centre: Centre
    force: Float[Tensor, " w"]
    heights: Float[Tensor, "w N K"]
    most: Float[Tensor, "w N 1"]
    value: Float[Tensor, " w"]


class MultiplierSearch:
    """Newton steps for all words of a chunk at once.

    With S = U (I - a U^T U)^-1 U^T, a the geometry's score weight, and one curvature c_j a row, a Newton system is
    (S - h h^T/k + diag(c)) step = residual for each word: conjugate gradients, preconditioned by (S + mean c)^-1, which
    all words share. O(steps N² w); S's eigenvectors once, O(N³).
    """

    def __init__(self, geometry: Geometry):
        self._geometry, self._lam_share = geometry, _LAM_SHARE
        a = geometry.score_weight
        self._weights = a, geometry.output_weight
        values, vectors = torch.linalg.eigh(geometry.query_gram)
        values = values.clamp(min=0, max=0.999 / a)
        self._vectors = vectors
        self._spectrum = values / (1 - a * values)
        self._resolvent = (vectors / (1 - a * values)) @ vectors.T
        self._stiffness = (vectors * self._spectrum) @ vectors.T
        self._from_offsets = self._resolvent @ geometry.cross_gram

    def cautious(self) -> "MultiplierSearch":
        """The same search with shorter steps of lam: slower and more stable."""
        other = copy(self)
        other._lam_share = _CAUTIOUS_LAM_SHARE
        return other

    def start(self, pairs: Pairs) -> State:
        """No linear multipliers, and lam a tenth of the sum of the rows' largest changes."""
        worst = (pairs.base.amax(dim=-1) * pairs.counted).sum(dim=1)
        worst = worst + (worst == 0).to(worst.dtype)
        zeros = torch.zeros_like(pairs.reach)
        return State(0.1 * worst, zeros, zeros.clone())

    def multipliers(self, pairs: Pairs, state: State, z: Float[Tensor, " w"]) -> Multipliers:
        """alpha, beta and gamma of a state: the centre y' has y' . direction = z."""
        return self._multipliers(pairs, state, z, self._balance(pairs, state, z, self._push(pairs))[0])

    def _multipliers(self, pairs: Pairs, state: State, z: Tensor, t: Tensor) -> Multipliers:
        alpha = (state.y + self._geometry.score_weight * t) * pairs.counted
        gamma = z - (alpha * pairs.along_queries + state.beta * pairs.along_offsets).sum(dim=1)
        weights = (state.lam.new_full((len(state.lam), 1), one) for one in self._weights)
        return Multipliers(state.lam, alpha, state.beta, gamma, *weights)

    def improve(
        self, pairs: Pairs, state: State, z: Float[Tensor, " w"], temperatures: list[float], *, keep_lam: bool = False
    ) -> State:
        """One Newton step a temperature; these are relative to the mean worst change of a row."""
        picked = slice(None, None, _NODE_STRIDE)
        base = pairs.base[..., picked] + pairs.q[..., picked].abs() * pairs.crude.unsqueeze(-1)
        nodes = _Nodes(*(array.float() for array in (pairs.t[..., picked], pairs.q[..., picked], base)))
        unit = (base.amax(dim=-1) * pairs.counted).sum(dim=1) / pairs.counted.sum(dim=1).clamp(min=1)
        unit = torch.where(unit > 0, unit, torch.ones_like(unit)) / 3
        push, least, longest = self._push(pairs), torch.full_like(unit, torch.inf), torch.full_like(unit, _LONGEST_STEP)
        best = state
        for temperature in temperatures:
            seen = self._look(pairs, nodes, state, z, push)
            better, astray = seen.value < least, ~(seen.value < _ASTRAY * least)
            best, least = best.replaced(better, state), torch.where(better, seen.value, least)
            if bool(astray.any()):
                seen = self._look(pairs, nodes, state.replaced(astray, best), z, push)
            longest = torch.where(astray, 0.4 * longest, longest)
            state = self._newton(pairs, nodes, seen, push, z, temperature * unit, longest, keep_lam)
        value = self._look(pairs, nodes, state, z, push).value
        return best.replaced(value < least, state)

    def _look(self, pairs: Pairs, nodes: _Nodes, state: State, z: Tensor, push: _Push) -> _Seen:
        """The rows' h, and the bound that the nodes alone give."""
        t, held = self._balance(pairs, state, z, push)
        by = self._multipliers(pairs, state, z, t)
        centre = centre_of(self._geometry, pairs, by)
        force = forces(pairs, by, centre, z)
        heights = _heights(nodes, force)
        most = heights.amax(dim=-1, keepdim=True)
        suprema = (most.squeeze(-1).double() * pairs.counted).sum(dim=1)
        return _Seen(state, centre, held, heights, most, suprema + outside(pairs, by, centre, force, z))

    def _push(self, pairs: Pairs) -> _Push:
        h = pairs.along_queries @ self._resolvent
        return _Push(h, 1 + self._geometry.score_weight * (pairs.along_queries * h).sum(dim=1))

    def _balance(self, pairs: Pairs, state: State, z: Tensor, push: _Push) -> tuple[Tensor, Tensor]:
        """t', and the force along the direction that makes z come out."""
        h, a = push.h, self._geometry.score_weight
        from_beta = state.beta @ self._geometry.cross_gram.T
        drift = (pairs.along_offsets * state.beta).sum(dim=1) + a * (h * from_beta).sum(dim=1)
        force = (z - (h * state.y).sum(dim=1) - drift) / push.k
        t = state.y @ self._stiffness + state.beta @ self._from_offsets.T + force.unsqueeze(1) * h
        return t, force

    def _newton(
        self,
        pairs: Pairs,
        nodes: _Nodes,
        at: _Seen,
        push: _Push,
        z: Tensor,
        temperature: Tensor,
        longest: Tensor,
        keep_lam: bool,
    ) -> State:
        state, centre, counted = at.state, at.centre, pairs.counted
        a, b = self._geometry.score_weight, self._geometry.output_weight
        seen = _moments(nodes, at.heights - at.most, temperature, counted)
        lam = state.lam.unsqueeze(1)
        heat = temperature.unsqueeze(1)

        # The gradient along y is -2 lam residual.
        residual = (seen.t - centre.t) * counted
        curvature = (2 * lam * seen.t_variance / heat).clamp(min=_LEAST_CURVATURE / a)
        if keep_lam:
            linear_step = 2 * lam * self._solved(residual.unsqueeze(0), curvature, push, counted)[0]
            lam_step = torch.zeros_like(state.lam)
        else:
            # Along lam, at fixed 2 lam y, it is `slope`; `mixed` / (2 lam) are the second derivatives in both.
            held = (centre.t * state.y + state.beta * centre.e).sum(dim=1) + at.force * z
            square = seen.t_variance + seen.t.square()
            slope = 1 - a * square.sum(dim=1) - held - seen.q_variance.sum(dim=1) / (4 * state.lam.square() * b)
            mixed = (2 * lam * a * seen.t_square_covariance / heat - 2 * centre.t) * counted
            steps = self._solved(torch.stack([residual, mixed]), curvature, push, counted)
            along = 2 * lam * steps[0]
            mixed = mixed / (2 * lam)
            lam_curvature = (a**2 * seen.t_square_variance / heat).sum(dim=1)
            lam_curvature = lam_curvature + 2 * (centre.t * state.y).sum(dim=1).clamp(min=0) / state.lam
            left = lam_curvature - (mixed * steps[1]).sum(dim=1)
            left = torch.where(left > 0, left, lam_curvature.clamp(min=torch.finfo(lam.dtype).tiny))
            lam_step = -(slope + (mixed * along).sum(dim=1)) / left
            lam_step = torch.maximum(
                torch.minimum(lam_step, self._lam_share * state.lam), -0.7 * self._lam_share * state.lam
            )
            linear_step = along - steps[1] * lam_step.unsqueeze(1)
        spread = (linear_step.abs() * seen.t_variance.sqrt()).amax(dim=1) / temperature
        share = (longest / torch.maximum(spread, longest)).nan_to_num(0.0)
        linear = 2 * lam * state.y + (share.unsqueeze(1) * linear_step).nan_to_num(0.0, 0.0, 0.0)
        new_lam = state.lam + (share * lam_step).nan_to_num(0.0, 0.0, 0.0)
        beta = (0.5 * state.beta + 0.25 * seen.q / new_lam.unsqueeze(1)) * pairs.coupled
        return State(new_lam, linear / (2 * new_lam.unsqueeze(1)) * counted, beta)

    def _solved(
        self, sides: Float[Tensor, "sides w N"], curvature: Tensor, push: _Push, counted: Tensor
    ) -> Float[Tensor, "sides w N"]:
        """`_solve` in float32, where the curvatures leave it room."""
        precision = torch.float32 if float(curvature.amax()) < _LARGEST_IN_FLOAT32 else torch.float64
        size = sides.abs().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(sides.dtype).tiny)
        solution = self._solve((sides / size).to(precision), curvature.to(precision), push, counted.to(precision))
        return solution.double() * size

    def _solve(
        self, sides: Float[Tensor, "sides w N"], curvature: Tensor, push: _Push, counted: Tensor
    ) -> Float[Tensor, "sides w N"]:
        """(S - h h^T / k + diag(curvature))^-1 sides, about, in the precision of the sides.

        With M = S + mean c, S M^-1 r = r - mean c M^-1 r: only the rows that do not count, whose part of M^-1 r is left
        out, ask for a product with S, with their rows of S.
        """
        h, k = push.h.to(sides.dtype), push.k.to(sides.dtype).unsqueeze(-1)
        spectrum, vectors, stiffness = (
            array.to(sides.dtype) for array in (self._spectrum, self._vectors, self._stiffness)
        )
        count = counted.sum(dim=1, keepdim=True).clamp(min=1)
        mean = torch.exp((curvature.log() * counted).sum(dim=1, keepdim=True) / count)
        inverse = 1 / (spectrum + mean)
        uncounted = 1 - counted
        left_out = uncounted.topk(int(uncounted.sum(dim=1).amax())).indices
        lost = stiffness[left_out] * uncounted.gather(1, left_out).unsqueeze(2)
        left_out = left_out.expand(len(sides), *left_out.shape)

        def preconditioned(x: Tensor) -> tuple[Tensor, Tensor]:
            """M^-1 x where rows count, and S times it."""
            whole = ((x @ vectors) * inverse) @ vectors.T
            stiff = (x - mean * whole) - (whole.gather(2, left_out).unsqueeze(3) * lost).sum(dim=2)
            return whole * counted, stiff

        solution, left = torch.zeros_like(sides), sides
        direction, stiff = preconditioned(left)
        energy = (left * direction).sum(dim=-1, keepdim=True)
        for step in range(_CONJUGATE_STEPS):
            if step:
                pointed, pushed = preconditioned(left)
                new_energy = (left * pointed).sum(dim=-1, keepdim=True)
                share = torch.where(energy > 0, new_energy / energy, torch.zeros_like(energy))
                direction, stiff, energy = pointed + share * direction, pushed + share * stiff, new_energy
            held = ((direction * h).sum(dim=-1, keepdim=True) / k) * h
            image = (stiff - held + curvature * direction) * counted
            length = (direction * image).sum(dim=-1, keepdim=True)
            # A system that is solved leaves nothing to divide: the step is zero then.
            share = torch.where(length > 0, energy / length, torch.zeros_like(length))
            solution, left = solution + share * direction, left - share * image
        return solution


def _heights(nodes: _Nodes, force: Forces) -> Float[Tensor, "w N K"]:
    """h at the nodes."""
    linear, quadratic, pull = (
        array.to(nodes.t.dtype).unsqueeze(-1) for array in (force.linear, force.quadratic, force.pull)
    )
    hold = force.hold.to(nodes.t.dtype).unsqueeze(-1)
    h = torch.addcmul(nodes.base, nodes.q, torch.addcmul(linear, nodes.q, quadratic))
    return h.addcmul_(nodes.t, torch.addcmul(pull, nodes.t, hold, value=-1))


def _moments(nodes: _Nodes, below: Tensor, temperature: Tensor, counted: Tensor) -> _Moments:
    """The moments, of h less its largest value."""
    weight = torch.softmax(below / temperature.to(below.dtype)[:, None, None], dim=-1)

    def mean(array: Tensor) -> Tensor:
        return (weight * array).sum(dim=-1).double() * counted

    square = nodes.t.square()
    t, t2, t3, t4, q, q2 = (
        mean(array) for array in (nodes.t, square, square * nodes.t, square * square, nodes.q, nodes.q.square())
    )
    return _Moments(
        t=t,
        t_variance=(t2 - t.square()).clamp(min=0),
        t_square_covariance=t3 - t * t2,
        t_square_variance=(t4 - t2.square()).clamp(min=0),
        q=q,
        q_variance=(q2 - q.square()).clamp(min=0),
    )
