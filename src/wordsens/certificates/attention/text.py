"""One text under attention, prepared for certificates: what does not depend on multipliers, in
float64.

Every head's scores, outputs and distances; the geometry that all words share; bounds of the
floating-point rounding in these numbers; and row i, whose query, key and value all move, apart from
the other rows (docs/proofs.md#the-row-of-the-changed-word).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.base import (
    UNIT_ROUNDOFF,
    gram_norm_bound,
    operator_norm,
    rounding,
)
from wordsens.maps.attention.head import HeadWeights
from wordsens.maps.attention.scores import Certified
from wordsens.maps.attention.scores.base import RowSteps

# Shares of the two families of directions in the joint constraint; the bound hardly depends on
# them.
_SCORE_SHARE, _OUTPUT_SHARE = 0.85, 0.15
_LARGEST_WEIGHT = 1e24
_LEAST_UNIT = 1e-30


@dataclass(frozen=True)
class Geometry:
    """N rows (n for each head) with u_j, along which row j's score moves, and v_j = centre - o_j.

    score_weight sum_j (u_j . y)² + output_weight sum_j (v_j . y)² <= ‖y‖² for every y: verified,
    rounding included.

    Attributes:
        speed: (N,), the units of the W^T x_j / scale: scores move by t_j times radius times these.
            One weight for all rows is then one for each, less where many of the others go the same
            way.
        fastest: at least the operator norm of all W^T x_j / scale together.
        queries: (N, d), u_j = W^T x_j / (scale speed_j).
        offsets: (N, d), v_j, times V where there is one; zeros for unnormalized scores.
        centre: (p,), the mean output; zero for unnormalized scores.
        query_gram, cross_gram, offset_gram: (N, N), u_j . u_l, u_j . v_l, v_j . v_l.
    """

    speed: Float[Tensor, " N"]
    fastest: float
    queries: Float[Tensor, "N d"]
    offsets: Float[Tensor, "N d"]
    centre: Float[Tensor, " p"]
    query_gram: Float[Tensor, "N N"]
    cross_gram: Float[Tensor, "N N"]
    offset_gram: Float[Tensor, "N N"]
    score_weight: float
    output_weight: float


def geometry_of(
    queries: Float[Tensor, "N d"],
    outputs: Float[Tensor, "N p"],
    lift: Float[Tensor, "d p"] | None,
    *,
    normalized: bool,
) -> Geometry:
    """The geometry of N rows with these u_j; the outputs enter where weights are `normalized`."""
    longest = float(torch.linalg.vector_norm(queries, dim=1).amax()) or 1.0
    queries = queries / longest
    # diag(1 / row sums of |U U^T|) <= (U U^T)^-1: Gershgorin. No unit is so small that a square
    # underflows.
    units = (queries @ queries.mT).abs().sum(dim=1).sqrt().clamp(min=_LEAST_UNIT)
    fastest = longest * operator_norm(queries)
    speed, queries = longest * units, queries / units.unsqueeze(1)
    if not normalized:
        centre, offsets = torch.zeros_like(outputs[0]), torch.zeros_like(queries)
    else:
        centre = outputs.mean(dim=0)
        offsets = centre - outputs if lift is None else (centre - outputs) @ lift.mT
    query_gram, offset_gram = queries @ queries.T, offsets @ offsets.T
    score_weight = _weight(query_gram, _SCORE_SHARE if normalized else 1.0)
    output_weight = _weight(offset_gram, _OUTPUT_SHARE)
    joint = operator_norm(torch.cat([queries * score_weight**0.5, offsets * output_weight**0.5]))
    # The square roots and products of what was stacked are rounded as well.
    joint = joint**2 * (1 + 1e-12) or 1.0
    return Geometry(
        speed=speed,
        fastest=fastest,
        queries=queries,
        offsets=offsets,
        centre=centre,
        query_gram=query_gram,
        cross_gram=queries @ offsets.T,
        offset_gram=offset_gram,
        score_weight=score_weight / joint,
        output_weight=output_weight / joint,
    )


def _weight(gram: Tensor, share: float) -> float:
    largest = float(torch.linalg.eigvalsh(gram)[-1])
    return (
        share / largest
        if largest > share / _LARGEST_WEIGHT
        else _LARGEST_WEIGHT
        if largest > 0
        else 1.0
    )


@dataclass(frozen=True)
class AttentionText:
    """N = heads * n rows; row h n + j is row j under head h.

    Attributes:
        rows: X, (n, d).
        weights: of every head; one head, where it has a value matrix.
        queries, keys: (N, d), the u_j and k_l.
        scores: (N, n); -inf where row j does not see word l.
        others: (N, n), entry (j, i) is what row j's scores but the i-th add up to
            (`Certified.others`).
        values: (n, p), V^T x_l: the rows, without a value matrix.
        outputs: (N, p), o_j.
        distances: (N, n), ‖V^T x_i - o_j‖ for normalized scores, ‖V^T x_i‖ for others.
        hidden: (N, n), True where row j does not see word l.
        lift: V, whose operator norm is at most 1; None: the identity.
        lift_size: the Frobenius norm of V, a unit for its rounding; 1 where there is none.
        heads: their number.
        longest: at least the length of every value, and of the sum of the terms' absolute values
            that make it up.
        value_error: of any value, at most; 0 for rows as they are.
    """

    rows: Float[Tensor, "n d"]
    weights: Sequence[HeadWeights]
    score: Certified
    queries: Float[Tensor, "N d"]
    keys: Float[Tensor, "N d"]
    scores: Float[Tensor, "N n"]
    others: Float[Tensor, "N n"]
    values: Float[Tensor, "n p"]
    outputs: Float[Tensor, "N p"]
    distances: Float[Tensor, "N n"]
    geometry: Geometry
    hidden: Bool[Tensor, "N n"]
    lift: Float[Tensor, "d p"] | None
    lift_size: float
    heads: int
    longest: float
    value_error: float

    def lifted(self, vectors: Float[Tensor, "*batch p"]) -> Float[Tensor, "*batch d"]:
        """V r for r among the values: V r . y = r . V^T y."""
        return vectors if self.lift is None else vectors @ self.lift.mT

    @cached_property
    def speeds(self) -> Float[Tensor, " N"]:
        """At least ‖W^T x_j‖ / scale: how fast the score of row j moves with the word."""
        lengths = self.geometry.query_gram.diagonal().clamp(min=0).sqrt()
        return lengths * self.geometry.speed * (1 + 1e-12)

    @cached_property
    def twist(self) -> Float[Tensor, " heads"]:
        """Upper bounds of |Delta^T W Delta| / (scale ‖Delta‖²) for each head."""
        norms = []
        for head in self.weights:
            size = gram_norm_bound(head.symmetric @ head.symmetric, inner=len(head.matrix)) ** 0.5
            norms.append(
                0.5 * size * (1 + 1e-12)
                + rounding(head.norms.terms + 8) * head.norms.matrix / head.scale
            )
        return self.rows.new_tensor(norms)

    def self_rows(self, words: Int[Tensor, " w"]) -> Int[Tensor, "heads w"]:
        """The indices, among the N rows, of the row i of some words i under each head."""
        n = len(self.rows)
        return words + n * torch.arange(self.heads, device=words.device).unsqueeze(1)


def attention_text(
    rows: Float[Tensor, "n d"], weights: Sequence[HeadWeights], score: Certified
) -> AttentionText:
    """Everything that does not depend on the word. O(heads (n d² + n² d)), plus eigenvalues of N x
    N matrices.

    A value matrix has an operator norm of at most 1, and then the head is alone.
    """
    queries, keys, scores = (
        torch.cat([getattr(head, name)(rows) for head in weights])
        for name in ("queries", "keys", "scores")
    )
    values, norms = weights[0].values(rows), weights[0].norms
    attention = score.attention(scores)
    outputs = attention @ values
    if not score.normalized:
        lengths = torch.linalg.vector_norm(values, dim=1)
        distances = lengths.expand(len(queries), -1)
    else:
        distances = torch.cdist(outputs, values, compute_mode="donot_use_mm_for_euclid_dist")
    longest, error = float(torch.linalg.vector_norm(rows, dim=1).max()), 0.0
    if weights[0].value is not None:
        longest = norms.value * longest
    if weights[0].value is not None or weights[0].value_bias is not None:
        longest += norms.value_bias
        error = 1.01 * rounding(rows.shape[1] + norms.terms + 16) * longest
    return AttentionText(
        rows=rows,
        weights=weights,
        score=score,
        queries=queries,
        keys=keys,
        scores=scores,
        others=score.others(scores, attention),
        values=values,
        outputs=outputs,
        distances=distances,
        geometry=geometry_of(queries, outputs, weights[0].value, normalized=score.normalized),
        hidden=scores == -torch.inf,
        lift=weights[0].value,
        lift_size=1.0 if weights[0].value is None else norms.value,
        heads=len(weights),
        longest=longest,
        value_error=error,
    )


def directions(
    text: AttentionText, words: Int[Tensor, " w"]
) -> tuple[Float[Tensor, "w d"], Float[Tensor, " w"]]:
    """Each word's unit vector along V (V^T x_i - centre), and the length of that."""
    away = text.lifted(text.values[words] - text.geometry.centre)
    length = torch.linalg.vector_norm(away, dim=1)
    return away / torch.where(length > 0, length, torch.ones_like(length)).unsqueeze(1), length


def apart_from(
    text: AttentionText,
    values: Float[Tensor, "n k"],
    word: Int[Tensor, " m"],
    row: Int[Tensor, " m"],
) -> Float[Tensor, "m k"]:
    """V^T x_i - m_ji, m_ji the output of row j without word i; for the pairs in which i has most of
    row j.

    The values may be in any coordinates."""
    without = text.score.attention_without(text.scores[row], word)
    # Differences first: the rows may be nearly parallel. A row of zeros, without word i, has output
    # zero.
    beside = torch.einsum("ml,mld->md", without, values - values[word].unsqueeze(1))
    left = 1 - without.sum(dim=1, keepdim=True)
    return left.where(left.abs() > 0.5, torch.zeros_like(left)) * values[word] - beside


@dataclass(frozen=True)
class RoundingErrors:
    """Bounds of |computed - exact|.

    Attributes:
        speed: (N,), of the length of u_j; key: likewise of the keys W x_l.
        score: (N,), of a score of row j.
        output: (N,), of the length of o_j.
        norm: a lower bound of ‖phi(X)‖; not positive where rounding hides it.
        longest: of the values; so large besides that 16 roundings of it cover the error of any
            value.
    """

    speed: Float[Tensor, " N"]
    key: Float[Tensor, " N"]
    score: Float[Tensor, " N"]
    output: Float[Tensor, " N"]
    norm: float
    longest: float


def rounding_errors(text: AttentionText) -> RoundingErrors:
    """By Higham's gamma_k times norms; the text and the weights count as exact."""
    n, d = text.rows.shape
    lengths = torch.linalg.vector_norm(text.rows, dim=1)
    farthest = float(lengths.max())
    speeds, keys, scores = [], [], []
    for head in text.weights:
        norms = head.norms
        once, twice = (1.01 * rounding(k * (d + norms.terms + 8)) / head.scale for k in (1, 2))
        fastest = norms.matrix * lengths + norms.query_offset
        speeds.append(once * fastest)
        keys.append(once * (norms.matrix * lengths + norms.key_offset))
        terms = farthest * fastest + norms.key_offset * lengths + norms.constant
        biases = 0.0 if head.bias is None else head.bias.nan_to_num(neginf=0.0).abs().amax(dim=1)
        scores.append(twice * terms + 8 * UNIT_ROUNDOFF * biases)
    speed, key, score = (torch.cat(part) for part in (speeds, keys, scores))
    score = score + 8 * UNIT_ROUNDOFF * text.scores.masked_fill(text.hidden, 0.0).abs().amax(dim=1)
    attention = text.score.attention(text.scores)
    lengths = torch.linalg.vector_norm(text.values, dim=1)
    moved = text.score.weight_errors(text.scores, attention, score.unsqueeze(1))
    output = moved @ lengths + rounding(n + 16) * (attention.abs() @ lengths)
    output = output + 1.01 * text.value_error * attention.abs().sum(dim=1)
    measured = float(torch.linalg.vector_norm(text.outputs)) * (
        1 - rounding(text.outputs.numel() + 8)
    )
    norm = measured - float(torch.linalg.vector_norm(output)) * (1 + 1e-9)
    longest = float(lengths.max()) + text.value_error / (16 * UNIT_ROUNDOFF)
    return RoundingErrors(
        speed=speed, key=key, score=score, output=output, norm=norm, longest=longest
    )


class SelfRow(NamedTuple):
    """Two bounds of the squared change of row i, over all heads, in units of the squared radius.

    Attributes:
        fixed: (w,), holds for every z.
        by_z: (4, heads, w), constant, along, across and far: the sum over heads of
            max(far, constant + 2 (along z + across sqrt(1 - z²))) holds at z; None for unnormalized
            scores.
    """

    fixed: Float[Tensor, " w"]
    by_z: Float[Tensor, "4 heads w"] | None = None

    def in_units(self, unit: Float[Tensor, " w"]) -> "SelfRow":
        """The same bounds in units of (radius unit)²."""
        share = unit.square()
        return SelfRow(self.fixed / share, None if self.by_z is None else self.by_z / share)

    def at(self, z: Float[Tensor, " w"], across: Float[Tensor, " w"]) -> Float[Tensor, " w"]:
        """The bound that depends on z, convex in z for a fixed bound `across` of sqrt(1 - z²);
        infinite without one."""
        if self.by_z is None:
            return torch.full_like(z, torch.inf)
        constant, along, aside, far = self.by_z
        return torch.maximum(far, constant + 2 * (along * z + aside * across)).sum(dim=0)


def self_row(
    text: AttentionText,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    direction: Float[Tensor, "w d"],
    errors: RoundingErrors,
) -> SelfRow:
    """The bounds of row i for some words i, rounding included.

    Normalized scores: the new output is a mean of the x_l, l != i, and of x_i + Delta (or zero, for
    relu), so its distance from o_i is at most the largest of theirs. Small radii: Lipschitz bounds
    of the weights.
    """
    rows = text.self_rows(words)
    itself = words.view(1, -1, 1).expand(text.heads, -1, 1)
    steps = self_steps(text, words, radius, errors)
    if not text.score.normalized:
        return SelfRow(_unnormalized(text, words, radius, steps).square().sum(dim=0))
    outputs = text.outputs[rows]
    error = errors.output[rows] + 16 * UNIT_ROUNDOFF * errors.longest
    distances = text.distances[rows] + error.unsqueeze(2)
    far = distances.masked_fill(text.hidden[rows], 0.0).scatter(2, itself, 0.0).amax(dim=2)
    if not text.score.sums_to_one:
        far = torch.maximum(far, torch.linalg.vector_norm(outputs, dim=2) + error)
    apart = text.values[words] - outputs
    lifted = text.lifted(apart)
    along = (lifted * direction).sum(dim=2)
    across = torch.linalg.vector_norm(lifted - along.unsqueeze(2) * direction, dim=2) + 2 * error
    after = steps.after.gather(2, itself).squeeze(2)
    lipschitz = (steps.change * distances).sum(dim=2) / radius + after
    far = far / radius
    length = (torch.linalg.vector_norm(apart, dim=2) + error) / radius
    farthest = torch.maximum(far, 1 + length)
    # Where a weight has no bound, the sum may be no number.
    nearest = torch.minimum(lipschitz.nan_to_num(torch.inf), farthest)
    constant = 1 + length.square() + 8 * text.value_error / radius
    by_z = torch.stack([constant, along / radius, across / radius, far.square()])
    return SelfRow(nearest.square().sum(dim=0), by_z)


def self_steps(
    text: AttentionText,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    errors: RoundingErrors,
) -> RowSteps:
    """What the weights of row i can do, from how far each of its scores can move."""
    rows = text.self_rows(words)
    speeds = torch.linalg.vector_norm(text.keys, dim=1) * (1 + 1e-12) + errors.key
    speeds = speeds.view(text.heads, 1, -1)
    # |change of the word's score with itself| <= ‖u_i + k_i‖ radius + ‖W + W^T‖/(2 scale) radius²
    tilt = torch.linalg.vector_norm(text.queries[rows] + text.keys[rows], dim=2)
    tilt = tilt + errors.speed[rows] + errors.key[rows]
    moved = radius * (tilt + radius * text.twist.unsqueeze(1)) * (1 + 1e-12)
    itself = words.view(1, -1, 1).expand(text.heads, -1, -1)
    moves = (radius.unsqueeze(1) * speeds).scatter(2, itself, moved.unsqueeze(2))
    moves = moves.masked_fill(text.hidden[rows], 0.0)
    return text.score.row_steps(text.scores[rows], moves, errors.score[rows].unsqueeze(2))


def _unnormalized(
    text: AttentionText, words: Int[Tensor, " w"], radius: Float[Tensor, " w"], steps: RowSteps
) -> Float[Tensor, "heads w"]:
    """(‖sum over l != i of (change of weight) v_l‖ + |change of weight i| ‖v_i‖ + |new weight i|
    radius) / radius.

    v_l = V^T x_l. The first term is at most ‖X V‖_op times the length of the weights' changes,
    which is at most the Lipschitz constant times ‖K‖_op radius, and at most the length of their
    largest changes.
    """
    itself = words.view(1, -1, 1).expand(text.heads, -1, 1)
    # Over the radius before anything is squared, which would underflow.
    change = steps.change / radius.unsqueeze(1)
    of_itself, after = (array.gather(2, itself).squeeze(2) for array in (change, steps.after))
    one_by_one = torch.linalg.vector_norm(change.scatter(2, itself, 0.0), dim=2)
    keys = text.keys.view(text.heads, *text.rows.shape)
    together = text.rows.new_tensor([operator_norm(head) for head in keys])
    spread = torch.minimum(one_by_one, text.score.lipschitz * together.unsqueeze(1))
    longest = operator_norm(text.values) + len(text.rows) * text.value_error
    length = torch.linalg.vector_norm(text.values[words], dim=1) + text.value_error
    return longest * spread + of_itself * length + after
