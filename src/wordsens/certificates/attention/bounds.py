"""Upper bounds of word sensitivity for attention: all rows jointly, through one Lagrangian.

docs/proofs.md#attention-certificates states and proves what is computed in this folder. The bound
of a word is the least of three: the Lagrangian's (`multipliers`), that of the first order
(`first_order`, at small radii), and, for weights that sum to one, that of their hull.
"""

import math
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from wordsens.certificates.attention.first_order import (
    Coordinates,
    coordinates_of,
    first_order_bounds,
)
from wordsens.certificates.attention.multipliers import MultiplierSearch, swept
from wordsens.certificates.attention.relaxation import of_words, pairs_of, row_errors
from wordsens.certificates.attention.text import (
    SelfRow,
    attention_text,
    directions,
    rounding_errors,
    self_row,
)
from wordsens.certificates.base import UNIT_ROUNDOFF, Certificate, operator_norm, rounding
from wordsens.errors import InputError, ZeroFeaturesError, argument
from wordsens.maps.attention.features import AttentionLayer
from wordsens.maps.attention.head import HeadWeights
from wordsens.maps.attention.scores import Certified, Expanded, offered
from wordsens.maps.attention.scores.base import NODES

_CHUNK_NUMBERS = 1 << 19  # of the arrays of the words that are bounded together
_MOST_ROWS = 1200  # of several heads in one Lagrangian; more are bounded a head or a few at a time
_LARGEST_SCORES = 1e130  # squares of scores would leave float64 past 1e±154
# Relative to the longest row. Smaller balls are bounded as this one is: squares of lengths over the
# radius stay in float64.
_LEAST_RADIUS = 1e-140


def attention_certificate(
    phi: AttentionLayer,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
) -> Certificate | None:
    """The certificate of attention, of any temperature and number of heads, for the words of one
    text.

    None where the score offers no bounds (`Certified`), or none for rows that do not see all words.

    Computed in float64, whatever phi's dtype. O(heads (n d² + n² d) + N³ + w N²) with N = heads n;
    memory O(N²). Bounds of groups of heads (where N would be large, or heads have value matrices)
    are combined by Pythagoras; those of heads that are summed, by the triangle inequality.

    Raises:
        ZeroFeaturesError: phi(X) = 0, or so small that rounding hides it.
    """
    score = offered(phi.score, Certified)
    if score is None:
        return None
    rows, heads, units, unit = _scaled(phi, rows.double())
    biases = [head.bias for head in heads if head.bias is not None]
    if not score.masks and any(bool((bias == -torch.inf).any()) for bias in biases):
        return None
    together = max(1, _MOST_ROWS // len(rows))
    # Heads with values of their own have texts of their own.
    if phi.summed or any(
        part is not None for head in heads for part in (head.value, head.value_bias)
    ):
        together = 1
    reach = (radius.double() / unit).clamp(min=_LEAST_RADIUS)
    parts = [
        _Heads(rows, heads[first : first + together], units[first], score).changes(words, reach)
        for first in range(0, len(heads), together)
    ]
    norm = (
        _norm_of_sum(parts)
        if phi.summed
        else math.hypot(*(part.norm for part in parts)) * (1 - 1e-15)
    )
    if not norm > 0:
        raise ZeroFeaturesError(
            f"{phi.name} maps this text to features that rounding cannot tell from zero, so no "
            "relative bound is "
            "known; use another text, seed or map"
        )
    changes = torch.stack([part.upper for part in parts])
    change = changes.sum(dim=0) if phi.summed else torch.linalg.vector_norm(changes, dim=0)
    upper = change * (reach / norm) * (1 + 1e-12)
    if not bool(upper.isfinite().all()):
        raise InputError(
            f"the certificate of {phi.name} overflows float64 at {argument('radius')} "
            f"(={float(radius.max()):.3g}); use a smaller radius or rescale the rows"
        )
    return Certificate(words, upper, f"{score.name} attention: joint Lagrangian over all rows")


def _scaled(
    phi: AttentionLayer, rows: Float[Tensor, "n d"]
) -> tuple[Float[Tensor, "n d"], list[HeadWeights], list[float], float]:
    """X / unit, the heads with W unit² / scale in place of W, their values' units, and unit, a
    power of two.

    The scores are the same, and S is that at radius / unit, which is above the longest row. Squares
    of rows then neither overflow nor underflow. A value matrix is divided by its unit, at least its
    operator norm; 1 without one.
    """
    unit = 2.0 ** math.frexp(float(rows.abs().amax()) * math.sqrt(rows.shape[1]))[1]
    heads, units = [], []
    for weights in phi.head_weights(len(rows), torch.float64, isometric=True):
        of_values = 1.0
        if weights.value is not None:
            # An upper bound of ‖V‖_op, and of what it is after any rounding.
            rounded = 2 * rounding(weights.norms.terms + 16) * weights.norms.value
            of_values = operator_norm(weights.value) + rounded or 1.0
        weights = weights.in_units(unit, of_values)
        heads.append(weights)
        units.append(of_values)
        linear = weights.matrix, weights.query_offset, weights.key_offset
        largest = max(float(part.abs().amax()) for part in linear if part is not None)
        if not (largest == 0 or 1 / _LARGEST_SCORES < largest < _LARGEST_SCORES):
            raise InputError(
                f"the scores of {phi.name} on this text are of the order of {largest:.1g}, whose "
                "squares float64 "
                "cannot hold; rescale the rows, or change the temperature"
            )
    return rows / unit, heads, units, unit


@dataclass(frozen=True)
class _Changes:
    """Upper bounds of the change of some heads' features, in units of the radius, and a lower bound
    of their norm. `outputs` are off by at most `off` in Frobenius norm."""

    upper: Float[Tensor, " w"]
    norm: float
    outputs: Float[Tensor, "N p"]
    off: float


def _norm_of_sum(parts: list[_Changes]) -> float:
    """A lower bound of the norm of the heads' sum."""
    outputs = torch.stack([part.outputs for part in parts])
    off = sum(part.off for part in parts) + rounding(len(parts) + 8) * float(
        torch.linalg.vector_norm(outputs, dim=(1, 2)).sum()
    )
    total = float(torch.linalg.vector_norm(outputs.sum(dim=0)))
    return total * (1 - rounding(outputs[0].numel() + 8)) - off * (1 + 1e-9)


class _Heads:
    """The rows of some heads in one Lagrangian."""

    def __init__(
        self, rows: Float[Tensor, "n d"], heads: list[HeadWeights], unit: float, score: Certified
    ):
        self._unit, self._text = unit, attention_text(rows, heads, score)
        self._errors = rounding_errors(self._text)
        self._search = MultiplierSearch(self._text.geometry)
        self._expanded = offered(score, Expanded)

    @cached_property
    def _coordinates(self) -> Coordinates:
        return coordinates_of(self._text)

    def changes(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> _Changes:
        """The bounds, of a chunk of words at a time."""
        text, norm, unit = self._text, max(self._errors.norm, 0.0), self._unit
        size = max(1, _CHUNK_NUMBERS // (len(text.scores) * NODES))
        chunks = zip(words.split(size), radius.split(size), strict=True)
        upper = torch.cat([self._bounds(*chunk) for chunk in chunks])
        off = float(torch.linalg.vector_norm(self._errors.output)) * (1 + 1e-9)
        return _Changes(unit * upper, unit * norm, unit * text.outputs, unit * off)

    def _bounds(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, " w"]:
        """The bounds of some words."""
        text, errors = self._text, self._errors
        direction, _ = directions(text, words)
        row = self_row(text, words, radius, direction, errors)
        pairs = pairs_of(text, words, radius, row.fixed.sqrt())
        whole = torch.full_like(radius, torch.inf)
        if self._expanded is not None:
            some = self._promising(self._expanded, words, radius, row).nonzero().squeeze(1)
            if len(some):
                whole[some], of_row = first_order_bounds(
                    text, self._expanded, self._coordinates, errors, of_words(pairs, some)
                )
                row.fixed[some] = torch.minimum(row.fixed[some], of_row.square())
        row = row.in_units(pairs.unit)
        apart = row.fixed + (pairs.worst.square() * pairs.counted).sum(dim=1)
        squares = torch.minimum(apart * (1 + 1e-11), swept(text, self._search, pairs, row))
        joint = torch.minimum(squares.sqrt() * pairs.unit, whole) + row_errors(text, errors, pairs)
        hull = self._hull(words, radius)
        return torch.where(joint < hull, joint, hull) * (1 + 1e-12)

    def _promising(
        self, score: Expanded, words: Int[Tensor, " w"], radius: Float[Tensor, " w"], row: SelfRow
    ) -> Bool[Tensor, " w"]:
        """True where no term of the first order's remainder exceeds the known bound of row i. Keys
        are not centred."""
        text, rows = self._text, self._text.self_rows(words).flatten()
        speeds = torch.linalg.vector_norm(text.keys, dim=1).view(text.heads, 1, -1)
        moves = (radius.unsqueeze(1) * speeds).flatten(end_dim=1)
        together = torch.linalg.vector_norm(moves, dim=1)
        error = self._errors.score[rows].unsqueeze(1)
        steps = score.expansion(text.scores[rows], moves, together, error)
        terms = (steps.bend * moves + steps.spread) * moves * text.distances[rows]
        least = terms.amax(dim=1).view(text.heads, -1).amax(dim=0).nan_to_num(torch.inf)
        return least < row.fixed.sqrt() * radius

    def _hull(self, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]) -> Float[Tensor, " w"]:
        """A bound, over the radius, of the change under any normalized weights; infinite for
        others.

        Every new output is a mean of the x_l and of x_i + Delta, or zero. Finite at any radius,
        temperature, rounding.
        """
        text, errors = self._text, self._errors
        if not text.score.normalized:
            return torch.full_like(radius, torch.inf)
        farthest = text.distances.masked_fill(text.hidden, 0.0).amax(dim=1)
        if not text.score.sums_to_one:
            farthest = torch.maximum(farthest, torch.linalg.vector_norm(text.outputs, dim=1))
        error = errors.output.clamp(max=2 * errors.longest) + 16 * UNIT_ROUNDOFF * errors.longest
        radius = radius.unsqueeze(1)
        rows = torch.maximum(farthest / radius, 1 + text.distances[:, words].T / radius)
        # A row that does not see the word stays, unless it is row i.
        stays = text.hidden[:, words].T.scatter(1, text.self_rows(words).T, False)
        rows = (rows + error / radius).masked_fill(stays, 0.0)
        return torch.linalg.vector_norm(rows, dim=1) * (1 + 1e-12)
