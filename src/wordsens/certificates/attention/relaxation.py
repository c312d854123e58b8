"""The Lagrangian bound: for any multipliers, no Delta of the ball makes a larger change than
`bound_at` returns.

Everything is in units of the radius: Delta = radius y with ‖y‖ <= 1, t_j = u_j . y, e_j = v_j . y,
z = direction . y. The change of row j, divided by the radius, is p y + g r_j, p and g depending on
t_j alone; its square is at most

    Psi_j = base + q (reach z + e_j) + crude |q|,     base = p² + ‖r_j‖² g², q = 2 p g.

For a centre y' = sum_j (alpha_j u_j + beta_j v_j) + gamma direction, t'_j = u_j . y', e'_j = v_j .
y', and lam > 0,

    0 <= lam (1 - ‖y‖²),    -‖y‖² <= ‖y'‖² - 2 y' . y - a sum_j (t_j - t'_j)² - b sum_j (e_j - e'_j)²,

a and b being the geometry's weights: the joint constraint of docs/proofs.md#rows-jointly. Adding
lam (1 - ‖y‖²) and letting t_j and e_j vary freely gives the bound, (3).
"""  # noqa: E501

from dataclasses import dataclass, is_dataclass, replace
from typing import Any, NamedTuple

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
from wordsens.maps.attention.scores.base import Curve, Rounding


@dataclass(frozen=True)
class Pairs:
    """Some words against all rows: what the bound needs of each pair. Word first; in units of the
    word's radius.

    t is in units of radius times the geometry's speed besides; p and g, and with them every change,
    in those of `unit`.

    Attributes:
        words: (w,), the words i.
        radius: (w,), of their balls.
        curve: p and g of every pair, in no units.
        unit: (w,), about the largest change of a row, over the radius: no square overflows, and
            none that counts underflows.
        t, q, base: at the nodes of the curve.
        chord, bend: what the second-order bound on a cell takes for curvature times squared width
            (see _row_suprema).
        sag, lean: what the bound by p alone takes of a cell likewise.
        reach: (w, N), r_j . direction, the part of r_j . y that z carries.
        crude: (w, N), a bound of the length of the rest of r_j; zero where e_j carries the rest.
        coupled: (w, N), 1 where e_j carries the rest of r_j . y.
        squares: (w, N), ‖r_j‖².
        worst: (w, N), the largest |p| + |g| ‖r_j‖.
        counted: (w, N), 0 for row i, which is bounded apart (`SelfRow`).
        along_queries, along_offsets: (w, N), u_j . direction and v_j . direction.
    """

    words: Int[Tensor, " w"]
    radius: Float[Tensor, " w"]
    curve: Curve
    unit: Float[Tensor, " w"]
    t: Float[Tensor, "w N K"]
    q: Float[Tensor, "w N K"]
    base: Float[Tensor, "w N K"]
    chord: Float[Tensor, "w N cells"]
    bend: Float[Tensor, "w N cells"]
    sag: Float[Tensor, "w N cells"]
    lean: Float[Tensor, "w N cells"]
    reach: Float[Tensor, "w N"]
    crude: Float[Tensor, "w N"]
    coupled: Float[Tensor, "w N"]
    squares: Float[Tensor, "w N"]
    worst: Float[Tensor, "w N"]
    counted: Float[Tensor, "w N"]
    along_queries: Float[Tensor, "w N"]
    along_offsets: Float[Tensor, "w N"]


def of_words(record: Any, chosen: Int[Tensor, " c"]) -> Any:
    """A dataclass of arrays, word first, for some of the words."""
    parts: dict[str, Any] = {
        name: of_words(part, chosen) if is_dataclass(part) else part[chosen]
        for name, part in vars(record).items()
        if part is not None
    }
    return replace(record, **parts)


def pairs_of(
    text: AttentionText,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    self_change: Float[Tensor, " w"],
) -> Pairs:
    """The pairs of some words i with all rows; `self_change`, (w,): the size of the change of row i
    over the radius."""
    fastest = radius.unsqueeze(1) * text.speeds
    curve = text.score.curve(text.scores[:, words].T, text.others[:, words].T, fastest)
    apart = _separations(text, words, curve)
    squares, reach, counted = apart["squares"], apart["reach"], apart["counted"]
    lengths = squares.sqrt()
    p, g = curve.p, curve.g / radius[:, None, None]
    worst = p.abs().amax(dim=-1) + g.abs().amax(dim=-1) * lengths
    unit = torch.maximum((worst * counted).amax(dim=1), self_change)
    unit = torch.where((unit > 0) & unit.isfinite(), unit, torch.ones_like(unit))
    per = unit[:, None, None]
    p, g = p / per, g / per

    # Half of d²q/dp², and how negative d²Psi/dp² can be without the coupled and crude parts.
    steep = 2 * curve.factor / radius.unsqueeze(1)
    stretched = reach.square() / torch.where(squares > 0, squares, 1e-300)
    sag = torch.minimum(2 * (stretched - 1), 2 * steep * reach.abs() - 2).clamp(min=0)
    longest = torch.maximum(lengths, reach.abs())
    most_p = torch.maximum(p[..., 1:].abs(), p[..., :-1].abs())
    most_g = torch.maximum(g[..., 1:].abs(), g[..., :-1].abs())
    turn, slope = curve.turn / per, (curve.rise / per).square()
    before = (curve.before / unit.unsqueeze(1)).abs().unsqueeze(-1)
    climb = steep.unsqueeze(-1) * (turn * (2 * most_p + before) + 2 * slope)
    chord = 2 * turn * (most_p + most_g * longest.unsqueeze(-1))
    chord = chord * (1 + steep / 2 * longest).unsqueeze(-1)
    chord = chord + slope * sag.unsqueeze(-1) + climb * apart["crude"].unsqueeze(-1)
    rise = (p[..., 1:] - p[..., :-1]).square() / 8
    return Pairs(
        words=words,
        radius=radius,
        curve=curve,
        unit=unit,
        t=curve.t / (radius.unsqueeze(1) * text.geometry.speed).unsqueeze(2),
        q=2 * p * g,
        base=p.square() + g.square() * squares.unsqueeze(-1),
        chord=chord,
        bend=climb * apart["coupled"].unsqueeze(-1),
        sag=rise * (2 * steep * apart["crude"] + sag).unsqueeze(-1),
        lean=rise * (2 * steep * apart["coupled"]).unsqueeze(-1),
        worst=worst / unit.unsqueeze(1),
        **apart,
    )


def _separations(text: AttentionText, words: Int[Tensor, " w"], curve: Curve) -> dict[str, Tensor]:
    """The vectors r_j, from the outputs to some words, split along each word's direction and
    across: as in `Pairs`."""
    direction, length = directions(text, words)
    squares = text.distances[:, words].T.square()
    reach = length.unsqueeze(1).expand_as(squares).clone()
    crude = torch.zeros_like(squares)
    counted = torch.ones_like(squares).scatter(1, text.self_rows(words).T, 0.0)
    coupled = counted.clone() if text.score.normalized else torch.zeros_like(squares)
    pair, row = curve.mostly.nonzero(as_tuple=True)
    if text.score.normalized and len(pair):
        apart = apart_from(text, text.values, words[pair], row)
        squares[pair, row] = apart.square().sum(dim=1)
        apart = text.lifted(apart)
        along = (apart * direction[pair]).sum(dim=1)
        reach[pair, row] = along
        across = apart - along.unsqueeze(1) * direction[pair]
        crude[pair, row] = torch.linalg.vector_norm(across, dim=1)
        coupled[pair, row] = 0.0
    return {
        "squares": squares,
        "reach": reach,
        "crude": crude,
        "counted": counted,
        "coupled": coupled,
        "along_queries": direction @ text.geometry.queries.T,
        "along_offsets": direction @ text.geometry.offsets.T,
    }


class Multipliers(NamedTuple):
    """lam (w,) > 0; alpha, beta (w, N), zero on row i; gamma (w,). Any values give a valid
    bound."""

    lam: Float[Tensor, " w"]
    alpha: Float[Tensor, "w N"]
    beta: Float[Tensor, "w N"]
    gamma: Float[Tensor, " w"]


class Forces(NamedTuple):
    """The bound with some multipliers at one z: the sum over rows of the suprema over t of

        h = base + q (linear + quadratic q) + |q| crude + t (pull - hold t),

    plus `outside`. `t` and `e` are the centre's t'_j and e'_j. The centre is a sum of vectors;
    `lengths` is the sum of their lengths, which bounds its rounding error.
    """

    t: Float[Tensor, "w N"]
    e: Float[Tensor, "w N"]
    lengths: Float[Tensor, " w"]
    linear: Float[Tensor, "w N"]
    quadratic: Float[Tensor, "w N"]
    pull: Float[Tensor, "w N"]
    hold: Float[Tensor, "w 1"]
    outside: Float[Tensor, " w"]


def forces(geometry: Geometry, pairs: Pairs, by: Multipliers, z: Float[Tensor, " w"]) -> Forces:
    alpha, beta, gamma, lam = by.alpha, by.beta, by.gamma.unsqueeze(1), by.lam.unsqueeze(1)
    a, b = geometry.score_weight, geometry.output_weight
    from_queries, from_offsets = alpha @ geometry.query_gram, beta @ geometry.cross_gram.T
    t = from_queries + from_offsets + gamma * pairs.along_queries
    turned = beta @ geometry.offset_gram
    e = alpha @ geometry.cross_gram + turned + gamma * pairs.along_offsets
    along = (alpha * pairs.along_queries + beta * pairs.along_offsets).sum(dim=1)
    squared = (alpha * (from_queries + 2 * from_offsets)).sum(dim=1) + (beta * turned).sum(dim=1)
    squared = squared + by.gamma * (2 * along + by.gamma)
    lengths = alpha.abs() @ geometry.query_gram.diagonal().clamp(min=0).sqrt()
    lengths = lengths + beta.abs() @ geometry.offset_gram.diagonal().clamp(min=0).sqrt()
    constant = lam * (beta * (beta / b - 2 * e) - a * t.square()) * pairs.counted
    return Forces(
        t=t,
        e=e,
        lengths=lengths + by.gamma.abs(),
        linear=pairs.reach * z.unsqueeze(1) + pairs.coupled * (e - beta / b),
        quadratic=pairs.coupled / (4 * lam * b),
        pull=2 * lam * (a * t - alpha),
        hold=lam * a,
        outside=constant.sum(dim=1) + by.lam * (1 + squared - 2 * by.gamma * z),
    )


def bound_at(
    geometry: Geometry,
    pairs: Pairs,
    by: Multipliers,
    z: Float[Tensor, " w"],
    across: Float[Tensor, " w"],
) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
    """For perturbations with y . direction = z: an upper bound of the sum of the rows' squared
    changes, (w,), and the sum of its terms' absolute values, (w,), from which its rounding error
    follows. `across` is at least sqrt(1 - z²)."""
    force = forces(geometry, pairs, by, z)
    rows = _row_suprema(geometry, pairs, by, force, across)
    value = (rows * pairs.counted).sum(dim=1) + force.outside
    return value, _size_of_terms(geometry, pairs, by, force)


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


def _row_suprema(
    geometry: Geometry, pairs: Pairs, by: Multipliers, force: Forces, across: Float[Tensor, " w"]
) -> Float[Tensor, "w N"]:
    """sup over |t| <= reach of h, for every pair: on each cell from its end values and a bound of
    its curvature.

    If h'' >= -c on a cell of width s, h stays below its chord plus c/2 (x - left)(right - x), whose
    maximum is the larger end plus max(0, c s²/2 - |difference of the ends|)² / (2 c s²). Where p is
    steep: sup Psi over the cell's p, plus sup of the parabola over its t; all that this needs is
    that p does not fall.
    """
    t, q, hold, pull = pairs.t, pairs.q, force.hold.unsqueeze(-1), force.pull.unsqueeze(-1)
    crude = (pairs.crude * across.unsqueeze(1)).unsqueeze(-1)
    psi = torch.addcmul(
        pairs.base, q, torch.addcmul(force.linear[..., None], q, force.quadratic[..., None])
    )
    psi.addcmul_(q.abs(), crude)
    h = torch.addcmul(psi, t, torch.addcmul(pull, t, hold, value=-1))
    lam, b = by.lam.unsqueeze(1), geometry.output_weight
    most_q = q.abs().amax(dim=-1)
    spread = force.e.abs() + (most_q + 2 * lam * by.beta.abs()) / (2 * lam * b)
    widths = t[..., 1:] - t[..., :-1]
    curvature = torch.addcmul(pairs.chord, pairs.bend, spread.unsqueeze(-1))
    curvature.addcmul_(widths.square(), 2 * hold)
    jump = (h[..., 1:] - h[..., :-1]).abs_()
    above = (0.5 * curvature).sub_(jump).clamp_(min=0).square_()
    excess = above.div_(curvature.mul_(2).clamp_(min=torch.finfo(h.dtype).tiny))
    cells = torch.maximum(h[..., 1:], h[..., :-1]).add_(excess)
    free = pull / (2 * hold).clamp(min=torch.finfo(h.dtype).tiny)
    top = torch.maximum(torch.minimum(free, t[..., 1:]), t[..., :-1])
    by_p = torch.addcmul(pairs.sag, pairs.lean, spread.unsqueeze(-1))
    by_p.add_(torch.maximum(psi[..., 1:], psi[..., :-1])).addcmul_(top, pull - hold * top)
    return torch.minimum(cells, by_p).amax(dim=-1)


def _size_of_terms(
    geometry: Geometry, pairs: Pairs, by: Multipliers, force: Forces
) -> Float[Tensor, " w"]:
    """The sum of the absolute values of all terms of the bound, each as large as it can be."""
    most_t, most_q = pairs.t[..., -1], pairs.q.abs().amax(dim=-1)
    lam, a, b = by.lam.unsqueeze(1), geometry.score_weight, geometry.output_weight
    rows = (
        pairs.base.amax(dim=-1)
        + most_q * (force.linear.abs() + pairs.crude + most_q * force.quadratic)
        + most_t * (force.pull.abs() + force.hold * most_t)
        + lam * (by.beta * (by.beta.abs() / b + 2 * force.e.abs())).abs()
        + lam * a * force.t.square()
    )
    # A relative error in the centre, whose terms may cancel, moves t'_j by ‖u_j‖ times it, e'_j by
    # ‖v_j‖ times it.
    queries, offsets = (
        gram.diagonal().clamp(min=0).sqrt() for gram in (geometry.query_gram, geometry.offset_gram)
    )
    moved = 2 * lam * a * (most_t + force.t.abs()) * queries
    moved = moved + (most_q + 2 * lam * by.beta.abs()) * offsets
    return (
        (rows * pairs.counted).sum(dim=1)
        + by.lam * (1 + 2 * by.gamma.abs() + force.lengths.square())
        + (moved * pairs.counted).sum(dim=1) * force.lengths
    )


def row_errors(text: AttentionText, errors: RoundingErrors, pairs: Pairs) -> Float[Tensor, " w"]:
    """A bound of the length, over all counted rows, of the error of their changes, in units of the
    radius.

    The change of row j is p Delta + g r_j, and its error at most
    |error of p| radius + |error of g| ‖r_j‖ + |g| ‖error of r_j‖.
    """
    curve, radius = pairs.curve, pairs.radius.unsqueeze(1)
    most_g = curve.g.abs().amax(dim=-1) / radius
    p_error, g_error = text.score.curve_errors(
        Rounding(
            before=text.scores[:, pairs.words].T,
            score=errors.score.unsqueeze(0),
            speed=errors.speed.unsqueeze(0),
            fastest=text.speeds.unsqueeze(0),
            radius=radius,
            most_p=curve.p.abs().amax(dim=-1),
            most_g=most_g,
            factor=curve.factor,
            others=text.others[:, pairs.words].T,
            all_scores=text.scores,
            words=pairs.words,
        )
    )
    apart = 64 * UNIT_ROUNDOFF * errors.longest
    if text.score.normalized:
        apart = apart + 2 * errors.output
    error = p_error + g_error * pairs.squares.sqrt() + most_g * apart
    return torch.linalg.vector_norm(torch.where(pairs.counted > 0, error, 0.0), dim=1)
