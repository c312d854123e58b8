"""Row i to first order: a linear map of the perturbation, and a bound of the remainder."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention.coordinates import Coordinates
from wordsens.certificates.attention.rounding import RoundingErrors
from wordsens.certificates.attention.text import AttentionText
from wordsens.certificates.verified import estimated_eigenvalues, largest_eigenvalues, rounding
from wordsens.maps.attention.scores.bounds import Expanded, Expansion


@dataclass(frozen=True)
class Form:
    """change / radius <= sqrt(y^T matrix y) + constant.

    `size` bounds the norms of the terms that make up the matrix; `excess` is about the share by which the form exceeds
    the first-order one.
    """

    matrix: Float[Tensor, "w m m"]
    constant: Float[Tensor, " w"]
    size: Float[Tensor, " w"]
    excess: Float[Tensor, " w"]

    def plus(self, other: "Form") -> "Form":
        """Of two sets of rows together."""
        constant = torch.hypot(self.constant, other.constant)
        excess = torch.maximum(self.excess, other.excess)
        return Form(self.matrix + other.matrix, constant, self.size + other.size, excess)

    def bound(self, roundings: float) -> Float[Tensor, " w"]:
        """Verified, for all ‖y‖ <= 1."""
        return (largest_eigenvalues(self.matrix, roundings * self.size).sqrt() + self.constant) * (1 + 1e-12)


@dataclass(frozen=True)
class OwnRows:
    """Row i of some words i under one head, of a text whose score has an expansion."""

    text: AttentionText
    score: Expanded
    words: Int[Tensor, " w"]
    head: int

    @property
    def places(self) -> Int[Tensor, " w"]:
        """Their indices among the text's N rows."""
        return self.words + len(self.text.rows) * self.head


class OwnExpansion:
    """The expansion of row i for some words i under one head, in the given coordinates.

    In units of the radius r, with kappa_l = k_l - sum_m mean_m k_m (k_i + u_i for the word itself), the score moves by
    tau_l = r kappa_l . y + away_l q, |q| <= twist r² being its quadratic part. The row's change is at most
    sqrt(y^T matrix y) + constant, matrix = (1 + eps) scale² J^T J + (1 + 1/eps) F, F from `bend` and `spread`, and
    J = sum_l slope_l x~_l kappa_l^T + a_i V^T (docs/theory/certificates-attention.md).
    """

    def __init__(
        self,
        rows: OwnRows,
        coordinates: Coordinates,
        errors: RoundingErrors,
        twist: Float[Tensor, " heads"],
        radius: Float[Tensor, " w"],
    ):
        text, score, words, head = rows.text, rows.score, rows.words, rows.head
        n = len(text.rows)
        own, mine = rows.places, words.unsqueeze(1)
        scores = text.scores[own]
        weights = score.attention(scores)
        keys, queries = coordinates.keys[head], coordinates.queries[head][words]
        kappa = keys.expand(len(words), -1, -1).clone()
        kappa[torch.arange(len(words), device=words.device), words] += queries
        lengths = torch.linalg.vector_norm(keys, dim=1).expand_as(scores)
        lengths = lengths.scatter_add(1, mine, torch.linalg.vector_norm(queries, dim=1, keepdim=True))
        self._itself = torch.zeros_like(scores).scatter(1, mine, 1.0)
        self._mean = weights if score.shift_invariant else torch.zeros_like(weights)
        self._kappa = kappa - (self._mean.unsqueeze(1) @ kappa)
        self._lengths = lengths + (self._mean * lengths).sum(dim=1, keepdim=True)
        self._away = (self._itself - self._mean).abs()
        self._twist = (twist[head] * radius).unsqueeze(1)  # of q, in units of the radius
        longest = text.longest
        slack = rounding(8 * sum(text.rows.shape) + 64) + 4 * coordinates.error
        self._key_error = 4 * errors.key[head * n : (head + 1) * n].amax() + slack * self._lengths
        off = errors.output[own].unsqueeze(1) if score.normalized else torch.zeros_like(scores[:, :1])
        self._output_error = off + slack * longest + 2 * text.value_error
        self._lift_size, self._seen = text.lift_size, coordinates.seen
        self._speeds = (torch.linalg.vector_norm(self._kappa, dim=2) + self._key_error) * (1 + 1e-12)
        outputs = coordinates.outputs[head][words].unsqueeze(1) if score.normalized else 0.0
        values = coordinates.values
        self._apart = values - outputs if score.normalized else values.expand(len(words), -1, -1)
        self._distances = torch.linalg.vector_norm(self._apart, dim=2) + self._output_error
        self._crude = self._distances + 2 * longest
        self._weight, self._radius = (weights * self._itself).sum(dim=1), radius
        moves = radius.unsqueeze(1) * (self._speeds + self._away * self._twist)
        gram = self._kappa @ self._kappa.mT
        speed = largest_eigenvalues(gram, slack * self._lengths.square().sum(dim=1)).sqrt()
        together = radius * (speed + torch.linalg.vector_norm(self._key_error + self._away * self._twist, dim=1))
        self._row: Expansion = score.expansion(scores, moves, together * (1 + 1e-12), errors.score[own].unsqueeze(1))
        self._slack = slack

    @property
    def unit(self) -> Float[Tensor, " w"]:
        """An estimate of the size of the change."""
        return (self._row.slope.abs() * self._distances * self._speeds).amax(dim=1) + self._weight.abs()

    def form(self, unit: Float[Tensor, " w"]) -> Form:
        """Of the change divided by `unit`."""
        row, per = self._row, unit.unsqueeze(1)
        slope = row.slope / per
        jacobian = (self._apart * slope.unsqueeze(2)).mT @ self._kappa
        jacobian = (jacobian + (self._weight / unit)[:, None, None] * self._seen) * row.scale[:, None, None]
        square = jacobian.mT @ jacobian
        length = row.scale * (
            (slope.abs() * self._crude * self._lengths).sum(dim=1) + self._lift_size * self._weight.abs() / unit
        )
        factors = self._remainder(per)
        rest = (self._kappa * factors.unsqueeze(2)).mT @ self._kappa
        curved = factors.amax(dim=1) > 0
        largest = (factors * self._speeds.square()).amax(dim=1)
        share = (largest / estimated_eigenvalues(square, steps=6)).sqrt().nan_to_num(1.0).clamp(1e-9, 1e9)
        more, most = torch.where(curved, 1 + share, 1.0), torch.where(curved, 1 + 1 / share, 0.0)
        size = more * length.square() + most * (factors * self._lengths.square()).sum(dim=1)
        matrix, constant = more[:, None, None] * square + most[:, None, None] * rest, self._constant(per)
        return Form(matrix, constant, size, torch.maximum(more - 1, constant / length))

    def hull(self) -> Float[Tensor, " w"]:
        """A bound of the change of a row whose weights w sum to one, none exceeding `cap`, in units of the radius.

        ‖sum_l w_l x~_l‖² = sum_l w_l² ‖x~_l‖² + sum over l != m of w_l w_m x~_l . x~_m, at most
        eta + cap (max_l ‖x~_l‖² - eta), eta the largest x~_l . x~_m of two words; and w_i Delta is added.
        """
        gram = self._apart @ self._apart.mT
        gram.diagonal(dim1=1, dim2=2).fill_(-torch.inf)
        longest = self._distances.amax(dim=1)
        eta = gram.amax(dim=2).amax(dim=1) + (2 * self._output_error.squeeze(1) + self._slack * longest) * longest
        eta = torch.minimum(eta, longest.square())
        square = (eta + self._row.cap * (longest.square() - eta)).clamp(min=0)
        return square.sqrt() * (1 + 1e-12) / self._radius + torch.minimum(
            self._row.cap, self._weight + (self._row.rise * self._itself).sum(dim=1)
        )

    def _remainder(self, per: Float[Tensor, "w 1"]) -> Float[Tensor, "w n"]:
        """f with ‖remainder‖² <= sum_l f_l (kappa_l . y)².

        ‖sum_l bend_l tau_l² x~_l‖ <= y^T V y, whose square is at most ‖V‖ y^T V y;
        ‖sum_l b_l x~_l‖² <= nu sum_l b_l² ‖x~_l‖², nu the largest eigenvalue of the Gram matrix of the normalised x~_l.
        """
        bend = self._row.bend * self._distances * self._radius.unsqueeze(1) / per
        bent = bend.sqrt().unsqueeze(2) * self._kappa
        size = (bend * self._lengths.square()).sum(dim=1)
        factors = largest_eigenvalues(bent @ bent.mT, self._slack * size).unsqueeze(1) * bend
        spread = self._row.spread * self._distances / per
        if not bool((spread != 0).any()):
            return factors
        unit = self._apart / self._distances.unsqueeze(2)
        nu = largest_eigenvalues(unit @ unit.mT, self._slack * 4 * unit.square().sum(dim=2).sum(dim=1) + self._slack)
        spread = nu.unsqueeze(1) * spread.square()
        both = (bend.amax(dim=1, keepdim=True) > 0) & (spread.amax(dim=1, keepdim=True) > 0)
        return torch.where(both, 2.0, 1.0) * (factors + spread)

    def _constant(self, per: Float[Tensor, "w 1"]) -> Float[Tensor, " w"]:
        """The quadratic part of the scores, the new weight of word i, and rounding."""
        row, radius, twisted = self._row, self._radius.unsqueeze(1), self._away * self._twist
        along = row.slope * (self._itself - (self._mean * self._itself).sum(dim=1, keepdim=True))
        pushed = torch.linalg.vector_norm((along.unsqueeze(1) @ self._apart).squeeze(1), dim=1)
        pushed = row.scale * (pushed + (row.slope.abs() * self._output_error).sum(dim=1)) * self._twist.squeeze(1)
        if not bool((self._mean != 0).any()):
            pushed = (row.scale.unsqueeze(1) * row.slope.abs() * self._distances * twisted).sum(dim=1)
        rest = (row.bend * radius * (2 * self._speeds + twisted) + row.spread) * twisted * self._distances
        moved = self._speeds + twisted
        answer = row.scale.unsqueeze(1) * row.slope.abs() + 2 * row.bend * radius * moved + row.spread
        off = row.scale.unsqueeze(1) * row.slope_error * moved * self._distances
        off = off + answer * (self._key_error * self._distances + moved * self._output_error)
        rise = (row.rise * self._itself).sum(dim=1)
        return (pushed + (rest + off).sum(dim=1) + rise) / per.squeeze(1)
