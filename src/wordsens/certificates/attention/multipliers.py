"""Multipliers of the bound: Newton's method on the bound (3) with its suprema smoothed.

No multipliers need to be right: `relaxation.bound_at` holds for any. The bound over all z is taken
on intervals between ten places of z (`swept`).
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.attention.relaxation import (
    Bound,
    Centre,
    Multipliers,
    Pairs,
    bound_at,
    centre_of,
    forces,
    outside,
    rise_between,
)
from wordsens.certificates.attention.text import AttentionText, Geometry, SelfRow
from wordsens.certificates.base import rounding

_NODE_STRIDE = 2  # the search looks at every second node, in float32
_CONJUGATE_STEPS = 8  # in float32: a step is damped far beyond its rounding
_LARGEST_IN_FLOAT32 = 1e15  # of curvatures; a score as steep as a jump goes beyond
_LONGEST_STEP = 2.0  # of a linear multiplier, in standard deviations of the exponents it changes
_LEAST_CURVATURE = 1.0
_LAM_SHARE, _CAUTIOUS_LAM_SHARE = 0.35, 0.15  # of lam, that one step adds at most
_ASTRAY = 1.15  # a step that raises the bound by more than this is taken back

# Places of z = Delta . (x_i - centre)/(‖x_i - centre‖ radius) at which multipliers are optimised;
# the bound is interpolated between them. Dense around .45, where the sup usually lies. A little
# beyond [-1, 1]: ‖direction‖ is 1 up to rounding.
_PLACES = (-1 - 1e-9, -0.4, 0.0, 0.18, 0.32, 0.42, 0.52, 0.64, 0.8, 1 + 1e-9)
_FIRST = 5
_FIRST_TEMPERATURES = [0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.15, 0.15]
_NEXT_TEMPERATURES = [0.2, 0.2, 0.15]
_CAUTIOUS_FIRST_TEMPERATURES = [0.5, 0.5, 0.4, 0.4, 0.3, 0.3, 0.2, 0.2, 0.2, 0.15, 0.15]
_CAUTIOUS_NEXT_TEMPERATURES = [0.3, 0.3, 0.2, 0.2, 0.15]
_DOUBTFUL = 1.06


@dataclass(frozen=True)
class _State:
    """lam; y, the linear multipliers of t_j divided by 2 lam; beta. One row a word."""

    lam: Float[Tensor, " w"]
    y: Float[Tensor, "w N"]
    beta: Float[Tensor, "w N"]

    def of(self, chosen: Int[Tensor, " c"]) -> "_State":
        """The state of some of the words."""
        return _State(self.lam[chosen], self.y[chosen], self.beta[chosen])

    def replaced(self, chosen: Bool[Tensor, " w"], other: "_State") -> "_State":
        """The state of `other` for the chosen words."""
        pick = chosen.unsqueeze(1)
        return _State(
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


class _Push(NamedTuple):
    """Of the Newton systems, what fixes z: h = S's resolvent times the u_j . direction, and k."""

    h: Float[Tensor, "w N"]
    k: Float[Tensor, " w"]


@dataclass(frozen=True)
class _Problem:
    """The smoothed bound at one z for each word: what does not change from step to step."""

    pairs: Pairs
    nodes: _Nodes
    z: Float[Tensor, " w"]
    push: _Push


@dataclass(frozen=True)
class _Evaluated:
    """A state, and what follows: the centre, the force that fixes z, the rows' h at the nodes, the
    largest of each."""

    state: _State
    centre: Centre
    force: Float[Tensor, " w"]
    heights: Float[Tensor, "w N K"]
    most: Float[Tensor, "w N 1"]
    value: Float[Tensor, " w"]


class MultiplierSearch:
    """Newton steps for all words of a chunk at once.

    With S = U (I - a U^T U)^-1 U^T, a the geometry's score weight, and one curvature c_j a row, a
    Newton system is (S - h h^T/k + diag(c)) step = residual for each word: conjugate gradients,
    preconditioned by (S + mean c)^-1, which all words share. O(steps N² w); S's eigenvectors once,
    O(N³).
    """

    def __init__(self, geometry: Geometry):
        self._geometry, self._lam_share = geometry, _LAM_SHARE
        a = geometry.score_weight
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

    def start(self, pairs: Pairs) -> _State:
        """No linear multipliers, and lam a tenth of the sum of the rows' largest changes."""
        worst = (pairs.base.amax(dim=-1) * pairs.counted).sum(dim=1)
        worst = worst + (worst == 0).to(worst.dtype)
        zeros = torch.zeros_like(pairs.reach)
        return _State(0.1 * worst, zeros, zeros.clone())

    def multipliers(
        self,
        pairs: Pairs,
        state: _State,
        z: Float[Tensor, " w"],
        t: Float[Tensor, "w N"] | None = None,
    ) -> Multipliers:
        """alpha, beta and gamma of a state: the centre y' has y' . direction = z, and these t'
        where they are known."""
        t = self._balance(pairs, state, z, self._push(pairs))[0] if t is None else t
        alpha = (state.y + self._geometry.score_weight * t) * pairs.counted
        gamma = z - (alpha * pairs.along_queries + state.beta * pairs.along_offsets).sum(dim=1)
        return Multipliers(state.lam, alpha, state.beta, gamma)

    def improve(
        self, pairs: Pairs, state: _State, z: Float[Tensor, " w"], temperatures: list[float]
    ) -> _State:
        """One Newton step a temperature; these are relative to the mean worst change of a row."""
        picked = slice(None, None, _NODE_STRIDE)
        base = pairs.base[..., picked] + pairs.q[..., picked].abs() * pairs.crude.unsqueeze(-1)
        nodes = _Nodes(
            *(array.float() for array in (pairs.t[..., picked], pairs.q[..., picked], base))
        )
        unit = (base.amax(dim=-1) * pairs.counted).sum(dim=1) / pairs.counted.sum(dim=1).clamp(
            min=1
        )
        unit = torch.where(unit > 0, unit, torch.ones_like(unit)) / 3
        problem = _Problem(pairs, nodes, z, self._push(pairs))
        least, longest = torch.full_like(unit, torch.inf), torch.full_like(unit, _LONGEST_STEP)
        best = state
        for temperature in temperatures:
            point = self._evaluate(problem, state)
            better, astray = point.value < least, ~(point.value < _ASTRAY * least)
            best, least = best.replaced(better, state), torch.where(better, point.value, least)
            if bool(astray.any()):
                point = self._evaluate(problem, state.replaced(astray, best))
            longest = torch.where(astray, 0.4 * longest, longest)
            state = self._newton(problem, point, temperature * unit, longest)
        value = self._evaluate(problem, state).value
        return best.replaced(value < least, state)

    def _evaluate(self, problem: _Problem, state: _State) -> _Evaluated:
        """The rows' h, and the bound that the nodes alone give."""
        pairs, z = problem.pairs, problem.z
        t, push = self._balance(pairs, state, z, problem.push)
        by = self.multipliers(pairs, state, z, t)
        centre = centre_of(self._geometry, pairs, by)
        force = forces(self._geometry, pairs, by, centre, z)
        nodes = problem.nodes
        linear, quadratic, pull, hold = (
            array.to(nodes.t.dtype).unsqueeze(-1)
            for array in (force.linear, force.quadratic, force.pull, force.hold)
        )
        heights = torch.addcmul(nodes.base, nodes.q, torch.addcmul(linear, nodes.q, quadratic))
        heights.addcmul_(nodes.t, torch.addcmul(pull, nodes.t, hold, value=-1))
        most = heights.amax(dim=-1, keepdim=True)
        suprema = (most.squeeze(-1).double() * pairs.counted).sum(dim=1)
        return _Evaluated(
            state, centre, push, heights, most, suprema + outside(pairs, by, centre, force, z)
        )

    def _push(self, pairs: Pairs) -> _Push:
        h = pairs.along_queries @ self._resolvent
        return _Push(h, 1 + self._geometry.score_weight * (pairs.along_queries * h).sum(dim=1))

    def _balance(
        self, pairs: Pairs, state: _State, z: Tensor, push: _Push
    ) -> tuple[Tensor, Tensor]:
        """t', and the force along the direction that makes z come out."""
        h, a = push.h, self._geometry.score_weight
        from_beta = state.beta @ self._geometry.cross_gram.T
        drift = (pairs.along_offsets * state.beta).sum(dim=1) + a * (h * from_beta).sum(dim=1)
        force = (z - (h * state.y).sum(dim=1) - drift) / push.k
        t = state.y @ self._stiffness + state.beta @ self._from_offsets.T + force.unsqueeze(1) * h
        return t, force

    def _newton(
        self, problem: _Problem, point: _Evaluated, temperature: Tensor, longest: Tensor
    ) -> _State:
        """The state after one step, whose linear part is at most `longest`."""
        state, centre, counted, push = (
            point.state,
            point.centre,
            problem.pairs.counted,
            problem.push,
        )
        a, b = self._geometry.score_weight, self._geometry.output_weight
        rows = _moments(problem.nodes, point.heights - point.most, temperature, counted)
        lam, heat = state.lam.unsqueeze(1), temperature.unsqueeze(1)

        # The gradient along y is -2 lam residual. Along lam, at fixed 2 lam y, it is `slope`;
        # `mixed` / (2 lam) are the second derivatives in both.
        residual = (rows.t - centre.t) * counted
        curvature = (2 * lam * rows.t_variance / heat).clamp(min=_LEAST_CURVATURE / a)
        fixed = (centre.t * state.y + state.beta * centre.e).sum(dim=1) + point.force * problem.z
        square = rows.t_variance + rows.t.square()
        slope = (
            1
            - a * square.sum(dim=1)
            - fixed
            - rows.q_variance.sum(dim=1) / (4 * state.lam.square() * b)
        )
        mixed = (2 * lam * a * rows.t_square_covariance / heat - 2 * centre.t) * counted
        steps = self._solve(torch.stack([residual, mixed]), curvature, push, counted)
        along = 2 * lam * steps[0]
        mixed = mixed / (2 * lam)
        lam_curvature = (a**2 * rows.t_square_variance / heat).sum(dim=1)
        lam_curvature = lam_curvature + 2 * (centre.t * state.y).sum(dim=1).clamp(min=0) / state.lam
        left = lam_curvature - (mixed * steps[1]).sum(dim=1)
        left = torch.where(left > 0, left, lam_curvature.clamp(min=torch.finfo(lam.dtype).tiny))
        lam_step = -(slope + (mixed * along).sum(dim=1)) / left
        lam_step = lam_step.minimum(self._lam_share * state.lam).maximum(
            -0.7 * self._lam_share * state.lam
        )
        linear_step = along - steps[1] * lam_step.unsqueeze(1)

        spread = (linear_step.abs() * rows.t_variance.sqrt()).amax(dim=1) / temperature
        share = (longest / torch.maximum(spread, longest)).nan_to_num(0.0)
        linear = 2 * lam * state.y + (share.unsqueeze(1) * linear_step).nan_to_num(0.0, 0.0, 0.0)
        new_lam = state.lam + (share * lam_step).nan_to_num(0.0, 0.0, 0.0)
        beta = (0.5 * state.beta + 0.25 * rows.q / new_lam.unsqueeze(1)) * problem.pairs.coupled
        return _State(new_lam, linear / (2 * new_lam.unsqueeze(1)) * counted, beta)

    def _solve(
        self, sides: Float[Tensor, "sides w N"], curvature: Tensor, push: _Push, counted: Tensor
    ) -> Float[Tensor, "sides w N"]:
        """(S - h h^T / k + diag(curvature))^-1 sides, about; in float32, where the curvatures leave
        it room.

        With M = S + mean c, S M^-1 r = r - mean c M^-1 r: only the rows that do not count, whose
        part of M^-1 r is left out, need a product with S, with their rows of S.
        """
        precision = (
            torch.float32 if float(curvature.amax()) < _LARGEST_IN_FLOAT32 else torch.float64
        )
        size = sides.abs().amax(dim=-1, keepdim=True).clamp(min=torch.finfo(sides.dtype).tiny)
        sides, curvature, counted, h, k, spectrum, vectors, stiffness = (
            array.to(precision)
            for array in (
                sides / size,
                curvature,
                counted,
                push.h,
                push.k.unsqueeze(-1),
                self._spectrum,
                self._vectors,
                self._stiffness,
            )
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
                direction, stiff, energy = (
                    pointed + share * direction,
                    pushed + share * stiff,
                    new_energy,
                )
            pushed_back = ((direction * h).sum(dim=-1, keepdim=True) / k) * h
            image = (stiff - pushed_back + curvature * direction) * counted
            length = (direction * image).sum(dim=-1, keepdim=True)
            # A system that is solved leaves nothing to divide: the step is zero then.
            share = torch.where(length > 0, energy / length, torch.zeros_like(length))
            solution, left = solution + share * direction, left - share * image
        return solution.double() * size


def _moments(nodes: _Nodes, below: Tensor, temperature: Tensor, counted: Tensor) -> _Moments:
    """The moments, of h less its largest value."""
    weight = torch.softmax(below / temperature.to(below.dtype)[:, None, None], dim=-1)

    def mean(array: Tensor) -> Tensor:
        return (weight * array).sum(dim=-1).double() * counted

    square = nodes.t.square()
    t, t2, t3, t4, q, q2 = (
        mean(array)
        for array in (nodes.t, square, square * nodes.t, square * square, nodes.q, nodes.q.square())
    )
    return _Moments(
        t=t,
        t_variance=(t2 - t.square()).clamp(min=0),
        t_square_covariance=t3 - t * t2,
        t_square_variance=(t4 - t2.square()).clamp(min=0),
        q=q,
        q_variance=(q2 - q.square()).clamp(min=0),
    )


@dataclass(frozen=True)
class _Intervals:
    """The least bounds known on each interval between neighbouring places, before and after
    rounding outward.

    `searched` is the largest bound from multipliers optimised for their interval.
    """

    plain: Float[Tensor, "intervals w"]
    rounded: Float[Tensor, "intervals w"]
    searched: Float[Tensor, " w"]

    def of(self, words: Int[Tensor, " c"]) -> "_Intervals":
        return _Intervals(self.plain[:, words], self.rounded[:, words], self.searched[words])

    def take(self, interval: int, words: Int[Tensor, " c"], bounds: tuple[Tensor, Tensor]) -> None:
        """Replace the stored bounds of some words where these are smaller."""
        lower = bounds[1] < self.rounded[interval, words]
        for known, new in zip((self.plain, self.rounded), bounds, strict=True):
            known[interval, words] = torch.where(lower, new, known[interval, words])


def swept(
    text: AttentionText, search: MultiplierSearch, pairs: Pairs, row: SelfRow
) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
    """The Lagrangian's bounds over all z of some words' squared changes, before and after rounding
    outward."""
    unknown = torch.full((len(_PLACES) - 1, len(row.fixed)), torch.inf).to(row.fixed)
    intervals = _Intervals(unknown, unknown.clone(), torch.zeros_like(row.fixed))
    _Sweep(text, search, pairs, row).lower(intervals, _FIRST_TEMPERATURES, _NEXT_TEMPERATURES)
    # Where the search for multipliers went astray on some interval, search again, with more and
    # shorter steps.
    astray = intervals.searched > _DOUBTFUL * intervals.rounded[_FIRST]
    doubtful = (astray & (intervals.rounded.amax(dim=0) > 0)).nonzero().squeeze(1)
    if len(doubtful):
        again, other = (
            _Sweep(text, search.cautious(), pairs.of(doubtful), row.of(doubtful)),
            intervals.of(doubtful),
        )
        again.lower(other, _CAUTIOUS_FIRST_TEMPERATURES, _CAUTIOUS_NEXT_TEMPERATURES)
        intervals.plain[:, doubtful], intervals.rounded[:, doubtful] = other.plain, other.rounded
    return intervals.plain.amax(dim=0), intervals.rounded.amax(dim=0)


@dataclass(frozen=True)
class _End:
    """One end of an interval: its multipliers, the bound with them at its z, and that of row i."""

    by: Multipliers
    bound: Bound
    z: Float[Tensor, " w"]
    row: Float[Tensor, " w"] | None


class _Sweep:
    """Bounds over the intervals of z between neighbouring places, in units of the squared
    radius."""

    def __init__(self, text: AttentionText, search: MultiplierSearch, pairs: Pairs, row: SelfRow):
        self._text, self._search, self._pairs, self._row = text, search, pairs, row

    def lower(self, intervals: _Intervals, first: list[float], following: list[float]) -> None:
        """Bounds on every interval; the temperatures are those of the Newton steps.

        From the first place outward, to the right and to the left, the multipliers of the last
        place are improved for the next. Only the largest bound of all intervals counts: where the
        multipliers of a place, as they are, keep what is left on its side below the largest so far,
        nothing is improved there.
        """
        start = self._search.improve(
            self._pairs, self._search.start(self._pairs), self._z(_FIRST), first
        )
        everyone = torch.arange(len(self._row.fixed), device=start.lam.device)
        most = torch.zeros_like(self._row.fixed)
        for side in (range(_FIRST, len(_PLACES) - 1), range(_FIRST - 1, -1, -1)):
            sweep, state, words = self, start, everyone
            for done, interval in enumerate(side):
                left = side[done:]
                if done:
                    sweep._without_search(intervals, most, left, state, words)
                pending = (intervals.rounded[left][:, words] > most[words]).any(dim=0)
                if not bool(pending.all()):
                    chosen = pending.nonzero().squeeze(1)
                    sweep = _Sweep(
                        self._text, self._search, sweep._pairs.of(chosen), sweep._row.of(chosen)
                    )
                    state, words = state.of(chosen), words[chosen]
                if not len(words):
                    break
                state = sweep._step(
                    intervals, interval, state, words, following, leftward=side.step < 0
                )
                most[words] = torch.maximum(most[words], intervals.rounded[interval, words])

    def _step(
        self,
        intervals: _Intervals,
        interval: int,
        state: _State,
        words: Tensor,
        following: list[float],
        *,
        leftward: bool,
    ) -> _State:
        """The bound on an interval, from the state at one of its ends and that of the other, which
        is returned."""
        place = interval if leftward else interval + 1
        # Where z is +-1 nothing else can move: a neighbour's multipliers do, and there are none to
        # improve.
        inside = abs(_PLACES[place]) < 1
        new = (
            self._search.improve(self._pairs, state, self._z(place), following) if inside else state
        )
        nearest = _nearest(interval)
        states = (new, state) if leftward else (state, new)
        bounds = self._joined(
            *(self._end(interval + side, states[side], nearest) for side in (0, 1))
        )
        intervals.take(interval, words, bounds)
        intervals.searched[words] = torch.maximum(intervals.searched[words], bounds[1])
        return new

    def _without_search(
        self,
        intervals: _Intervals,
        most: Tensor,
        ahead: Sequence[int],
        state: _State,
        words: Tensor,
    ) -> None:
        """Bounds on the intervals with one state's multipliers, nearest first, while they serve
        half of the words."""
        ends, nearest = {}, _nearest(ahead[0])
        for interval in ahead:
            for place in (interval, interval + 1):
                if place not in ends:
                    ends[place] = self._end(place, state, nearest)
            intervals.take(interval, words, self._joined(ends[interval], ends[interval + 1]))
            if 2 * int((intervals.rounded[interval, words] > most[words]).sum()) > len(words):
                return

    def _end(self, place: int, state: _State, nearest: float) -> _End:
        """The end at a place of intervals that come no nearer to z = 0 than `nearest`."""
        z = self._z(place)
        by = self._search.multipliers(self._pairs, state, z)
        across = (1 - torch.full_like(z, nearest).square()).clamp(min=0).sqrt() * (1 + 1e-15)
        return _End(
            by,
            bound_at(self._text.geometry, self._pairs, by, z, across),
            z,
            self._row.at(z, across),
        )

    def _joined(self, left: _End, right: _End) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
        """The bound over z from one end to the other, before and after rounding outward."""
        rise = rise_between(left.by, left.z, right.by, right.z)
        size = torch.maximum(left.bound.size, right.bound.size)
        if self._text.lift is not None:
            # V (V^T x_i - o_j) as computed, in the terms q r_j . y.
            moved = (self._pairs.most_q * self._pairs.counted).sum(dim=1)
            terms = 1 + self._text.weights[0].norms.terms / sum(self._text.queries.shape)
            size = size + 4 * terms * self._text.lift_size * self._text.longest * moved
        plain = torch.maximum(left.bound.value, right.bound.value) + self._row.fixed
        if left.row is not None and right.row is not None:
            plain = torch.minimum(
                plain, torch.maximum(left.bound.value + left.row, right.bound.value + right.row)
            )
        plain = (plain + rise).clamp(min=0)
        # Multipliers that went astray give no bound.
        valid = plain.isfinite() & (left.by.lam > 0) & (right.by.lam > 0)
        plain = torch.where(valid, plain, torch.full_like(plain, torch.inf))
        roundings = rounding(4 * sum(self._text.geometry.queries.shape) + 200)
        rounded = plain * (1 + 1e-12) + roundings * (2 * size + self._row.fixed)
        return plain, torch.where(rounded.isfinite(), rounded, torch.full_like(rounded, torch.inf))

    def _z(self, place: int) -> Float[Tensor, " w"]:
        return torch.full_like(self._row.fixed, _PLACES[place])


def _nearest(interval: int) -> float:
    """How near an interval, and all that are farther out, come to 0."""
    low, high = _PLACES[interval], _PLACES[interval + 1]
    return 0.0 if low * high <= 0 else min(abs(low), abs(high))
