"""Upper bounds of word sensitivity for attention: all rows jointly, through one Lagrangian (docs/theory)."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from wordsens.certificates.attention.multipliers import MultiplierSearch
from wordsens.certificates.attention.own_row import own_row
from wordsens.certificates.attention.own_table import own_table_bound
from wordsens.certificates.attention.quadratic_bound import QuadraticBound
from wordsens.certificates.attention.refined import FINENESS, Refinement, together
from wordsens.certificates.attention.rounding import RoundingErrors, rounding_errors, row_errors
from wordsens.certificates.attention.sweep import swept
from wordsens.certificates.attention.text import AttentionText, attention_text, directions, pairs_of
from wordsens.certificates.contract import Certificate
from wordsens.certificates.verified import UNIT_ROUNDOFF, gram_norm_bound, rounding
from wordsens.errors import InputError, ZeroFeaturesError
from wordsens.maps.attention.features import AttentionLayer
from wordsens.maps.attention.scores import Certified, Tabulated, offered
from wordsens.maps.attention.scores.bounds import NODES
from wordsens.maps.attention.weights import HeadWeights, Sizes

_CHUNK_NUMBERS = 1 << 19  # of the arrays of the words that are bounded together
_MOST_ROWS = 1200  # of several heads in one Lagrangian; more are bounded a head or a few at a time
_LARGEST_SCORES = 1e130  # fourth powers of scores would leave float64 past 1e±77, squares past 1e±154


def attention_certificate(
    phi: AttentionLayer,
    rows: Float[Tensor, "n d"],
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    effort: str = "normal",
    target: Float[Tensor, " w"] | None = None,
) -> Certificate | None:
    """The certificate of attention, of any temperature and number of heads, for the words of one text.

    None where the score offers no bounds (`Certified`), or none for rows that do not see all words.

    `effort` "thorough" optimises the multipliers with one weight a row, O(N³) some 150 times a word, for words whose
    bound exceeds their `target`.

    Computed in float64, whatever phi's dtype. O(heads (n d² + n² d) + N³ + w N²) with N = heads n; memory O(N²).
    Bounds of groups of heads (where N would be large, or heads have value matrices) are combined by Pythagoras;
    those of heads that are summed, by the triangle inequality.

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
    refining = None
    if effort == "thorough":
        whole = target is not None and together >= len(weights)
        refining = target * unit / radius if target is not None and whole else torch.zeros_like(radius.double())
    parts = [
        _changes(score, rows, weights[at : at + together], words, radius.double() / unit, refining)
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
    refining: Float[Tensor, " w"] | None,
) -> _Changes:
    """`refining`: bounds, relative to the features and over the radius, below which a word is not refined; None for no
    refinement."""
    text, unit = attention_text(rows, [head.weights for head in heads], score), heads[0].unit
    errors = rounding_errors(text)
    search, quadratic = MultiplierSearch(text.geometry), QuadraticBound(text, errors)
    numbers = text.scores.shape[0] * NODES
    most = max(1, _CHUNK_NUMBERS // numbers)
    if refining is not None:
        most = min(most, together(len(text.scores)))
    plain, upper = torch.empty_like(radius), torch.zeros_like(radius)
    for chunk in torch.arange(len(words), device=words.device).split(most):
        reach = radius[chunk]
        content = None if refining is None else refining[chunk] * max(errors.norm, 0.0)
        plain[chunk], upper[chunk] = _bounds(text, search, quadratic, errors, words[chunk], reach, content)
    off = float(torch.linalg.vector_norm(errors.output)) * (1 + 1e-9)
    return _Changes(unit * plain, unit * upper, unit * max(errors.norm, 0.0), unit * text.outputs, unit * off)


def _bounds(
    text: AttentionText,
    search: MultiplierSearch,
    quadratic: QuadraticBound,
    errors: RoundingErrors,
    words: Int[Tensor, " w"],
    radius: Float[Tensor, " w"],
    content: Float[Tensor, " w"] | None,
) -> tuple[Float[Tensor, " w"], Float[Tensor, " w"]]:
    """The bounds of some words, before and after rounding outward; with `content`, those above it are refined."""
    fineness = 1 if content is None else FINENESS
    direction, _ = directions(text, words)
    own = own_row(text, words, radius, direction, errors)
    pairs = pairs_of(text, words, radius, own.unit * own.fixed.sqrt(), fineness=fineness)
    own = own.in_units(pairs.unit)
    forms = quadratic.bounds(pairs, radius, own.unit * own.fixed.sqrt())
    own = own.at_most(forms.own)
    off = row_errors(text, errors, pairs, radius)
    loose = (~forms.tight).nonzero().squeeze(1)
    tabulated = offered(text.score, Tabulated)
    if tabulated is not None and len(loose):
        mine = torch.full_like(forms.own, torch.inf)
        mine[loose] = own_table_bound(text, tabulated, errors, quadratic.twist, words[loose], radius[loose])
        own = own.at_most(mine)
    apart = own.fixed + pairs.worst_apart()
    plain, rounded = apart.clone(), apart * (1 + 1e-11)
    if len(loose):
        left, mine = pairs.of(loose), own.of(loose)
        found = swept(text, search, left, mine)
        if content is not None:
            limit = ((content - off).clamp(min=0) / pairs.unit)[loose].square()
            found = Refinement(text, search, left, mine, found, limit).run()
        squares = found.largest
        plain[loose], rounded[loose] = (
            torch.minimum(*two) for two in zip((plain[loose], rounded[loose]), squares, strict=True)
        )
    plain, rounded = (torch.minimum(squares.sqrt() * pairs.unit, forms.whole) for squares in (plain, rounded))
    hull = _hull(text, errors, words, radius)
    rounded = rounded + off
    return torch.minimum(plain, hull), torch.minimum(rounded, hull) * (1 + 1e-12)


def _hull(
    text: AttentionText, errors: RoundingErrors, words: Int[Tensor, " w"], radius: Float[Tensor, " w"]
) -> Float[Tensor, " w"]:
    """A bound, over the radius, of the change under any normalized weights; infinite for others.

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
