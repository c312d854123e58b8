"""One attention head: how the rows of a text become scores and values, and points from which a
search starts."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.maps.attention.scores import Score
from wordsens.search.objective import into_ball, unit


@dataclass(frozen=True)
class Sizes:
    """Bounds of the norms of a head's weights before they are divided by its scale, for what
    rounding may do to them.

    A W that was computed as W_Q W_K^T is off by at most gamma_terms ‖W_Q‖ ‖W_K‖: `matrix` is that
    product, of Frobenius norms, and so on.
    """

    matrix: float
    query_offset: float = 0.0
    key_offset: float = 0.0
    constant: float = 0.0
    value: float = 0.0
    value_bias: float = 0.0
    terms: int = 0


@dataclass(frozen=True)
class HeadWeights:
    """Row j scores row l as s_jl = (x_j W x_l + c . x_l + e . x_j + constant + bias_jl) / scale and
    takes V^T x_l + b.

    With W_Q, W_K and biases b_Q, b_K: W = W_Q W_K^T, c = W_K b_Q, e = W_Q b_K and constant = b_Q .
    b_K. When word i moves by Delta, s_ji moves by u_j . Delta, u_j = (W^T x_j + c) / scale, and its
    own s_il by k_l . Delta, k_l = (W x_l + e) / scale: biases and masks change these vectors and
    where the scores start, and nothing else.

    Attributes:
        matrix: W.
        scale: what the scores are divided by.
        query_offset, key_offset: c and e; None: zero.
        bias: of each pair of rows; -inf where row j does not see row l, whose weight is then zero;
            None: zero.
        value: V; None: the identity.
        value_bias: b; None: zero.
        sizes: for rounding; None: those of the weights as they are.
        span: (d, k), vectors that span all that the head sees of a row, where they are fewer than
            d; else None.
    """

    matrix: Float[Tensor, "d d"]
    scale: float = 1.0
    query_offset: Float[Tensor, " d"] | None = None
    key_offset: Float[Tensor, " d"] | None = None
    constant: float = 0.0
    bias: Float[Tensor, "n n"] | None = None
    value: Float[Tensor, "d m"] | None = None
    value_bias: Float[Tensor, " m"] | None = None
    span: Float[Tensor, "d k"] | None = None
    sizes: Sizes | None = None

    @property
    def symmetric(self) -> Float[Tensor, "d d"]:
        """(W + W^T) / scale."""
        return (self.matrix + self.matrix.mT) / self.scale

    @property
    def norms(self) -> Sizes:
        """The sizes, those that were given or those of the weights as they are."""
        if self.sizes is not None:
            return self.sizes
        parts = self.matrix, self.query_offset, self.key_offset, self.value, self.value_bias
        matrix, query, key, value, bias = (
            0.0 if part is None else float(torch.linalg.vector_norm(part)) for part in parts
        )
        return Sizes(matrix, query, key, abs(self.constant), value, bias)

    def in_units(self, unit: float, of_values: float) -> "HeadWeights":
        """For rows divided by `unit`: the same scores, with scale 1, and values divided by both
        units."""
        on_rows, per = unit / self.scale, 1 / self.scale
        factors = {
            "matrix": unit * on_rows,
            "query_offset": on_rows,
            "key_offset": on_rows,
            "constant": per,
            "bias": per,
            "value": 1 / of_values,
            "value_bias": 1 / (unit * of_values),
        }

        def times(thing: Any) -> dict[str, Any]:
            parts = {name: getattr(thing, name, None) for name in factors}
            return {name: part * factors[name] for name, part in parts.items() if part is not None}

        return replace(
            self, scale=1.0, sizes=replace(self.norms, **times(self.norms)), **times(self)
        )

    @property
    def steepest(self) -> float:
        """A bound of how fast a score moves with a word of length 1: W's Frobenius norm over the
        scale."""
        return float(torch.linalg.matrix_norm(self.matrix)) / self.scale

    def queries(self, rows: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        """The u_j."""
        return _shifted(rows @ self.matrix / self.scale, self.query_offset, self.scale)

    def keys(self, rows: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n d"]:
        """The k_l."""
        return _shifted(rows @ self.matrix.mT / self.scale, self.key_offset, self.scale)

    def scores(self, rows: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n n"]:
        """s_jl of all pairs of rows of a text."""
        return self.biased(self.scores_between(rows, rows))

    def biased(self, scores: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch n n"]:
        """The scores with the bias of their places."""
        return scores if self.bias is None else scores + self.bias / self.scale

    def scores_between(
        self, rows: Float[Tensor, "... m d"], others: Float[Tensor, "... n d"]
    ) -> Float[Tensor, "... m n"]:
        """s_jl of rows j and others l, but for the bias of their places; either may have a batch of
        its own."""
        scores = self.queries(rows) @ others.mT
        if self.key_offset is not None:
            scores = scores + (rows @ self.key_offset / self.scale).unsqueeze(-1)
        return scores if self.constant == 0 else scores + self.constant / self.scale

    def scores_with(
        self, rows: Float[Tensor, "n d"], others: Float[Tensor, "*batch m d"]
    ) -> Float[Tensor, "*batch m n"]:
        """s_jl of rows j and few others l, the others first: W meets the others alone."""
        scores = (others @ self.matrix.mT / self.scale) @ rows.mT
        if self.query_offset is not None:
            scores = scores + (others @ self.query_offset / self.scale).unsqueeze(-1)
        if self.key_offset is not None:
            scores = scores + rows @ self.key_offset / self.scale
        return scores if self.constant == 0 else scores + self.constant / self.scale

    def values(self, rows: Float[Tensor, "*batch n d"]) -> Float[Tensor, "*batch n m"]:
        """V^T x_l + b."""
        values = rows if self.value is None else rows @ self.value
        return values if self.value_bias is None else values + self.value_bias

    def value_change(self, delta: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch m"]:
        """V^T Delta, by which a value moves."""
        return delta if self.value is None else delta @ self.value

    def at_scale(self, factor: float) -> "HeadWeights":
        """At a temperature that is higher by the factor."""
        return replace(self, scale=self.scale * factor)

    def to(self, dtype: torch.dtype) -> "HeadWeights":
        """In another precision."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return replace(
            self,
            **{name: part.to(dtype) for name, part in parts.items() if isinstance(part, Tensor)},
        )

    def within(self, basis: Float[Tensor, "k d"]) -> "HeadWeights":
        """In the coordinates of an orthonormal basis of the span."""
        return replace(
            self,
            matrix=basis @ self.matrix @ basis.mT,
            query_offset=None if self.query_offset is None else basis @ self.query_offset,
            key_offset=None if self.key_offset is None else basis @ self.key_offset,
            value=basis if self.value is None else basis @ self.value,
            span=None,
        )


def _shifted(vectors: Tensor, offset: Tensor | None, scale: float) -> Tensor:
    return vectors if offset is None else vectors + offset / scale


# Of W + W^T: 6 found more than 1 or 3, and as much as 12 (n = 250, d = 768).
_EIGENVECTORS = 6


# How far the word's score with itself is raised, in radii; the farthest point along x_i that is
# tried; halvings.
_RAISED, _FARTHEST, _BISECTIONS = (0.25, 0.5, 0.8), 2.0, 7

# Steps to a point where a row's scores are negative, the first time and later; how far below zero
# they are led.
_FIRST, _NEXT, _MARGIN = 400, 100, 3e-4


class ScoredHead:
    """One attention head on one text, as far as a search's starts need it.

    Attributes:
        rows, weights: X, (n, d), and what the scores and values are made with.
        queries, keys: rows u_j = W^T x_j / scale and W x_l / scale, (n, d), with what biases add to
            them.
        symmetric: (W + W^T) / scale, (d, d).
        scores: (n, n), row first; -inf where a mask hides a word from a row.
    """

    def __init__(self, rows: Float[Tensor, "n d"], weights: HeadWeights):
        self.rows, self.weights, self.symmetric = rows, weights, weights.symmetric
        self.queries, self.keys = weights.queries(rows), weights.keys(rows)
        self.scores = weights.scores(rows)

    @property
    def score_sizes(self) -> Float[Tensor, " m"]:
        """|s_jl| of all scores but those that a mask hides."""
        return self.scores[self.scores != -torch.inf].abs()

    @cached_property
    def directions(self) -> Float[Tensor, "m d"]:
        """sum_j u_j, along which Theorem 3's witness lies, mixed with ± the top eigenvectors of W +
        W^T; both alone.

        The eigenvectors raise the changed word's score with itself fastest, which is what moves its
        own row.
        """
        top = torch.linalg.eigh(self.symmetric)[1].T.flip(0)[:_EIGENVECTORS]
        drawn, away = unit(self.queries.sum(dim=0)), unit(-self.keys.sum(dim=0))
        mixed = torch.stack([drawn + top, drawn - top], dim=1).flatten(end_dim=1)
        return unit(torch.cat([mixed, torch.stack([drawn, -drawn, top[0] + away, away - top[0]])]))


def attention_starts(
    heads: Sequence[ScoredHead],
    members: Int[Tensor, "w g"],
    radius: Float[Tensor, "w g"],
    score: Score | None = None,
) -> Float[Tensor, "count w g d"]:
    """Every head's `directions`, in units of the radii; a group's words take the same one together.

    Under a score that can leave a row to one word also points of `self_only_starts`, or of
    `focused_starts` where several words move.
    """
    emptied = score is not None and score.kinked and score.normalized
    directions = torch.cat([head.directions for head in heads])
    points = [directions[:, None, None].expand(-1, *members.shape, -1)]
    if emptied and members.shape[1] == 1:
        points += [
            self_only_starts(head, members[:, 0], radius[:, 0]).unsqueeze(2) for head in heads
        ]
    elif emptied:
        points += [
            focused_starts(head, members, target, radius) for head in heads for target in members.T
        ]
    return torch.cat(points)


def self_only_starts(
    head: ScoredHead, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
) -> Float[Tensor, "count w d"]:
    """Points, in units of radii, far along x_i, at which no score of the word's own row with
    another word is positive.

    The farthest such point is the nearest in the polyhedron {s_il + k_l . Delta <= 0, l != i} to r
    + zeta x_i for the zeta that brings it to the sphere, found by bisection; r raises the word's
    score with itself.
    """
    polyhedron = _Polyhedron.of_rows(head, words, words, radius)
    raised = unit(head.queries + head.keys)[words] * head.rows.new_tensor(_RAISED).view(-1, 1, 1)
    row_units = unit(head.rows)[words]
    low, high = torch.zeros_like(raised[..., :1]), torch.full_like(raised[..., :1], _FARTHEST)
    zeta, best, multipliers = low, raised, torch.zeros_like(raised @ head.keys.T)
    for halving in range(_BISECTIONS):
        nearest, multipliers = polyhedron.nearest(
            raised + zeta * row_units, multipliers, _FIRST if halving == 0 else _NEXT
        )
        inside = torch.linalg.vector_norm(nearest, dim=2, keepdim=True) <= 1
        best = torch.where(inside | (halving == 0), nearest, best)
        low, high = torch.where(inside, zeta, low), torch.where(inside, high, zeta)
        zeta = (low + high) / 2
    return into_ball(best)


def focused_starts(
    head: ScoredHead,
    groups: Int[Tensor, "w g"],
    target: Int[Tensor, " w"],
    radius: Float[Tensor, "w g"],
) -> Float[Tensor, "count w g d"]:
    """Points, in units of radii, at which all rows of a group attend to its `target`, whose own row
    is longest.

    The target moves along its row, Delta = x_t / ‖x_t‖. The others move to the points nearest to c
    k_t at which no score of their rows with any other word is positive.
    """
    words, aim = groups.flatten(), target.repeat_interleave(groups.shape[1])
    polyhedron = _Polyhedron.of_rows(head, words, aim, radius.flatten())
    raised = unit(head.keys)[aim] * head.rows.new_tensor(_RAISED).view(-1, 1, 1)
    nearest, _ = polyhedron.nearest(raised, torch.zeros_like(raised @ head.keys.T), _FIRST)
    return into_ball(
        torch.where((words == aim).unsqueeze(1), unit(head.rows)[words], nearest)
    ).unflatten(1, groups.shape)


class _Polyhedron:
    """All Delta with scores + K Delta <= 0; the rows of K have length 1, -inf stands where nothing
    is required."""

    @classmethod
    def of_rows(
        cls,
        head: ScoredHead,
        words: Int[Tensor, " w"],
        spared: Int[Tensor, " w"],
        radius: Float[Tensor, " w"],
    ) -> "_Polyhedron":
        """Where no score of each word's row is positive but that with its spared word, Delta in
        units of the radius."""
        length = torch.linalg.vector_norm(head.keys, dim=1).clamp(
            min=torch.finfo(head.keys.dtype).tiny
        )
        scores = head.scores[words] / length / radius.to(head.rows).unsqueeze(1) + _MARGIN
        return cls(
            head.keys / length.unsqueeze(1), scores.scatter(1, spared.unsqueeze(1), -torch.inf)
        )

    def __init__(self, keys: Float[Tensor, "m d"], scores: Float[Tensor, "w m"]):
        self._keys, self._scores, self._gram = keys, scores, keys @ keys.T
        self._step = 1 / torch.linalg.matrix_norm(keys, ord=2).square()

    def nearest(
        self, given: Float[Tensor, "c w d"], multipliers: Float[Tensor, "c w m"], steps: int
    ) -> tuple[Float[Tensor, "c w d"], Float[Tensor, "c w m"]]:
        """The points nearest to those given, z - K^T y, and their multipliers y >= 0, from those
        given on.

        y minimises y . K K^T y / 2 - y . (scores at z), by accelerated gradient steps that restart
        where they turn back (O'Donoghue and Candès 2015), O(c w m²) each; they end where no score
        is above half the margin.
        """
        wanted, ahead = self._scores + given @ self._keys.T, multipliers
        pace = torch.ones_like(wanted[..., :1])
        for step in range(steps):
            if step % 20 == 19 and bool((wanted - multipliers @ self._gram).amax() <= _MARGIN / 2):
                break
            moved = (ahead - self._step * (ahead @ self._gram - wanted)).clamp(min=0)
            back = ((ahead - moved) * (moved - multipliers)).sum(dim=-1, keepdim=True) > 0
            pace = pace.masked_fill(back, 1.0)
            faster = (1 + (1 + 4 * pace.square()).sqrt()) / 2
            ahead = moved + ((pace - 1) / faster).masked_fill(back, 0.0) * (moved - multipliers)
            multipliers, pace = moved, faster
        return given - multipliers @ self._keys, multipliers
