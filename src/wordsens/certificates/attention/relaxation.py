"""The Lagrangian bound: for any multipliers, no Delta of the ball makes a larger change than
`bound_at` returns.

Everything is in units of the radius: Delta = radius y with ‖y‖ <= 1, t_j = u_j . y, e_j = v_j . y,
z = direction . y. The change of row j, divided by the radius, is p y + g r_j, p and g depending on
t_j alone; its square is at most

    Psi_j = base + q (reach z + e_j) + crude |q|,     base = p² + ‖r_j‖² g², q = 2 p g.

For a centre y' = sum_j (alpha_j u_j + beta_j v_j) + gamma direction, t'_j = u_j . y', e'_j = v_j .
y', and lam > 0,

    0 <= lam (1 - ‖y‖²),    -‖y‖² <= ‖y'‖² - 2 y' . y - a sum_j (t_j - t'_j)² - b sum_j (e_j - e'_j)²,

a and b being the geometry's weights: (2) of docs/theory/certificates-attention.md. Adding lam (1 -
‖y‖²) and letting t_j and e_j vary freely gives the bound, (3).
"""  # noqa: E501

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention.text import (
    AttentionText,
    Geometry,
    RoundingErrors,
    apart_from,
    directions,
)
from wordsens.certificates.base import UNIT_ROUNDOFF
from wordsens.maps.attention.scores.base import HIGH_TAIL, LOW_TAIL, Curve, Rounding


@dataclass(frozen=True)
class Pairs:
    """Some words against all rows: what the bound needs of each pair. Word first; in units of the
    word's radius.

    t is in units of radius times the geometry's speed besides; p and g, and with them every change,
    in those of `unit`.

    Attributes:
        words: (w,), the words i.
        unit: (w,), about the largest change of a row, over the radius: no square overflows, and
            none that counts underflows.
        t, p, q, base: at the nodes of the curve.
        chord, bend: what the second-order bound on a cell takes for curvature times squared width
            (see _row_suprema).
        widths: squared widths of the cells.
        affine: likewise, for affine curves only.
        reach: (w, N), r_j . direction, the part of r_j . y that z carries.
        crude: (w, N), a bound of the length of the rest of r_j; zero where e_j carries the rest.
        coupled: (w, N), 1 where e_j carries the rest of r_j . y.
        steep: (w, N), 2 factor / radius: half of d²q/dp².
        sag: (w, N), how negative d²Psi/dp² can be without the coupled and crude parts.
        lengths: (w, N), ‖r_j‖².
        most_q, most_g: (w, N), the largest |q| and |g|.
        counted: (w, N), 0 for row i, which is bounded apart (`SelfRow`).
        along_queries, along_offsets: (w, N), u_j . direction and v_j . direction.
    """

    words: Int[Tensor, " w"]
    unit: Float[Tensor, " w"]
    t: Float[Tensor, "w N K"]
    p: Float[Tensor, "w N K"]
    q: Float[Tensor, "w N K"]
    base: Float[Tensor, "w N K"]
    chord: Float[Tensor, "w N cells"]
    bend: Float[Tensor, "w N cells"]
    widths: Float[Tensor, "w N cells"]
    affine: Float[Tensor, "w N cells"] | None
    reach: Float[Tensor, "w N"]
    crude: Float[Tensor, "w N"]
    coupled: Float[Tensor, "w N"]
    steep: Float[Tensor, "w N"]
    sag: Float[Tensor, "w N"]
    lengths: Float[Tensor, "w N"]
    most_q: Float[Tensor, "w N"]
    most_g: Float[Tensor, "w N"]
    counted: Float[Tensor, "w N"]
    along_queries: Float[Tensor, "w N"]
    along_offsets: Float[Tensor, "w N"]

    def of(self, chosen: Int[Tensor, " c"]) -> "Pairs":
        """The pairs of some of the words."""
        arrays: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self,
            **{name: array[chosen] for name, array in arrays.items() if isinstance(array, Tensor)},
        )

    def worst_apart(self) -> Float[Tensor, " w"]:
        """The sum over rows of the largest (|p| + |g| ‖r_j‖)²: holds for every z."""
        most = self.p.abs().amax(dim=-1) + self.most_g * self.lengths.sqrt()
        return (most.square() * self.counted).sum(dim=1)


def pairs_of(
    text: AttentionText,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    self_change: Float[Tensor, " w"],
) -> Pairs:
    """The pairs of some words i with all rows; `self_change`, (w,): the size of the change of row i
    over the radius."""
    speeds = text.geometry.query_gram.diagonal().clamp(min=0).sqrt()
    reach = radius.unsqueeze(1) * text.geometry.speed * speeds * (1 + 1e-12)
    curve = text.score.curve(text.scores[:, words].T, text.others[:, words].T, reach)
    apart = _separations(text, words, curve)
    squares, reach, counted = apart["lengths"], apart["reach"], apart["counted"]
    per_t = (radius.unsqueeze(1) * text.geometry.speed).unsqueeze(2)
    t = curve.t / per_t
    longest = torch.maximum(squares.sqrt(), reach.abs())
    p, g = curve.p, curve.g / radius[:, None, None]
    worst = p.abs().amax(dim=-1) + g.abs().amax(dim=-1) * squares.sqrt()
    unit = torch.maximum((worst * counted).amax(dim=1), self_change)
    unit = torch.where((unit > 0) & unit.isfinite(), unit, torch.ones_like(unit))
    per = unit[:, None, None]
    p, g = p / per, g / per
    q = 2 * p * g
    steep = 2 * curve.factor / radius.unsqueeze(1)
    sag = torch.minimum(
        2
        * (
            reach.square() / torch.where(squares > 0, squares, torch.full_like(squares, 1e-300)) - 1
        ),
        2 * steep * reach.abs() - 2,
    ).clamp(min=0)
    most_p = torch.maximum(p[..., 1:].abs(), p[..., :-1].abs())
    most_g = torch.maximum(g[..., 1:].abs(), g[..., :-1].abs())
    turn, slope = curve.turn / per, (curve.rise / per).square()
    climb = turn * (2 * most_p + (curve.before / unit.unsqueeze(1)).abs().unsqueeze(-1)) + 2 * slope
    climb = climb * steep.unsqueeze(-1)
    chord = 2 * turn * (most_p + most_g * longest.unsqueeze(-1))
    chord = chord * (1 + steep / 2 * longest).unsqueeze(-1)
    chord = chord + slope * sag.unsqueeze(-1) + climb * apart["crude"].unsqueeze(-1)
    return Pairs(
        words=words,
        unit=unit,
        t=t,
        p=p,
        q=q,
        base=p.square() + g.square() * squares.unsqueeze(-1),
        chord=chord,
        bend=climb * apart["coupled"].unsqueeze(-1),
        widths=(t[..., 1:] - t[..., :-1]).square(),
        affine=slope if curve.affine else None,
        steep=steep,
        sag=sag,
        most_q=q.abs().amax(dim=-1),
        most_g=g.abs().amax(dim=-1),
        **apart,
    )


def _separations(text: AttentionText, words: Int[Tensor, " w"], curve: Curve) -> dict[str, Tensor]:
    """The vectors r_j, from the outputs to some words, split along each word's direction and
    across: as in `Pairs`."""
    direction, length = directions(text, words)
    squares = text.distances[:, words].T.square()
    reach = length.unsqueeze(1).expand_as(squares).clone()
    crude = torch.zeros_like(squares)
    coupled = torch.ones_like(squares) if text.score.normalized else torch.zeros_like(squares)
    pair, row = curve.mostly.nonzero(as_tuple=True)
    if text.score.normalized and len(pair):
        apart = apart_from(text, text.values, words[pair], row)
        squares[pair, row] = apart.square().sum(dim=1)
        apart = text.lifted(apart)
        along = (apart * direction[pair]).sum(dim=1)
        reach[pair, row] = along
        crude[pair, row] = torch.linalg.vector_norm(
            apart - along.unsqueeze(1) * direction[pair], dim=1
        )
        coupled[pair, row] = 0.0
    counted = torch.ones_like(squares)
    counted[
        torch.arange(len(words), device=words.device).expand(text.heads, -1), text.self_rows(words)
    ] = 0.0
    return {
        "lengths": squares,
        "reach": reach,
        "crude": crude,
        "counted": counted,
        "coupled": coupled * counted,
        "along_queries": direction @ text.geometry.queries.T,
        "along_offsets": direction @ text.geometry.offsets.T,
    }


@dataclass(frozen=True)
class Multipliers:
    """lam (w,) > 0; alpha, beta (w, N), zero on row i; gamma (w,). Any values give a valid
    bound."""

    lam: Float[Tensor, " w"]
    alpha: Float[Tensor, "w N"]
    beta: Float[Tensor, "w N"]
    gamma: Float[Tensor, " w"]


@dataclass(frozen=True)
class Centre:
    """y' of some multipliers: t'_j, e'_j, ‖y'‖², and the sum of the lengths that make it up, for
    rounding errors."""

    t: Float[Tensor, "w N"]
    e: Float[Tensor, "w N"]
    squared: Float[Tensor, " w"]
    lengths: Float[Tensor, " w"]


def centre_of(geometry: Geometry, pairs: Pairs, by: Multipliers) -> Centre:
    alpha, beta, gamma = by.alpha, by.beta, by.gamma.unsqueeze(1)
    from_queries, from_offsets = alpha @ geometry.query_gram, beta @ geometry.cross_gram.T
    t = from_queries + from_offsets + gamma * pairs.along_queries
    turned = beta @ geometry.offset_gram
    e = alpha @ geometry.cross_gram + turned + gamma * pairs.along_offsets
    along = (alpha * pairs.along_queries + beta * pairs.along_offsets).sum(dim=1)
    squared = (alpha * (from_queries + 2 * from_offsets)).sum(dim=1) + (beta * turned).sum(dim=1)
    squared = squared + by.gamma * (2 * along + by.gamma)
    lengths = (
        alpha.abs() @ geometry.query_gram.diagonal().clamp(min=0).sqrt()
        + beta.abs() @ geometry.offset_gram.diagonal().clamp(min=0).sqrt()
        + by.gamma.abs()
    )
    return Centre(t, e, squared, lengths)


@dataclass(frozen=True)
class Forces:
    """The coefficients of h = base + q (linear + quadratic q) + |q| crude + t (pull - hold t) +
    constant."""

    linear: Float[Tensor, "w N"]
    quadratic: Float[Tensor, "w N"]
    pull: Float[Tensor, "w N"]
    hold: Float[Tensor, "w 1"]
    constant: Float[Tensor, "w N"]


def forces(
    geometry: Geometry, pairs: Pairs, by: Multipliers, centre: Centre, z: Float[Tensor, " w"]
) -> Forces:
    lam, a, b = by.lam.unsqueeze(1), geometry.score_weight, geometry.output_weight
    return Forces(
        linear=pairs.reach * z.unsqueeze(1) + pairs.coupled * (centre.e - by.beta / b),
        quadratic=pairs.coupled / (4 * lam * b),
        pull=2 * lam * (a * centre.t - by.alpha),
        hold=lam * a,
        constant=lam * (by.beta * (by.beta / b - 2 * centre.e) - a * centre.t.square()),
    )


@dataclass(frozen=True)
class Bound:
    """At one z: a bound of the sum of the rows' squared changes, and its terms' size."""

    value: Float[Tensor, " w"]
    size: Float[Tensor, " w"]


def bound_at(
    geometry: Geometry,
    pairs: Pairs,
    by: Multipliers,
    z: Float[Tensor, " w"],
    across: Float[Tensor, " w"],
) -> Bound:
    """The bound for perturbations with y . direction = z; `across` is at least sqrt(1 - z²)."""
    centre = centre_of(geometry, pairs, by)
    force = forces(geometry, pairs, by, centre, z)
    rows = _row_suprema(geometry, pairs, by, centre, force, across.unsqueeze(1), z)
    value = (rows * pairs.counted).sum(dim=1) + outside(pairs, by, centre, force, z)
    return Bound(value, _size_of_terms(geometry, pairs, by, centre, force))


def rise_between(
    left: Multipliers, left_z: Float[Tensor, " w"], right: Multipliers, right_z: Float[Tensor, " w"]
) -> Float[Tensor, " w"]:
    """The most by which the bound can exceed the larger of its values at two z, for all z between
    them.

    Let lam, lam a, lam b, 2 lam (alpha - a t'), 2 lam (beta - b e') and g = 2 lam gamma vary
    linearly in z from one end to the other. The bound is then convex in z, but for -g z.
    """
    push = 2 * (right.lam * right.gamma - left.lam * left.gamma)
    return 0.25 * (push * (right_z - left_z)).clamp(min=0) * (1 + 1e-12)


def outside(
    pairs: Pairs, by: Multipliers, centre: Centre, force: Forces, z: Tensor
) -> Float[Tensor, " w"]:
    """The part of the bound that no supremum is taken of."""
    return (force.constant * pairs.counted).sum(dim=1) + by.lam * (
        1 + centre.squared - 2 * by.gamma * z
    )


def _row_suprema(
    geometry: Geometry,
    pairs: Pairs,
    by: Multipliers,
    centre: Centre,
    force: Forces,
    across: Tensor,
    z: Tensor,
) -> Float[Tensor, "w N"]:
    """sup over |t| <= reach of h, for every pair: on each cell from its end values and a bound of
    its curvature.

    If h'' >= -c on a cell of width s, h stays below its chord plus c/2 (x - left)(right - x), whose
    maximum is the larger end plus max(0, c s²/2 - |difference of the ends|)² / (2 c s²).
    """
    psi = torch.addcmul(
        pairs.base,
        pairs.q,
        torch.addcmul(force.linear[..., None], pairs.q, force.quadratic[..., None]),
    )
    if bool(pairs.crude.any()):
        psi = psi + pairs.q.abs() * (pairs.crude * across).unsqueeze(-1)
    hold = force.hold.unsqueeze(-1)
    pulled = pairs.t * torch.addcmul(force.pull[..., None], pairs.t, hold, value=-1)
    h = psi + pulled
    lam, b = by.lam.unsqueeze(1), geometry.output_weight
    spread = pairs.coupled * (
        centre.e.abs() + (pairs.most_q + 2 * lam * by.beta.abs()) / (2 * lam * b)
    )
    curvature = torch.addcmul(pairs.chord, pairs.bend, spread.unsqueeze(-1)).addcmul_(
        pairs.widths, 2 * hold
    )
    if pairs.affine is not None:
        squares = 2 + pairs.steep * (
            2 * pairs.reach * z.unsqueeze(1) + pairs.steep / 2 * pairs.lengths
        )
        curvature = (curvature - pairs.affine * squares.unsqueeze(-1)).clamp_(min=0)
    jump = (h[..., 1:] - h[..., :-1]).abs_()
    above = (0.5 * curvature).sub_(jump).clamp_(min=0).square_()
    excess = above.div_(curvature.mul_(2).clamp_(min=torch.finfo(h.dtype).tiny))
    cells = torch.maximum(h[..., 1:], h[..., :-1]).add_(excess)
    for tail in (slice(0, LOW_TAIL + 1), slice(cells.shape[-1] - HIGH_TAIL, None)):
        cells[..., tail] = torch.minimum(
            cells[..., tail], _wide_cells(pairs, psi, force, spread, tail)
        )
    return cells.amax(dim=-1)


def _wide_cells(
    pairs: Pairs, psi: Tensor, force: Forces, spread: Tensor, cells: slice
) -> Float[Tensor, "w N picked"]:
    """sup Psi over the cell's p, plus sup of the parabola over its t: all it needs is that p does
    not fall."""
    left, right = (
        slice(cells.start + step, None if cells.stop is None else cells.stop + step)
        for step in (0, 1)
    )
    left = slice(left.start, psi.shape[-1] - 1 if left.stop is None else left.stop)
    rise = (pairs.p[..., right] - pairs.p[..., left]).square()
    sag = rise * ((2 * pairs.steep * (spread + pairs.crude) + pairs.sag) / 8).unsqueeze(-1)
    hold, pull = force.hold.unsqueeze(-1), force.pull.unsqueeze(-1)
    free = pull / (2 * hold).clamp(min=torch.finfo(hold.dtype).tiny)
    top = torch.maximum(torch.minimum(free, pairs.t[..., right]), pairs.t[..., left])
    return torch.maximum(psi[..., left], psi[..., right]) + sag + top * (pull - hold * top)


def _size_of_terms(
    geometry: Geometry, pairs: Pairs, by: Multipliers, centre: Centre, force: Forces
) -> Float[Tensor, " w"]:
    """The sum of the absolute values of all terms of the bound, each as large as it can be."""
    most_t = pairs.t[..., -1]
    lam, a, b = by.lam.unsqueeze(1), geometry.score_weight, geometry.output_weight
    rows = (
        pairs.base.amax(dim=-1)
        + pairs.most_q * (force.linear.abs() + pairs.crude + pairs.most_q * force.quadratic)
        + most_t * (force.pull.abs() + force.hold * most_t)
        + lam * (by.beta * (by.beta.abs() / b + 2 * centre.e.abs())).abs()
        + lam * a * centre.t.square()
    )
    # A relative error in the centre, whose terms may cancel, moves t'_j by ‖u_j‖ times it, e'_j by
    # ‖v_j‖ times it.
    queries, offsets = (
        gram.diagonal().clamp(min=0).sqrt() for gram in (geometry.query_gram, geometry.offset_gram)
    )
    moved = 2 * lam * a * (most_t + centre.t.abs()) * queries
    moved = moved + (pairs.most_q + 2 * lam * by.beta.abs()) * offsets
    return (
        (rows * pairs.counted).sum(dim=1)
        + by.lam * (1 + 2 * by.gamma.abs() + centre.lengths.square())
        + (moved * pairs.counted).sum(dim=1) * centre.lengths
    )


def row_errors(
    text: AttentionText, errors: RoundingErrors, pairs: Pairs, radius: Float[Tensor, " w"]
) -> Float[Tensor, " w"]:
    """A bound of the length, over all counted rows, of the error of their changes, in units of the
    radius.

    The change of row j is p Delta + g r_j, and its error at most
    |error of p| radius + |error of g| ‖r_j‖ + |g| ‖error of r_j‖.
    """
    per, unit = radius.unsqueeze(1), pairs.unit.unsqueeze(1)
    most_g = pairs.most_g * unit
    p_error, g_error = text.score.curve_errors(
        Rounding(
            before=text.scores[:, pairs.words].T,
            score=errors.score.unsqueeze(0),
            speed=errors.speed.unsqueeze(0),
            fastest=text.geometry.query_gram.diagonal().clamp(min=0).sqrt().unsqueeze(0)
            * text.geometry.speed,
            radius=per,
            most_p=pairs.p.abs().amax(dim=-1) * unit,
            most_g=most_g,
            factor=pairs.steep * per / 2,
            others=text.others[:, pairs.words].T,
            all_scores=text.scores,
            words=pairs.words,
        )
    )
    apart = (
        2 * errors.output if text.score.normalized else 0 * errors.output
    ) + 64 * UNIT_ROUNDOFF * errors.longest
    error = p_error + g_error * pairs.lengths.sqrt() + most_g * apart
    return torch.linalg.vector_norm(
        torch.where(pairs.counted > 0, error, torch.zeros_like(error)), dim=1
    )
