"""One text under attention, prepared for certificates: every head's scores, outputs and distances, in float64."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.attention.geometry import Geometry, geometry_of
from wordsens.certificates.attention.relaxation import Pairs
from wordsens.certificates.verified import rounding
from wordsens.maps.attention.scores import Certified
from wordsens.maps.attention.scores.bounds import Curve
from wordsens.maps.attention.weights import HeadWeights


@dataclass(frozen=True)
class _Separations:
    """The vectors r_j of `relaxation`, from the outputs to some words, split along each word's direction and across.

    Attributes:
        squares: (w, N), ‖r_j‖².
        reach: (w, N), V r_j . direction.
        crude: (w, N), a bound of the length of the rest, where that is not left to the offsets; else 0.
        counted: (w, N), 0 for row i of word i.
        coupled: (w, N), 1 where the offsets carry the rest.
        direction: (w, d).
    """

    squares: Float[Tensor, "w N"]
    reach: Float[Tensor, "w N"]
    crude: Float[Tensor, "w N"]
    counted: Float[Tensor, "w N"]
    coupled: Float[Tensor, "w N"]
    direction: Float[Tensor, "w d"]


@dataclass(frozen=True)
class AttentionText:
    """N = heads * n rows; row h n + j is row j under head h.

    Attributes:
        rows: X, (n, d).
        weights: of every head; one head, where it has a value matrix.
        queries, keys: (N, d), the u_j and k_l.
        scores: (N, n); -inf where row j does not see word l.
        others: (N, n), entry (j, i) is what row j's scores but the i-th add up to (`Certified.others`).
        values: (n, p), V^T x_l: the rows, without a value matrix.
        outputs: (N, p), o_j.
        distances: (N, n), ‖V^T x_i - o_j‖ for normalized scores, ‖V^T x_i‖ for others.
        longest: at least the length of every value, and of the sum of the terms' absolute values that make it up.
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
    longest: float
    value_error: float

    @property
    def heads(self) -> int:
        return len(self.weights)

    @property
    def lift(self) -> Float[Tensor, "d p"] | None:
        """V, whose operator norm is at most 1; None: the identity."""
        return self.weights[0].value

    @property
    def lift_size(self) -> float:
        """The Frobenius norm of V, a unit for its rounding; 1 where there is none."""
        return 1.0 if self.lift is None else self.weights[0].norms.value

    @property
    def lift_error(self) -> float:
        """A bound of the Frobenius norm of the rounding error of V."""
        return 0.0 if self.lift is None else rounding(self.weights[0].norms.terms + 16) * self.lift_size

    def lifted(self, vectors: Float[Tensor, "*batch p"]) -> Float[Tensor, "*batch d"]:
        """V r for r among the values: V r . y = r . V^T y."""
        return vectors if self.lift is None else vectors @ self.lift.mT

    @cached_property
    def hidden(self) -> Bool[Tensor, "N n"]:
        """True where row j does not see word l."""
        return self.scores == -torch.inf

    @cached_property
    def farthest(self) -> Float[Tensor, " N"]:
        """The largest distance of a row's output to the words that it sees."""
        return self.distances.masked_fill(self.hidden, 0.0).amax(dim=1)

    def own_rows(self, words: Int[Tensor, " w"]) -> Int[Tensor, "heads w"]:
        """The indices, among the N rows, of the words' own rows under each head."""
        n = len(self.rows)
        return words + n * torch.arange(self.heads, device=words.device).unsqueeze(1)


def attention_text(rows: Float[Tensor, "n d"], weights: Sequence[HeadWeights], score: Certified) -> AttentionText:
    """Everything that does not depend on the word. O(heads (n d² + n² d)), plus eigenvalues of N x N matrices.

    A value matrix has an operator norm of at most 1, and then the head is alone.
    """
    queries, keys, scores = (
        torch.cat([getattr(head, name)(rows) for head in weights]) for name in ("queries", "keys", "scores")
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
        geometry=geometry_of(queries, outputs, weights[0].value, divided=score.normalized),
        longest=longest,
        value_error=error,
    )


def directions(text: AttentionText, words: Int[Tensor, " w"]) -> tuple[Float[Tensor, "w d"], Float[Tensor, " w"]]:
    """Each word's unit vector along V (V^T x_i - centre), and the length of that."""
    away = text.lifted(text.values[words] - text.geometry.centre)
    length = torch.linalg.vector_norm(away, dim=1)
    return away / torch.where(length > 0, length, torch.ones_like(length)).unsqueeze(1), length


def pairs_of(
    text: AttentionText,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    own: Float[Tensor, " w"],
    fineness: int = 1,
) -> Pairs:
    """The pairs of some words with all rows; `own`, (w,), the size of the change of the words' own rows / radius.

    Curves have `fineness` times as many cells.
    """
    speeds = text.geometry.query_gram.diagonal().clamp(min=0).sqrt()
    reach = radius.unsqueeze(1) * text.geometry.speed * speeds * (1 + 1e-12)
    curve = text.score.curve(text.scores[:, words].T, text.others[:, words].T, reach, fineness)
    return _assemble(words, curve, radius, own, _separations(text, words, curve), text.geometry)


def _separations(text: AttentionText, words: Int[Tensor, " w"], curve: Curve) -> _Separations:
    direction, length = directions(text, words)
    squares = text.distances[:, words].T.square()
    reach = length.unsqueeze(1).expand_as(squares).clone()
    crude = torch.zeros_like(squares)
    coupled = torch.ones_like(squares) if text.score.normalized else torch.zeros_like(squares)
    if text.score.normalized:
        pair, row = curve.mostly.nonzero(as_tuple=True)
        if len(pair):
            apart = apart_from(text, text.values, words[pair], row)
            squares[pair, row] = apart.square().sum(dim=1)
            apart = text.lifted(apart)
            along = (apart * direction[pair]).sum(dim=1)
            reach[pair, row] = along
            crude[pair, row] = torch.linalg.vector_norm(apart - along.unsqueeze(1) * direction[pair], dim=1)
            coupled[pair, row] = 0.0

    counted = torch.ones_like(squares)
    counted[torch.arange(len(words), device=words.device).expand(text.heads, -1), text.own_rows(words)] = 0.0
    return _Separations(squares, reach, crude, counted, coupled * counted, direction)


def apart_from(
    text: AttentionText, values: Float[Tensor, "n k"], word: Int[Tensor, " m"], row: Int[Tensor, " m"]
) -> Float[Tensor, "m k"]:
    """V^T x_i - m_ji, m_ji the output of row j without word i; for the pairs in which i has most of row j.

    The values may be in any coordinates."""
    without = text.score.attention_without(text.scores[row], word)
    # Differences first: the rows may be nearly parallel. A row of zeros, without word i, has output zero.
    beside = torch.einsum("ml,mld->md", without, values - values[word].unsqueeze(1))
    left = 1 - without.sum(dim=1, keepdim=True)
    return left.where(left.abs() > 0.5, torch.zeros_like(left)) * values[word] - beside


def _assemble(
    words: Int[Tensor, " w"],
    curve: Curve,
    radius: Float[Tensor, " w"],
    own: Float[Tensor, " w"],
    apart: _Separations,
    geometry: Geometry,
) -> Pairs:
    squares, reach, counted = apart.squares, apart.reach, apart.counted
    per_t = (radius.unsqueeze(1) * geometry.speed).unsqueeze(2)
    t = curve.t / per_t
    longest = torch.maximum(squares.sqrt(), reach.abs())
    p, g = curve.p, curve.g / radius[:, None, None]
    worst = p.abs().amax(dim=-1) + g.abs().amax(dim=-1) * squares.sqrt()
    unit = torch.maximum((worst * counted).amax(dim=1), own)
    unit = torch.where((unit > 0) & unit.isfinite(), unit, torch.ones_like(unit))
    per = unit[:, None, None]
    p, g = p / per, g / per
    q = 2 * p * g
    base = p.square() + g.square() * squares.unsqueeze(-1)
    steep = 2 * curve.factor / radius.unsqueeze(1)
    sag = torch.minimum(
        2 * (reach.square() / torch.where(squares > 0, squares, torch.full_like(squares, 1e-300)) - 1),
        2 * steep * reach.abs() - 2,
    ).clamp(min=0)
    most_p = torch.maximum(p[..., 1:].abs(), p[..., :-1].abs())
    most_g = torch.maximum(g[..., 1:].abs(), g[..., :-1].abs())
    turn, slope = curve.turn / per, (curve.rise / per).square()
    climb = turn * (2 * most_p + (curve.before / unit.unsqueeze(1)).abs().unsqueeze(-1)) + 2 * slope
    climb = climb * steep.unsqueeze(-1)
    chord = 2 * turn * (most_p + most_g * longest.unsqueeze(-1))
    chord = chord * (1 + steep / 2 * longest).unsqueeze(-1)
    chord = chord + slope * sag.unsqueeze(-1) + climb * apart.crude.unsqueeze(-1)
    return Pairs(
        words=words,
        unit=unit,
        t=t,
        p=p,
        q=q,
        base=base,
        chord=chord,
        bend=climb * apart.coupled.unsqueeze(-1),
        widths=(t[..., 1:] - t[..., :-1]).square(),
        affine=slope if curve.affine else None,
        reach=reach,
        crude=apart.crude,
        coupled=apart.coupled,
        steep=steep,
        sag=sag,
        lengths=squares,
        most_q=q.abs().amax(dim=-1),
        most_g=g.abs().amax(dim=-1),
        counted=counted,
        along_queries=apart.direction @ geometry.queries.T,
        along_offsets=apart.direction @ geometry.offsets.T,
    )
