"""Optimal multipliers with one weight a row: an interior-point method for the bound with smoothed suprema.

With l_j = 2 lam (alpha_j - a_j t'_j), m_j = lam a_j, k_j = 2 lam (beta_j - b e'_j), g = 2 lam gamma, the bound is

    sum_j sup_t [base + q reach z + (q - k_j)²/(4 lam b) - l_j t - m_j t²]  +  lam + w . Q^-1 w / 4 - g z,
    w = sum_j (l_j u_j + k_j v_j) + g e,    Q = lam N - sum_j m_j u_j u_j^T,    N = I - b sum_j v_j v_j^T,

convex in (l, m, k, lam, g) where Q is positive definite: (4) of docs/theory/certificates-attention.md. Only the weights
must be verified: `bound_at` holds for any other multipliers.
"""

from copy import copy
from dataclasses import dataclass, fields, replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.attention.relaxation import Centre, Multipliers, Pairs
from wordsens.certificates.attention.text import LARGEST_WEIGHT, Geometry
from wordsens.certificates.base import UNIT_ROUNDOFF, rounding

_OUTPUT_SHARE = 0.08
"""Of the joint constraint, for the v_j: b ‖sum_j v_j v_j^T‖."""

_COOLING, _LOWERING = 0.8, 0.75
"""Factors of the temperature and of the barrier's weight from step to step."""

_HOT, _BARRIER = 0.6, 0.12
"""Their initial values, in units of the bound over the number of rows."""

_INSIDE = 0.9
"""The initial weights, as a share of those of the geometry."""

_SHARES = (1 - 1e-9, 1 - 1e-6, 0.999, 0.99, 0.9)
"""Factors of the weights: the first that passes verification is used; none if none does."""

_HALVINGS = 12
_RIDGE = 1e-9


@dataclass(frozen=True)
class Point:
    """l, m, k, lam and g (there eta) of (4) in docs/theory/certificates-attention.md; one row a word.

    Attributes:
        linear: l_j = 2 lam (alpha_j - a_j t'_j).
        hold: m_j = lam a_j; 0 for row i.
        outputs: k_j = 2 lam (beta_j - b e'_j).
        lam: lam > 0.
        push: g = 2 lam gamma.
    """

    linear: Float[Tensor, "w N"]
    hold: Float[Tensor, "w N"]
    outputs: Float[Tensor, "w N"]
    lam: Float[Tensor, " w"]
    push: Float[Tensor, " w"]

    def of(self, chosen: Int[Tensor, " c"]) -> "Point":
        """The multipliers of some of the words."""
        return Point(*(getattr(self, field.name)[chosen] for field in fields(self)))


def joined(points: list[Point]) -> Point:
    """The multipliers of several sets of words."""
    return Point(*(torch.cat([getattr(point, field.name) for point in points]) for field in fields(Point)))


def halfway(one: Point, other: Point) -> Point:
    """The mean of two points: inside, as they are."""
    return Point(*(0.5 * (getattr(one, field.name) + getattr(other, field.name)) for field in fields(Point)))


def moved(point: Point, towards: Point, share: Float[Tensor, " w"]) -> Point:
    """The point, moved by a share of a step."""
    parts = ((getattr(point, field.name), getattr(towards, field.name)) for field in fields(point))
    return Point(*(at + (share if at.ndim == 1 else share.unsqueeze(1)) * step for at, step in parts))


@dataclass(frozen=True)
class Ray:
    """Multipliers that are linear in z and have one lam and one set of weights."""

    at: Float[Tensor, " w"]
    start: Multipliers
    alpha: Float[Tensor, "w N"]
    beta: Float[Tensor, "w N"]
    gamma: Float[Tensor, " w"]

    def place(self, z: Float[Tensor, " w"]) -> Multipliers:
        """The multipliers whose centre has y' . e = z."""
        along = z - self.at
        return replace(
            self.start,
            alpha=self.start.alpha + along.unsqueeze(1) * self.alpha,
            beta=self.start.beta + along.unsqueeze(1) * self.beta,
            gamma=self.start.gamma + along * self.gamma,
        )


@dataclass(frozen=True)
class _Evaluated:
    """Quantities of a feasible point.

    Attributes:
        inverse: (w, N, N), M^(1/2) K^-1 M^(1/2), K = lam I - M^(1/2) G M^(1/2), G = U N^-1 U^T.
        shrunk: (w, N, N), K^-1.
        t, e, along: u_j . y, v_j . y and e . y, for y = Q^-1 w / 2.
        energy: w . Q^-1 w / 4.
    """

    inverse: Float[Tensor, "w N N"]
    shrunk: Float[Tensor, "w N N"]
    t: Float[Tensor, "w N"]
    e: Float[Tensor, "w N"]
    along: Float[Tensor, " w"]
    energy: Float[Tensor, " w"]


@dataclass(frozen=True)
class _Problem:
    """The smoothed bound at one z: its temperature, and the barrier's weight, for each word."""

    z: Float[Tensor, " w"]
    psi: Float[Tensor, "w N K"]
    heat: Float[Tensor, " w"]
    barrier: Float[Tensor, " w"]


@dataclass(frozen=True)
class _Rows:
    """Of every row's smoothed supremum: its derivatives in l, m, k and lam, and its second ones, one for each pair."""

    means: list[Float[Tensor, "w N"]]
    covariances: dict[tuple[int, int], Float[Tensor, "w N"]]


class InteriorPoint:
    """Newton steps for some words of a text. O(w N³) each; O(w N²) numbers of memory."""

    def __init__(self, geometry: Geometry, pairs: Pairs):
        self._geometry, self._pairs = geometry, pairs
        cross, offsets = geometry.cross_gram, geometry.offset_gram
        largest = float(torch.linalg.eigvalsh(offsets)[-1])
        self._b = min(_OUTPUT_SHARE / largest, LARGEST_WEIGHT) if largest > 0 else 1.0
        turned = torch.linalg.inv(torch.eye(len(offsets)).to(offsets) - self._b * offsets)
        # Inner products under N^-1 = I + b V^T (I - b V V^T)^-1 V.
        self._gram = geometry.query_gram + self._b * cross @ turned @ cross.mT
        self._cross, self._offset_gram = cross @ turned, turned @ offsets
        self._offset_e = pairs.along_offsets @ turned
        self._query_e = pairs.along_queries + self._b * self._offset_e @ cross.mT
        self._e_e = 1 + self._b * (pairs.along_offsets * self._offset_e).sum(dim=1)
        self._q = pairs.q * pairs.coupled.unsqueeze(-1)

    def of(self, chosen: Int[Tensor, " c"]) -> "InteriorPoint":
        """The same for some of the words."""
        other = copy(self)
        other._pairs = self._pairs.of(chosen)
        other._query_e, other._offset_e = self._query_e[chosen], self._offset_e[chosen]
        other._e_e, other._q = self._e_e[chosen], self._q[chosen]
        return other

    def point(self, by: Multipliers, centre: Centre) -> Point:
        """A point inside near multipliers of the geometry's own weights."""
        counted, lam = self._pairs.counted, by.lam.unsqueeze(1)
        return Point(
            linear=2 * lam * (by.alpha - by.a * centre.t) * counted,
            hold=_INSIDE * lam * by.a * counted,
            outputs=2 * lam * (by.beta - self._b * centre.e),
            lam=by.lam,
            push=2 * by.lam * by.gamma,
        )

    def improved(self, point: Point, z: Float[Tensor, " w"], steps: range) -> Point:
        """After Newton steps at these places of the schedule: 0 is the hottest."""
        across = (1 - z.square()).clamp(min=0).sqrt()
        psi = self._pairs.base + self._pairs.q * (self._pairs.reach * z.unsqueeze(1)).unsqueeze(-1)
        psi = psi + self._pairs.q.abs() * (self._pairs.crude * across.unsqueeze(1)).unsqueeze(-1)
        psi = psi * self._pairs.counted.unsqueeze(-1)
        sharp = _Problem(z, psi, torch.zeros_like(z), torch.zeros_like(z))
        unit = self._value(point, sharp) / self._pairs.counted.sum(dim=1).clamp(min=1)
        unit = torch.where(unit.isfinite() & (unit > 0), unit, 1.0)
        for step in steps:
            heat, barrier = unit * _HOT * _COOLING**step, unit * _BARRIER * _LOWERING**step
            point = self._stepped(point, replace(sharp, heat=heat, barrier=barrier))
        return point

    def ray(self, point: Point) -> "Ray":
        """The multipliers of a point as z goes from place to place, with weights that are verified."""
        lam, at = point.lam.unsqueeze(1), self._evaluate(point)
        drawn = _times(at.inverse, self._query_e)
        slope = 0.5 * (self._e_e + (self._query_e * drawn).sum(dim=1)) / point.lam  # of e . y in g
        # y, and with it t', e' and g, go along Q^-1 e.
        t, e = (
            0.5 * (direct + drawn @ through) / lam / slope.unsqueeze(1)
            for direct, through in ((self._query_e, self._gram), (self._offset_e, self._cross))
        )
        coupled = self._pairs.coupled
        a, b = self._verified(point.hold / lam)
        return Ray(
            at=at.along,
            start=Multipliers(
                lam=point.lam,
                alpha=(0.5 * point.linear + point.hold * at.t) / lam,
                beta=(0.5 * point.outputs / lam + self._b * at.e) * coupled,
                gamma=0.5 * point.push / point.lam,
                a=a,
                b=b,
            ),
            alpha=point.hold * t / lam,
            beta=self._b * e * coupled,
            gamma=0.5 / slope / point.lam,
        )

    def _verified(self, a: Float[Tensor, "w N"]) -> tuple[Float[Tensor, "w N"], Float[Tensor, "w 1"]]:
        """The weights, made smaller where the joint constraint would not be verified."""
        vectors = torch.cat([self._geometry.queries, self._geometry.offsets])
        a, b = a.clamp(min=0), a.new_full((len(a), 1), self._b)
        share, left = torch.full_like(b, torch.nan), torch.ones_like(b, dtype=torch.bool)
        for trial in _SHARES:
            roots = torch.cat([(trial * a).sqrt(), (trial * b).sqrt().expand(-1, a.shape[1])], dim=1)
            verified = at_most_one(vectors, roots).unsqueeze(1) & left
            share, left = torch.where(verified, trial * (1 - 1e-12), share), left & ~verified
            if not bool(left.any()):
                break
        return share * a, share * b

    def _weighted(self, point: Point) -> tuple[Float[Tensor, "w N"], Float[Tensor, "w N"], Float[Tensor, " w"]]:
        """u_j . N^-1 w, v_j . N^-1 w and e . N^-1 w."""
        push = point.push.unsqueeze(1)
        queries = point.linear @ self._gram + point.outputs @ self._cross.mT + push * self._query_e
        offsets = point.linear @ self._cross + point.outputs @ self._offset_gram + push * self._offset_e
        along = (point.linear * self._query_e + point.outputs * self._offset_e).sum(dim=1) + point.push * self._e_e
        return queries, offsets, along

    def _factor(self, point: Point) -> tuple[Float[Tensor, "w N N"], Bool[Tensor, " w"]]:
        """Cholesky's factor of K, and where the point is inside; of the others the factor is the identity."""
        roots = point.hold.clamp(min=0).sqrt()
        identity = torch.eye(roots.shape[1], dtype=roots.dtype, device=roots.device)
        kernel = point.lam[:, None, None] * identity - self._gram * roots.unsqueeze(2) * roots.unsqueeze(1)
        factor, info = torch.linalg.cholesky_ex(kernel)
        inside = (info == 0) & ((point.hold > 0) | (self._pairs.counted == 0)).all(dim=1)
        return torch.where(inside[:, None, None], factor, identity), inside

    def _value(self, point: Point, problem: _Problem) -> Float[Tensor, " w"]:
        """The smoothed bound with its barrier; infinite outside. At heat 0 the bound at the nodes."""
        factor, inside = self._factor(point)
        queries, offsets, along = self._weighted(point)
        whole = (point.linear * queries + point.outputs * offsets).sum(dim=1) + point.push * along
        part = torch.linalg.solve_triangular(
            factor, (point.hold.clamp(min=0).sqrt() * queries).unsqueeze(2), upper=False
        ).square()
        value = 0.25 * (whole + part.sum(dim=(1, 2))) / point.lam + point.lam - point.push * problem.z
        value = value + _smooth_suprema(self._heights(point, problem), problem.heat)
        counted = self._pairs.counted > 0
        logarithms = torch.where(counted, point.hold.clamp(min=torch.finfo(value.dtype).tiny).log(), 0.0).sum(dim=1)
        logarithms = logarithms + 2 * factor.diagonal(dim1=1, dim2=2).log().sum(dim=1)
        return torch.where(inside, value - problem.barrier * logarithms, torch.inf)

    def _heights(self, point: Point, problem: _Problem) -> Float[Tensor, "w N K"]:
        t, lam = self._pairs.t, point.lam[:, None, None]
        left = (self._q - point.outputs.unsqueeze(-1)).square() / (4 * self._b * lam)
        return problem.psi + left - t * (point.linear.unsqueeze(-1) + point.hold.unsqueeze(-1) * t)

    def _evaluate(self, point: Point) -> _Evaluated:
        factor, _ = self._factor(point)
        shrunk, roots = torch.cholesky_inverse(factor), point.hold.clamp(min=0).sqrt()
        inverse = shrunk * roots.unsqueeze(2) * roots.unsqueeze(1)
        queries, offsets, along = self._weighted(point)
        drawn, lam = _times(inverse, queries), point.lam.unsqueeze(1)
        t = 0.5 * (queries + drawn @ self._gram) / lam
        e = 0.5 * (offsets + drawn @ self._cross) / lam
        along = 0.5 * (along + (drawn * self._query_e).sum(dim=1)) / point.lam
        energy = 0.5 * ((point.linear * t + point.outputs * e).sum(dim=1) + point.push * along)
        return _Evaluated(inverse, shrunk, t, e, along, energy)

    def _stepped(self, point: Point, problem: _Problem) -> Point:
        """One Newton step, made shorter until it gains."""
        gradient, hessian = self._derivatives(point, problem)
        towards = _newton_step(gradient, hessian)
        slope = (gradient * towards).sum(dim=1)
        direction = _direction(towards)
        before, share = self._value(point, problem), torch.ones_like(slope)
        after = before
        for _ in range(_HALVINGS):
            after = self._value(moved(point, direction, share), problem)
            gains = after <= before + 0.1 * share * slope
            if bool(gains.all()):
                break
            share = torch.where(gains, share, 0.5 * share)
        return moved(point, direction, torch.where(after < before, share, 0.0))

    def _rows(self, point: Point, problem: _Problem) -> "_Rows":
        """Means and covariances over the nodes of each row, weighted by exp(heights / heat)."""
        heights, t, lam = self._heights(point, problem), self._pairs.t, point.lam.unsqueeze(1)
        weight = torch.softmax(heights / problem.heat[:, None, None], dim=-1)
        left = self._q - point.outputs.unsqueeze(-1)
        step = 2 * self._b * lam
        slopes = (-t, -t.square(), -left / step.unsqueeze(-1), -left.square() / (2 * step * lam).unsqueeze(-1))
        means = [(weight * slope).sum(dim=-1) for slope in slopes]
        centred = [slope - mean.unsqueeze(-1) for slope, mean in zip(slopes, means, strict=True)]
        heat = problem.heat.unsqueeze(1)
        covariances = {
            (one, other): (weight * centred[one] * centred[other]).sum(dim=-1) / heat
            for one in range(4)
            for other in range(one, 4)
        }
        # The heights themselves are curved in k and lam.
        covariances[2, 2] = covariances[2, 2] + 1 / step
        covariances[2, 3] = covariances[2, 3] - means[2] / lam
        covariances[3, 3] = covariances[3, 3] - 2 * means[3] / lam
        return _Rows(means, covariances)

    def _derivatives(self, point: Point, problem: _Problem) -> tuple[Float[Tensor, "w x"], Float[Tensor, "w x x"]]:
        """Gradient, and the upper half of the Hessian, in (m, lam, l, k, g); x = 3 N + 2."""
        rows, at, counted = self._rows(point, problem), self._evaluate(point), self._pairs.counted
        lam, t, barrier = point.lam.unsqueeze(1), at.t, problem.barrier.unsqueeze(1)
        size = t.shape[1]
        spread = torch.eye(size, dtype=t.dtype, device=t.device) + at.inverse @ self._gram
        spread = spread / lam.unsqueeze(2)  # U Q^-1 = spread^T U N^-1
        queries, crossed = self._gram @ spread, spread.mT @ self._cross  # U Q^-1 U^T, U Q^-1 V^T
        offsets = (self._offset_gram + self._cross.mT @ at.inverse @ self._cross) / lam.unsqueeze(2)  # V Q^-1 V^T
        pulled, drawn = _times(at.inverse, t), _times(at.inverse, self._query_e)
        squared = (at.energy + (point.hold * t.square()).sum(dim=1)) / point.lam  # y . N y
        diagonal, hold = queries.diagonal(dim1=1, dim2=2), torch.where(counted > 0, point.hold, 1.0)
        trace = at.shrunk.diagonal(dim1=1, dim2=2).sum(dim=1)
        gradient = torch.cat(
            [
                (t.square() + rows.means[1] + barrier * (diagonal - 1 / hold)) * counted,
                (1 - squared + rows.means[3].sum(dim=1) - problem.barrier * trace).unsqueeze(1),
                (t + rows.means[0]) * counted,
                at.e + rows.means[2],
                (at.along - problem.z).unsqueeze(1),
            ],
            dim=1,
        )
        hessian = t.new_zeros(len(t), 3 * size + 2, 3 * size + 2)
        m, linear, k = (slice(start, start + size) for start in (0, size + 1, 2 * size + 1))
        lam_at, tall = size, t.unsqueeze(2)
        hessian[:, m, m] = 2 * queries * tall * t.unsqueeze(1) + barrier.unsqueeze(2) * queries.square()
        hessian[:, m, linear] = queries * tall
        hessian[:, m, k] = tall * crossed
        hessian[:, linear, linear] = 0.5 * queries
        hessian[:, linear, k] = 0.5 * crossed
        hessian[:, k, k] = 0.5 * offsets
        blocks = {0: linear, 1: m, 2: k}
        for (one, other), covariance in rows.covariances.items():
            if other < 3:
                first, second = sorted((blocks[one], blocks[other]), key=lambda block: block.start)
                hessian[:, first, second].diagonal(dim1=1, dim2=2).add_(covariance)
        hessian[:, m, m].diagonal(dim1=1, dim2=2).add_(barrier / hold.square())
        along_t = (t + pulled @ self._gram) / lam
        hessian[:, m, lam_at] = rows.covariances[1, 3] - 2 * t * along_t - barrier * (spread * queries).sum(dim=1)
        hessian[:, lam_at, linear] = rows.covariances[0, 3] - along_t
        hessian[:, lam_at, k] = rows.covariances[2, 3] - (at.e + pulled @ self._cross) / lam
        hessian[:, lam_at, lam_at] = (
            rows.covariances[3, 3].sum(dim=1)
            + 2 * (squared + (t * pulled).sum(dim=1)) / point.lam
            + problem.barrier * at.shrunk.square().sum(dim=(1, 2))
        )
        along_e = (self._query_e + drawn @ self._gram) / lam
        hessian[:, m, -1] = t * along_e
        hessian[:, lam_at, -1] = -(at.along + (pulled * self._query_e).sum(dim=1)) / point.lam
        hessian[:, linear, -1] = 0.5 * along_e
        hessian[:, k, -1] = 0.5 * (self._offset_e + drawn @ self._cross) / lam
        hessian[:, -1, -1] = 0.5 * (self._e_e + (drawn * self._query_e).sum(dim=1)) / point.lam
        free = torch.ones_like(gradient)
        free[:, m] = free[:, linear] = counted
        hessian = hessian.mul_(free.unsqueeze(1)).mul_(free.unsqueeze(2))
        hessian.diagonal(dim1=1, dim2=2).add_(1 - free)
        return gradient, hessian


def _direction(towards: Float[Tensor, "w x"]) -> Point:
    """A step in (m, lam, l, k, g)."""
    size = towards.shape[1] // 3
    return Point(
        linear=towards[:, size + 1 : 2 * size + 1],
        hold=towards[:, :size],
        outputs=towards[:, 2 * size + 1 : -1],
        lam=towards[:, size],
        push=towards[:, -1],
    )


def _newton_step(gradient: Float[Tensor, "w x"], hessian: Float[Tensor, "w x x"]) -> Float[Tensor, "w x"]:
    """-H^-1 gradient, of a Hessian whose upper half is given; zero where it cannot be factored."""
    scale = hessian.diagonal(dim1=1, dim2=2).clamp(min=torch.finfo(gradient.dtype).tiny).rsqrt()
    scaled = hessian * scale.unsqueeze(1) * scale.unsqueeze(2)
    scaled = scaled + _RIDGE * torch.eye(scaled.shape[-1], dtype=scaled.dtype, device=scaled.device)
    factor, info = torch.linalg.cholesky_ex(scaled, upper=True)
    step = torch.cholesky_solve((gradient * scale).unsqueeze(2), factor, upper=True).squeeze(2) * scale
    return torch.where((info == 0).unsqueeze(1) & step.isfinite(), -step, 0.0)


def _smooth_suprema(heights: Float[Tensor, "w N K"], heat: Float[Tensor, " w"]) -> Float[Tensor, " w"]:
    """The sum over rows of heat log sum exp(heights / heat): the largest heights where heat is 0."""
    if not bool(heat.any()):
        return heights.amax(dim=-1).sum(dim=1)
    per = heat[:, None, None]
    return (torch.logsumexp(heights / per, dim=-1)).sum(dim=1) * heat


def _times(matrices: Float[Tensor, "w N N"], vectors: Float[Tensor, "w N"]) -> Float[Tensor, "w N"]:
    return (matrices @ vectors.unsqueeze(2)).squeeze(2)


def at_most_one(vectors: Float[Tensor, "m d"], roots: Float[Tensor, "w m"]) -> Bool[Tensor, " w"]:
    """True where ‖diag(roots) T‖_op <= 1 is verified, T the matrix of the vectors: as `gram_norm_bound` verifies."""
    count, d = vectors.shape
    few = count <= d
    gram = vectors @ vectors.mT
    scaled = (
        gram * roots.unsqueeze(2) * roots.unsqueeze(1) if few else vectors.mT @ (roots.square().unsqueeze(2) * vectors)
    )
    trace = scaled.diagonal(dim1=1, dim2=2).sum(dim=1)
    size = scaled.shape[-1]
    error = rounding(max(count, d) + 16) * trace * (1 + 1e-6) + 2 * rounding(size + 4) * (size + trace)
    room = (1 - error - 8 * UNIT_ROUNDOFF)[:, None, None] * torch.eye(size, dtype=scaled.dtype, device=scaled.device)
    finite = scaled.isfinite().all(dim=2).all(dim=1)
    factored = torch.linalg.cholesky_ex(torch.where(finite[:, None, None], room - scaled, 0.0)).info
    return finite & (factored == 0)
