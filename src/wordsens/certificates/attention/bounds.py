"""Upper bounds of word sensitivity for attention: all rows jointly, through one Lagrangian (docs/theory)."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention.multipliers import MultiplierSearch, State
from wordsens.certificates.attention.own_row import OwnRow, own_row
from wordsens.certificates.attention.own_weights import may_gain, own_weights_bound
from wordsens.certificates.attention.quadratic_bound import QuadraticBound
from wordsens.certificates.attention.relaxation import Pairs, bound_at, rise_between
from wordsens.certificates.attention.rounding import RoundingErrors, rounding_errors, row_errors
from wordsens.certificates.attention.text import AttentionText, attention_text, directions, pairs_of
from wordsens.certificates.contract import Certificate
from wordsens.certificates.verified import UNIT_ROUNDOFF, gram_norm_bound, rounding
from wordsens.errors import InputError, ZeroFeaturesError
from wordsens.maps.attention.layer import AttentionLayer
from wordsens.maps.attention.scores import Certified, offered
from wordsens.maps.attention.scores.curves import NODES
from wordsens.maps.attention.weights import HeadWeights, Sizes

# Places of z = Delta . (x_i - centre)/(‖x_i - centre‖ radius) with multipliers of their own; the bound is interpolated
# between them. The sup lies near .45 as a rule: dense there. A little beyond [-1, 1]: ‖direction‖ is 1 up to rounding.
_PLACES = (-1 - 1e-9, -0.4, 0.0, 0.18, 0.32, 0.42, 0.52, 0.64, 0.8, 1 + 1e-9)
_FIRST = 5
_CHUNK_NUMBERS = 1 << 18
_MOST_ROWS = 1200  # of several heads, taken together; more are taken apart, a head or a few at a time
_FIRST_TEMPERATURES = [0.5, 0.4, 0.3, 0.2, 0.2, 0.2, 0.15, 0.15]
_NEXT_TEMPERATURES = [0.2, 0.2, 0.15]
_CAUTIOUS_FIRST_TEMPERATURES = [0.5, 0.5, 0.4, 0.4, 0.3, 0.3, 0.2, 0.2, 0.2, 0.15, 0.15]
_CAUTIOUS_NEXT_TEMPERATURES = [0.3, 0.3, 0.2, 0.2, 0.15]
_DOUBTFUL = 1.06
_LARGEST_SCORES = 1e130  # fourth powers of scores would leave float64 past 1e±77, squares past 1e±154


def attention_certificate(
    phi: AttentionLayer, rows: Float[Tensor, "n d"], words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
) -> Certificate | None:
    """The certificate of attention, of any temperature and number of heads, for the words of one text.

    None where the score offers no bounds (`Certified`), or none where rows do not see all words.

    Computed in float64, whatever phi's dtype. O(heads (n d² + n² d) + N³ + w N²) with N = heads n; memory O(N²).
    Heads that are taken apart, where N would be large or where they have values of their own, have their bounds
    combined by Pythagoras; those that are summed, by the triangle inequality.

    Raises:
        ZeroFeaturesError: phi(X) = 0, or so small that rounding hides it.
    """
    score = offered(phi.score, Certified)
    if score is None:
        return None
    rows, weights, unit = _scaled(phi, rows.double())
    if not score.masks and any(
        bool((head.weights.bias == -torch.inf).any()) for head in weights if head.weights.bias is not None
    ):
        return None
    together = 1 if phi.summed or weights[0].weights.value is not None else max(1, _MOST_ROWS // len(rows))
    parts = [
        _changes(score, rows, weights[at : at + together], words, radius.double() / unit)
        for at in range(0, len(weights), together)
    ]
    norm = _norm_of_sum(parts) if phi.summed else math.hypot(*(part.norm for part in parts)) * (1 - 1e-15)
    if not norm > 0:
        raise ZeroFeaturesError(
            f"{phi.name} maps this text to features that rounding cannot tell from zero, so no relative bound is "
            "known; use another text, seed or map"
        )
    plain, upper = (_together([getattr(part, name) for part in parts], phi.summed) for name in ("plain", "upper"))
    slack = float((upper / plain - 1).amax())
    upper = upper * (radius / unit / norm) * (1 + 1e-14)
    if not bool(upper.isfinite().all()):
        raise InputError(
            f"the certificate of {phi.name} overflows float64 at `radius` (={float(radius.max()):.3g}); use a smaller "
            "radius or rescale the rows"
        )
    return Certificate(
        words=words,
        upper=upper,
        slack=slack,
        method=f"{score.name} attention: joint Lagrangian over all rows",
    )


@dataclass(frozen=True)
class _Head:
    """A head whose value matrix was divided by `unit`, at least its operator norm; 1 where there is none."""

    weights: HeadWeights
    unit: float


def _scaled(phi: AttentionLayer, rows: Float[Tensor, "n d"]) -> tuple[Float[Tensor, "n d"], list[_Head], float]:
    """X / unit, the heads with W unit² / scale in place of W, and unit, the power of two above the longest row.

    The scores are the same, and S is that at radius / unit. Squares of rows then neither overflow nor underflow.
    """
    unit = 2.0 ** math.frexp(float(rows.abs().amax()) * math.sqrt(rows.shape[1]))[1]
    heads = []
    for weights in phi.head_weights(len(rows), torch.float64, isometric=True):
        of_values = 1.0 if weights.value is None else _operator_norm(weights.value, weights.norms)
        weights = weights.in_units(unit, of_values)
        heads.append(_Head(weights, of_values))
        linear = weights.matrix, weights.query_offset, weights.key_offset
        largest = max(float(part.abs().amax()) for part in linear if part is not None)
        if not (largest == 0 or 1 / _LARGEST_SCORES < largest < _LARGEST_SCORES):
            raise InputError(
                f"the scores of {phi.name} on this text are of the order of {largest:.1g}, whose squares float64 "
                "cannot hold; rescale the rows, or change the temperature"
            )
    return rows / unit, heads, unit


def _operator_norm(value: Float[Tensor, "d p"], norms: Sizes) -> float:
    """An upper bound of ‖V‖_op, and of what it is after any rounding; 1 where V is zero."""
    largest = float(value.abs().amax())
    if largest == 0:
        return 1.0
    unit = 2.0 ** math.frexp(largest)[1]
    scaled = value / unit
    gram = scaled.mT @ scaled if scaled.shape[1] <= len(scaled) else scaled @ scaled.mT
    bound = gram_norm_bound(gram, inner=max(scaled.shape)) ** 0.5 * (1 + 1e-12)
    return unit * bound + 2 * rounding(norms.terms + 16) * norms.value


def _norm_of_sum(parts: "list[_Changes]") -> float:
    """A lower bound of the norm of the heads' sum."""
    outputs = torch.stack([part.outputs for part in parts])
    off = sum(part.off for part in parts) + rounding(len(parts) + 8) * float(
        torch.linalg.vector_norm(outputs, dim=(1, 2)).sum()
    )
    total = float(torch.linalg.vector_norm(outputs.sum(dim=0)))
    return total * (1 - rounding(outputs[0].numel() + 8)) - off * (1 + 1e-9)


def _together(parts: list[Float[Tensor, " w"]], summed: bool) -> Float[Tensor, " w"]:
    """The root of the sum of the squares; the sum, of heads that are summed."""
    stacked = torch.stack(parts)
    if summed:
        return stacked.sum(dim=0) * (1 + 1e-12)
    largest = stacked.amax(dim=0)
    return largest * (stacked / torch.where(largest > 0, largest, torch.ones_like(largest))).square().sum(dim=0).sqrt()


@dataclass(frozen=True)
class _Changes:
    """Bounds of the change of some heads' features, before and after rounding outward, and of their norm from below.

    The changes are in units of the radius. `outputs` are off by at most `off` in Frobenius norm.
    """

    plain: Float[Tensor, " w"]
    upper: Float[Tensor, " w"]
    norm: float
    outputs: Float[Tensor, "N p"]
    off: float


def _changes(
    score: Certified,
    rows: Float[Tensor, "n d"],
    heads: list[_Head],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
) -> _Changes:
    text, unit = attention_text(rows, [head.weights for head in heads], score), heads[0].unit
    errors = rounding_errors(text)
    search, quadratic = MultiplierSearch(text.geometry), QuadraticBound(text, errors)
    numbers = text.scores.shape[0] * NODES
    bounds = [
        _bounds(text, search, quadratic, errors, words[chunk], radius[chunk])
        for chunk in torch.arange(len(words), device=words.device).split(max(1, _CHUNK_NUMBERS // numbers))
    ]
    plain, upper = (torch.cat([pair[at] for pair in bounds]) for at in (0, 1))
    off = float(torch.linalg.vector_norm(errors.output)) * (1 + 1e-9)
    return _Changes(unit * plain, unit * upper, unit * max(errors.norm, 0.0), unit * text.outputs, unit * off)


def _bounds(
    text: AttentionText,
    search: MultiplierSearch,
    quadratic: QuadraticBound,
    errors: RoundingErrors,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
    """The bounds of some words, before and after rounding outward."""
    direction, _ = directions(text, words)
    own = own_row(text, words, radius, direction, errors)
    pairs = pairs_of(text, words, radius, own.unit * own.fixed.sqrt())
    own = own.in_units(pairs.unit)
    forms = quadratic.bounds(pairs, radius, own.unit * own.fixed.sqrt())
    own = own.at_most(forms.own)
    loose = (~forms.tight).nonzero().squeeze(1)
    gaining = loose[may_gain(text, words[loose], radius[loose])]
    if len(gaining):
        mine = torch.full_like(forms.own, torch.inf)
        mine[gaining] = own_weights_bound(text, errors, quadratic.twist, words[gaining], radius[gaining])
        own = own.at_most(mine)
    apart = own.fixed + pairs.worst_apart()
    plain, rounded = apart.clone(), apart * (1 + 1e-11)
    if len(loose):
        squares = _swept(text, search, pairs.of(loose), own.of(loose))
        plain[loose], rounded[loose] = (
            torch.minimum(*two) for two in zip((plain[loose], rounded[loose]), squares, strict=True)
        )
    plain, rounded = (torch.minimum(squares.sqrt() * pairs.unit, forms.whole) for squares in (plain, rounded))
    hull = _hull(text, errors, words, radius)
    rounded = rounded + row_errors(text, errors, pairs, radius)
    return torch.minimum(plain, hull), torch.minimum(rounded, hull) * (1 + 1e-12)


def _swept(
    text: AttentionText, search: MultiplierSearch, pairs: Pairs, own: OwnRow
) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
    """The Lagrangian's bounds of some words' squared changes, before and after rounding outward."""
    plain, rounded = _Sweep(text, search, pairs, own).bounds(_FIRST_TEMPERATURES, _NEXT_TEMPERATURES)
    # Where the search for multipliers went astray on some interval, search again, with more and shorter steps.
    doubtful = (rounded.amax(dim=0) > _DOUBTFUL * rounded[_FIRST]).nonzero().squeeze(1)
    if len(doubtful):
        again = _Sweep(text, search.cautious(), pairs.of(doubtful), own.of(doubtful))
        other_plain, other = again.bounds(_CAUTIOUS_FIRST_TEMPERATURES, _CAUTIOUS_NEXT_TEMPERATURES)
        plain[:, doubtful] = torch.where(other < rounded[:, doubtful], other_plain, plain[:, doubtful])
        rounded[:, doubtful] = torch.minimum(other, rounded[:, doubtful])
    return plain.amax(dim=0), rounded.amax(dim=0)


def _hull(
    text: AttentionText, errors: RoundingErrors, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
) -> Float[Tensor, " w"]:
    """A bound, over the radius, of what any weights may do that are divided by their sum; infinite for others.

    Every new output is a mean of the x_l and of x_i + Delta, or zero. Finite at any radius, temperature and rounding.
    """
    if not text.score.normalized:
        return torch.full_like(radius, torch.inf)
    farthest = text.farthest
    if not text.score.sums_to_one:
        farthest = torch.maximum(farthest, torch.linalg.vector_norm(text.outputs, dim=1))
    error = errors.output.clamp(max=2 * errors.longest) + 16 * UNIT_ROUNDOFF * errors.longest
    farthest, radius = farthest.expand(len(words), -1), radius.unsqueeze(1)
    reached = 1 + text.distances[:, words].T / radius
    # A row that does not see the word stays, unless it is the word's own.
    hidden, own = text.hidden[:, words].T, torch.zeros_like(reached, dtype=torch.bool)
    own = own.scatter(1, text.own_rows(words).T, True)
    rows = torch.maximum(farthest / radius, reached.masked_fill(hidden, 0.0)) + error / radius
    rows = rows.masked_fill(hidden & ~own, 0.0)
    longest = rows.amax(dim=1, keepdim=True)
    return (longest * torch.linalg.vector_norm(rows / longest, dim=1, keepdim=True)).squeeze(1) * (1 + 1e-12)


class _Sweep:
    """Bounds over the intervals of z between neighbouring places, in units of the squared radius."""

    def __init__(self, text: AttentionText, search: MultiplierSearch, pairs: Pairs, own: OwnRow):
        self._text, self._search, self._pairs, self._own = text, search, pairs, own
        self._roundings = rounding(4 * sum(text.geometry.queries.shape) + 200)

    def bounds(
        self, first: list[float], following: list[float]
    ) -> tuple[Float[Tensor, "intervals w"], Float[Tensor, "intervals w"]]:
        """On each interval, before and after rounding outward; the temperatures are those of the Newton steps."""
        search, pairs = self._search, self._pairs
        states = {_FIRST: search.improve(pairs, search.start(pairs), self._z(_FIRST), first)}
        for at in (*range(_FIRST + 1, len(_PLACES)), *range(_FIRST - 1, -1, -1)):
            neighbour = states[at - 1 if at > _FIRST else at + 1]
            # Where z is +-1 nothing else can move: a neighbour's multipliers do, and there are none to improve.
            inside = abs(_PLACES[at]) < 1
            states[at] = search.improve(pairs, neighbour, self._z(at), following) if inside else neighbour
        intervals = [self._between(at, states[at], states[at + 1]) for at in range(len(_PLACES) - 1)]
        return torch.stack([plain for plain, _ in intervals]), torch.stack([rounded for _, rounded in intervals])

    def _z(self, at: int) -> Float[Tensor, " w"]:
        return torch.full_like(self._own.fixed, _PLACES[at])

    def _between(self, at: int, left: State, right: State) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
        """The bound over z from place `at` to the next, the multipliers of both places brought to one lam."""
        lam = (left.lam * right.lam).sqrt()
        nearest = 0.0 if _PLACES[at] * _PLACES[at + 1] <= 0 else min(abs(_PLACES[at]), abs(_PLACES[at + 1]))
        across = torch.full_like(lam, math.sqrt(max(0.0, 1 - nearest**2)) * (1 + 1e-15))
        ends, own_rows = [], []
        for place, state in ((at, left), (at + 1, right)):
            z = self._z(place)
            by = self._search.multipliers(self._pairs, state.with_lam(lam), z)
            ends.append((by, bound_at(self._text.geometry, self._pairs, by, z, across), z))
            own_rows.append(self._own.at(z, across))
        rise = rise_between(self._text.geometry, self._pairs, *ends)
        values = [end[1].value for end in ends]
        size = torch.maximum(ends[0][1].size, ends[1][1].size)
        if self._text.lift is not None:
            # V (V^T x_i - o_j) as computed, in the terms q r_j . y.
            moved = (self._pairs.most_q * self._pairs.counted).sum(dim=1)
            size = size + 4 * self._text.lift_size * self._text.longest * moved
        plain = torch.maximum(*values) + self._own.fixed
        if own_rows[0] is not None:
            plain = torch.minimum(plain, torch.maximum(values[0] + own_rows[0], values[1] + own_rows[1]))
        plain = (plain + rise).clamp(min=0)
        # Multipliers that went astray give no bound.
        plain = torch.where(plain.isfinite() & (lam > 0), plain, torch.full_like(plain, torch.inf))
        rounded = plain * (1 + 1e-12) + self._roundings * (2 * size + self._own.fixed)
        return plain, torch.where(rounded.isfinite(), rounded, torch.full_like(rounded, torch.inf))
